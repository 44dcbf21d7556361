// `paceline tune`: parameters of one algorithm for given scenarios, searched in virtual time.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/experiment/design.h"
#include "control/experiment/progress.h"
#include "control/experiment/results_file.h"
#include "control/experiment/value_text.h"
#include "control/tuner/search_record.h"
#include "control/tuner/tpe.h"
#include "dataplane/base/hash.h"
#include "dataplane/config/diagnostics.h"
#include "dataplane/config/scenario_reader.h"
#include "tools/cli.h"
#include "tools/search_runner.h"

namespace paceline::tools {

namespace {

// Candidates proposed before any of them is judged. Fixed, so that --jobs changes nothing.
constexpr std::size_t kBatch = 4;

struct TuneOptions {
  InputOptions input;
  std::string arm;
  std::vector<std::string> params;
  std::vector<std::string> scenarios;
  std::vector<std::string> limits;
  std::uint32_t evaluations = 200;
  std::uint32_t repetitions = 2;
  std::uint32_t finalists = 8;
  std::uint32_t validation = 6;
  std::string out;
  unsigned jobs = 0;
  bool quiet = false;
};

struct Task {
  config::CcConfig arm;
  const cc::AlgorithmInfo* algorithm = nullptr;
  std::vector<PreparedScenario> scenarios;
  std::vector<tuner::Limit> limits;
  std::optional<tuner::SearchSpace> space;
  tuner::SearchRecord record;
};

std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return config::list_names(views);
}

void choose_arm(const config::Experiment& experiment, const TuneOptions& options, Task& task,
                std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const config::Arm& arm : experiment.arms) {
    names.push_back(arm.name);
    if (options.arm.empty() ? names.size() == 1 : arm.name == options.arm) task.arm = arm.cc;
    if (arm.name == options.arm || options.arm.empty()) {
      task.algorithm = cc::find(task.arm.algorithm);
    }
  }
  if (task.algorithm == nullptr) {
    errors.push_back(fmt::format("--arm {}: {} has {}", options.arm, options.input.file,
                                 listed(names)));
  }
}

void choose_scenarios(const config::Experiment& experiment, const TuneOptions& options, Task& task,
                      std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const config::Scenario& scenario : experiment.scenarios) names.push_back(scenario.name);
  for (const std::string& wanted : options.scenarios) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      errors.push_back(fmt::format("--scenario {}: {} has {}", wanted, options.input.file,
                                   listed(names)));
    }
  }
  for (const config::Scenario& scenario : experiment.scenarios) {
    const auto& wanted = options.scenarios;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), scenario.name) == wanted.end()) {
      continue;
    }
    auto prepared = prepare(scenario);
    errors.insert(errors.end(), prepared.errors.begin(), prepared.errors.end());
    task.scenarios.push_back(std::move(prepared.value));
    task.record.scenarios.push_back(scenario.name);
  }
}

void read_limits(const TuneOptions& options, Task& task, std::vector<std::string>& errors) {
  task.limits = tuner::default_limits();
  for (const std::string& text : options.limits) {
    const std::size_t equals = text.find('=');
    const auto metric = experiment::metric_by_name(text.substr(0, equals));
    char* end = nullptr;
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    const double most = std::strtod(number.c_str(), &end);
    if (!metric || number.empty() || *end != '\0' || !(most >= 0) || !std::isfinite(most)) {
      errors.push_back(fmt::format(
          "--limit {}: expected METRIC=MOST, METRIC a name of docs/experiments.md such as "
          "queue_max_bytes, MOST a number >= 0 in its unit",
          text));
      continue;
    }
    std::erase_if(task.limits, [&](const tuner::Limit& l) { return l.metric == *metric; });
    task.limits.push_back({*metric, most});
  }
}

void make_space(const TuneOptions& options, Task& task, std::vector<std::string>& errors) {
  std::vector<tuner::DimensionRequest> requests;
  for (const std::string& text : options.params) {
    const auto request = tuner::parse_dimension(text);
    if (!request) {
      errors.push_back(fmt::format("--param {}: expected NAME or NAME=LOW:HIGH", text));
      continue;
    }
    requests.push_back(*request);
  }
  if (task.algorithm == nullptr || task.scenarios.empty()) return;
  cc::PortFacts facts;
  facts.link_rate = task.scenarios.front().scenario.fabric.rate;
  std::vector<cc::ParamOverride> overrides;
  for (const config::ParamValue& value : task.arm.params) {
    overrides.push_back({value.name, value.value});
  }
  // The reader has checked the arm, so this resolves.
  const auto resolved =
      cc::resolve_params(*task.algorithm, task.arm.profile, overrides, facts);
  task.space.emplace(*task.algorithm, std::get<std::vector<double>>(resolved), requests, errors);
}

// The command that repeats the search.
std::string command_text(const TuneOptions& options) {
  std::string text = "paceline tune " + options.input.file;
  const auto add = [&text](std::string_view option, const std::string& value) {
    text += fmt::format(" {} {}", option, value);
  };
  if (!options.arm.empty()) add("--arm", options.arm);
  for (const std::string& name : options.scenarios) add("--scenario", name);
  for (const std::string& param : options.params) add("--param", param);
  for (const std::string& limit : options.limits) add("--limit", limit);
  add("--evaluations", std::to_string(options.evaluations));
  add("--repetitions", std::to_string(options.repetitions));
  add("--finalists", std::to_string(options.finalists));
  add("--validation", std::to_string(options.validation));
  for (const std::string& set : options.input.overrides()) add("--set", set);
  return text;
}

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
  fmt::print("\nOn {} seeds that the search has not seen:\n",
             task.record.validation_seeds.size());
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
  fmt::print("\nThe objective falls by 0.01 when a collective takes 1 % longer.\n\nFor an [[arm]]:\n\n"
             "algorithm = \"{}\"\nprofile = \"{}\"\n",
             task.record.algorithm, task.record.profile);
  for (const tuner::Dimension& dimension : task.space->dimensions()) {
    fmt::print("params.{} = {}\n", task.algorithm->params[dimension.param].name,
               cc::number_text(best->values[dimension.param]));
  }
}

int run(const TuneOptions& options) {
  config::ReaderOptions reader;
  reader.algorithms = cc::algorithms();
  reader.overrides = options.input.overrides();
  auto read = config::read_experiment_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  Task task;
  std::vector<std::string> errors;
  choose_arm(read.value, options, task, errors);
  choose_scenarios(read.value, options, task, errors);
  read_limits(options, task, errors);
  make_space(options, task, errors);
  const std::string out = options.out.empty() ? read.value.name + ".search.json" : options.out;
  for (std::string& error : check_output(out)) errors.push_back(std::move(error));
  if (!errors.empty()) return report_errors(errors);

  tuner::SearchRecord& record = task.record;
  record.version = PACELINE_VERSION;
  record.command = command_text(options);
  record.algorithm = task.arm.algorithm;
  record.profile = task.arm.profile;
  record.seed = read.value.seed;
  record.limits = task.limits;
  for (std::uint32_t r = 0; r < options.repetitions + options.validation; ++r) {
    auto& seeds = r < options.repetitions ? record.search_seeds : record.validation_seeds;
    seeds.push_back(experiment::repetition_seed(record.seed, r));
  }
  const unsigned jobs =
      options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const SearchRunner runner(task.scenarios, task.arm, *task.algorithm, *task.space, task.limits,
                            jobs);
  search(runner, options, task, line);
  line.clear();
  if (record.candidates.empty()) {
    fmt::print(stderr, "paceline: interrupted before the first candidate: nothing written\n");
    return kExitInterrupted;
  }
  const std::string text = tuner::record_text(record, *task.algorithm, *task.space);
  try {
    experiment::write_results_file(out, text);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  const bool interrupted = Interrupt::flag().load();
  if (!options.quiet && !interrupted) print_result(task);
  if (!options.quiet) {
    fmt::print("\n{} candidates: {} (content hash {:016x})\n", record.candidates.size(), out,
               ContentHash{}.text(text).value());
  }
  if (interrupted) {
    fmt::print(stderr, "paceline: interrupted: the candidates judged so far were kept\n");
    return kExitInterrupted;
  }
  return kExitGood;
}

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "search the parameters of an algorithm for given scenarios, under hard limits");
  options->input.add_to(*command, "experiment whose scenarios are used (TOML)", true);
  command->add_option("--arm", options->arm, "arm to start from (default: the first)")
      ->type_name("NAME");
  command
      ->add_option("--param", options->params,
                   "parameter to search; without bounds 1/16 to 16 times where it starts. "
                   "`paceline cc show ALGORITHM` lists them")
      ->type_name("NAME[=LOW:HIGH]")
      ->required();
  command->add_option("--scenario", options->scenarios, "only this one; may be repeated")
      ->type_name("NAME");
  command
      ->add_option("--limit", options->limits,
                   "no run may exceed it (default: drops=0 and pfc_pause_us=0)")
      ->type_name("METRIC=MOST");
  command->add_option("--evaluations", options->evaluations, "candidates to try")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  command->add_option("--repetitions", options->repetitions, "seeds per candidate")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--finalists", options->finalists, "best candidates tried on new seeds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--validation", options->validation, "new seeds for them")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--out", options->out, "every candidate as JSON (default: NAME.search.json)")
      ->type_name("FILE.json");
  command->add_option("-j,--jobs", options->jobs, "runs at a time (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command->footer(
      "Tries parameter sets by a tree-structured Parzen estimator. What counts: the efficiency of\n"
      "collectives; for other traffic the p99 slowdown of small and the mean slowdown of large\n"
      "messages. A candidate beyond a limit is refused whatever it gains; the best are run again\n"
      "on new seeds before one is named (docs/tuning.md).\n"
      "Examples:\n"
      "  paceline tune configs/experiments/first.toml --scenario incast-32to1 \\\n"
      "      --param additive_increase_mbps --param increase_timer_us --limit queue_max_bytes=16e6\n"
      "Exit status: 0 good, 2 bad input, 130 interrupted (what was judged is kept).");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
