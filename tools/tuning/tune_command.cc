// `paceline tune`: parameters of one algorithm for given scenarios, searched in virtual time.

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "cc/params.h"
#include "control/experiment/progress.h"
#include "control/experiment/results/results_file.h"
#include "control/tuner/tpe.h"
#include "dataplane/base/hash.h"
#include "tools/cli/cli.h"
#include "tools/tuning/search_runner.h"
#include "tools/tuning/tune_task.h"

namespace paceline::tools {

namespace {

// Candidates proposed before any of them is judged. Fixed, so that --jobs changes nothing.
constexpr std::size_t kBatch = 4;

void search(const SearchRunner& runner, const TuneOptions& options, Task& task,
            ProgressLine& line) {
  auto& candidates = task.record.candidates;
  tuner::Tpe tpe(task.space->size(), task.record.seed);
  const double begin = wall_seconds();
  const double runs_each = options.repetitions;
  const double final_runs = static_cast<double>(options.finalists + 1) * options.validation;
  const double total = options.evaluations * runs_each + final_runs;
  const auto show = [&](double done) {
    const double spent = wall_seconds() - begin;
    const auto best = tuner::finalists(candidates, 1).front();
    const tuner::Score& score = candidates[best].score;
    line.show(done / total, done > 0 ? spent * (total - done) / done : NAN,
              fmt::format("{} candidates, best {:+.4f}{}", candidates.size(), score.objective,
                          score.feasible() ? "" : " (outside the limits)"));
  };
  while (candidates.size() < options.evaluations) {
    std::vector<std::vector<double>> points;
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < kBatch && candidates.size() + i < options.evaluations; ++i) {
      const bool first = candidates.empty() && i == 0;
      points.push_back(first ? task.space->start_point() : tpe.ask());
      values.push_back(first ? task.space->start_values() : task.space->values_of(points.back()));
    }
    const auto scores = runner.evaluate(values, task.record.search_seeds);
    if (scores.empty()) return;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      tpe.tell(points[i], scores[i]);
      candidates.push_back({values[i], scores[i], false, {}});
    }
    show(static_cast<double>(candidates.size()) * runs_each);
  }
  for (const std::size_t index : tuner::finalists(candidates, options.finalists)) {
    const std::vector<std::vector<double>> one{candidates[index].values};
    const auto scores = runner.evaluate(one, task.record.validation_seeds);
    if (scores.empty()) return;
    candidates[index].validated = true;
    candidates[index].validation = scores.front();
    show(total - final_runs / 2);
  }
}

void print_result(const Task& task) {
  const auto& candidates = task.record.candidates;
  const auto row = [](const std::string& name, const tuner::Score& score) {
    fmt::print("  {:<12} objective {:+.4f}   largest queue {:>8}   {}\n", name, score.objective,
               fmt::format("{} KB", std::llround(score.queue_bytes / 1000)),
               score.feasible() ? "within the limits" : "outside: " + score.broken_limit);
  };
  const tuner::Candidate* best = tuner::winner(candidates);
  fmt::print("\nOn {} seeds that the search has not seen:\n", task.record.validation_seeds.size());
  row(task.record.profile, candidates.front().validation);
  if (best == nullptr) {
    fmt::print("No candidate kept the limits on the new seeds; closest: {}\n",
               candidates[tuner::finalists(candidates, 1).front()].score.broken_limit);
    return;
  }
  if (best == &candidates.front()) {
    fmt::print("Nothing better than '{}' was found.\n", task.record.profile);
    return;
  }
  row("found", best->validation);
  fmt::print(
      "\nThe objective falls by 0.01 when a collective takes 1 % longer.\n\nFor an [[arm]]:\n\n"
      "algorithm = \"{}\"\nprofile = \"{}\"\n",
      task.record.algorithm, task.record.profile);
  for (const tuner::Dimension& dimension : task.space->dimensions()) {
    fmt::print("params.{} = {}\n", task.algorithm->params[dimension.param].name,
               cc::number_text(best->values[dimension.param]));
  }
}

int run(const TuneOptions& options, const Workers& workers) {
  auto read = read_task(options, workers.first());
  if (!read.ok()) return report_errors(read.errors);
  Task& task = read.value;
  tuner::SearchRecord& record = task.record;
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const SearchRunner runner(task.scenarios, task.arm, *task.algorithm, *task.space, task.limits,
                            workers);
  search(runner, options, task, line);
  line.clear();
  if (!workers.first()) return Interrupt::flag().load() ? kExitInterrupted : kExitGood;
  if (record.candidates.empty()) {
    fmt::print(stderr, "paceline: interrupted before the first candidate: nothing written\n");
    return kExitInterrupted;
  }
  const std::string text = tuner::record_text(record, *task.algorithm, *task.space);
  try {
    experiment::write_results_file(task.out, text);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  const bool interrupted = Interrupt::flag().load();
  if (!options.quiet && !interrupted) print_result(task);
  if (!options.quiet) {
    fmt::print("\n{} candidates: {} (content hash {:016x})\n", record.candidates.size(), task.out,
               ContentHash{}.text(text).value());
  }
  if (interrupted) {
    fmt::print(stderr, "paceline: interrupted: the candidates judged so far were kept\n");
    return kExitInterrupted;
  }
  return kExitGood;
}

}  // namespace

void add_tune_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<TuneOptions>();
  const config::Command command = app.subcommand(
      "tune", "search the parameters of an algorithm for given scenarios, under hard limits");
  options->input.add_to(command, "experiment whose scenarios are used (TOML)", true);
  command.option("--arm", options->arm, "arm to start from (default: the first)").type("NAME");
  command
      .option("--param", options->params,
              "parameter to search; default bounds: 1/16 to 16 times its first value. "
              "`paceline cc show ALGORITHM` lists them")
      .type("NAME[=LOW:HIGH]")
      .required();
  command.option("--scenario", options->scenarios, "only this one; may be repeated").type("NAME");
  command
      .option("--limit", options->limits,
              "no run may exceed it (default: drops=0 and pfc_pause_us=0)")
      .type("METRIC=MOST");
  command.option("--evaluations", options->evaluations, "candidates to try")
      .shows_default()
      .within(1, 100'000);
  command.option("--repetitions", options->repetitions, "seeds per candidate")
      .shows_default()
      .within(1, 1000);
  command.option("--finalists", options->finalists, "best candidates tried on new seeds")
      .shows_default()
      .within(1, 1000);
  command.option("--validation", options->validation, "new seeds for them")
      .shows_default()
      .within(1, 1000);
  command.option("--out", options->out, "write every candidate as JSON (default: NAME.search.json)")
      .type("FILE.json");
  command.option("-j,--jobs", options->jobs, "runs at a time (default: one per core)")
      .type("N")
      .within(1, 1024);
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Tries parameter sets by a tree-structured Parzen estimator. The objective is the "
      "efficiency\n"
      "of collectives; for other traffic the p99 slowdown of small and the mean slowdown of large\n"
      "messages. A candidate beyond a limit is always refused; the best are run again on new "
      "seeds\n"
      "before one is named (docs/experiments.md). mpirun -n 4 paceline tune FILE\n"
      "shares the runs among processes and machines (Open MPI, MPICH).\n"
      "Examples:\n"
      "  paceline tune configs/experiments/first.toml --scenario incast-32to1 \\\n"
      "      --param additive_increase_mbps --param increase_timer_us --limit "
      "queue_max_bytes=16e6\n"
      "Exit status: 0 good, 2 bad input, 130 interrupted (results so far are kept).");
  command.callback([options, &exit_code] {
    exit_code = run_on_ranks(options->jobs, options->quiet,
                             [&](const Workers& workers) { return run(*options, workers); });
  });
}

}  // namespace paceline::tools
