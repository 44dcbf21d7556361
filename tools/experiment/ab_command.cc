// `paceline ab`: an experiment of paired replays in virtual time.

#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/design.h"
#include "control/experiment/progress.h"
#include "control/experiment/report/table.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/experiment/detail_collector.h"
#include "tools/experiment/report_file.h"
#include "tools/experiment/run_pool.h"
#include "tools/plugin/plugin_check.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

namespace {

struct AbOptions {
  InputOptions input;
  std::string out;
  std::string report;
  unsigned jobs = 0;
  bool no_report = false;
  bool no_detail = false;
  bool check = false;
  bool quiet = false;
  bool all_metrics = false;
  bool markdown = false;
};

// Results of the planned runs, by the index of the plan.
class PlannedRuns {
 public:
  PlannedRuns(const config::Experiment& experiment, const std::vector<PreparedScenario>& scenarios,
              bool check, bool detail)
      : experiment_(experiment),
        scenarios_(scenarios),
        plan_(experiment::paired_replay(experiment)),
        check_(check),
        detail_(detail),
        collector_(experiment),
        results_(plan_.size()) {}

  void run(unsigned jobs, ProgressLine& line) {
    std::vector<experiment::WorkUnit> units;
    for (const experiment::PlannedRun& planned : plan_) {
      units.push_back(
          {planned.scenario * static_cast<std::uint32_t>(experiment_.arms.size()) + planned.arm,
           1});
    }
    pool_.run(
        units, jobs, line, [this](std::size_t index) { return execute(index); },
        [this](std::size_t index) {
          return "scenario '" + scenarios_[plan_[index].scenario].scenario.name + "'";
        });
  }

  // Results of runs that came to their end.
  std::vector<experiment::RunResult> finished() const {
    std::vector<experiment::RunResult> all;
    for (const auto& result : results_) {
      if (result) all.push_back(*result);
    }
    return all;
  }
  const DetailCollector& detail() const { return collector_; }
  const RunPool& pool() const { return pool_; }

 private:
  RunPool::Executed execute(std::size_t index) {
    const experiment::PlannedRun& planned = plan_[index];
    const config::Arm& arm = experiment_.arms[planned.arm];
    RunControl control;
    control.check_invariants = check_;
    control.stop = &Interrupt::flag();
    control.series = detail_ && DetailCollector::wants_series(planned.repetition);
    auto run = std::make_shared<ScenarioRun>(
        run_scenario(scenarios_[planned.scenario], arm.cc, planned.seed, control));
    run->result.arm = arm.name;
    run->result.repetition = planned.repetition;
    return {run->result.hops, run->end == RunEnd::stopped, [this, index, run] {
              const experiment::PlannedRun& of = plan_[index];
              if (detail_) collector_.add(of.scenario, of.arm, of.repetition, *run);
              results_[index] = std::move(run->result);
              return std::string();
            }};
  }

  const config::Experiment& experiment_;
  const std::vector<PreparedScenario>& scenarios_;
  std::vector<experiment::PlannedRun> plan_;
  bool check_;
  bool detail_;
  DetailCollector collector_;
  std::vector<std::optional<experiment::RunResult>> results_;
  RunPool pool_;
};

// The user's file and overrides: enough to repeat the experiment.
std::string configuration_text(const InputOptions& input) {
  std::ifstream file(input.file);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (const std::string& set : input.overrides()) text += "# --set " + set + "\n";
  return text;
}

int run(const AbOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_experiment_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  const config::Experiment& experiment = read.value;
  std::vector<PreparedScenario> scenarios;
  std::vector<std::string> errors = plugins_out_of_bounds();
  for (const config::Scenario& scenario : experiment.scenarios) {
    auto prepared = prepare(scenario);
    errors.insert(errors.end(), prepared.errors.begin(), prepared.errors.end());
    scenarios.push_back(std::move(prepared.value));
  }
  const std::string out = options.out.empty() ? experiment.name + ".results.json" : options.out;
  const std::string page = options.no_report        ? ""
                           : options.report.empty() ? report_name(out)
                                                    : options.report;
  for (const std::string& path : {out, page}) {
    for (std::string& error : check_output(path)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return report_errors(errors);

  const unsigned jobs =
      options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  if (!options.quiet) {
    fmt::print("experiment {}: {} scenarios, {} arms, {} repetitions, seed {}, {} jobs\n",
               experiment.name, experiment.scenarios.size(), experiment.arms.size(),
               experiment.repetitions, experiment.seed, jobs);
    std::fflush(stdout);
  }
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  PlannedRuns runs(experiment, scenarios, options.check, !options.no_detail);
  runs.run(jobs, line);
  const RunPool& pool = runs.pool();
  if (!pool.error().empty()) return report_errors({options.input.file + ": " + pool.error()});

  experiment::Results results;
  results.version = experiment::kResultsVersion;
  results.configuration = configuration_text(options.input);
  results.plan = experiment::plan_of(experiment);
  results.runs = runs.finished();
  if (!options.no_detail) {
    results.detail = runs.detail().finish(options.input.file, options.input.overrides());
  }
  if (results.runs.empty()) {
    fmt::print(stderr, "paceline: interrupted before the first run was over: nothing written\n");
    return kExitInterrupted;
  }
  const experiment::Analysis analysis = experiment::analyse(results.runs, results.plan);
  const std::string text = experiment::results_text(results, analysis);
  try {
    experiment::write_results_file(out, text);
    if (!page.empty()) write_report(page, results, analysis, out);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }

  experiment::TableOptions table;
  table.all_metrics = options.all_metrics;
  if (!options.quiet) {
    fmt::print("\n{}\n", options.markdown ? experiment::format_markdown(analysis, table)
                                          : experiment::format_table(analysis, table));
    fmt::print("\nraw results: {} (content hash {:016x})\n", out,
               experiment::content_hash(results, analysis));
    if (!page.empty()) fmt::print("{}", written_text(page));
    fmt::print("{}\n", pool.speed_text());
  }
  if (Interrupt::flag().load()) {
    fmt::print(stderr, "paceline: interrupted: {} runs were kept\n", results.runs.size());
    return kExitInterrupted;
  }
  for (const experiment::RunResult& result : results.runs) {
    if (result.status != experiment::RunStatus::ok) {  // max_hops is a failure, too
      fmt::print(stderr, "paceline: {} under {}, repetition {}: {}\n", result.scenario, result.arm,
                 result.repetition, result.reason);
      return kExitFailed;
    }
  }
  return kExitGood;
}

}  // namespace

void add_ab_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* command = app.add_subcommand(
      "ab", "compare congestion-control arms over scenarios by paired replays in virtual time");
  options->input.add_to(*command, "experiment (TOML; docs/scenarios.md lists every key)", true);
  command->add_option("--out", options->out, "raw results as JSON (default: NAME.results.json)")
      ->type_name("FILE.json");
  command
      ->add_option("--report", options->report,
                   "the page of charts and tables (default: beside the results, NAME.report.html)")
      ->type_name("FILE.html");
  command->add_flag("--no-report", options->no_report, "write no page");
  command->add_flag(
      "--no-detail", options->no_detail,
      "record no distributions and time series: a smaller results file, fewer charts");
  command->add_option("-j,--jobs", options->jobs, "runs at a time (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--all-metrics", options->all_metrics, "print every metric, not the headlines");
  command->add_flag("--markdown", options->markdown, "print Markdown tables");
  command->add_flag("--check", options->check,
                    "check the algorithms' invariants at every step (slow)");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command->footer(
      "Every repetition replays the same arrivals under every arm, so differences are paired; the\n"
      "statistics are over repetitions, never over flows (docs/experiments.md).\n"
      "Examples:\n"
      "  paceline ab configs/experiments/first.toml\n"
      "  paceline ab configs/experiments/first.toml --set repetitions=24 --jobs 1\n"
      "  paceline ab my.toml --set fabric.rate=400Gb/s --set arm.cadence.params.eta=1.0\n"
      "Exit status: 0 good, 1 a run failed or an invariant broke, 2 bad input, 130 interrupted\n"
      "(finished repetitions are kept and analysed).");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
