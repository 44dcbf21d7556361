// `paceline ab`: an experiment of paired replays in virtual time.

#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/report/table.h"
#include "control/experiment/results/reproduce.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/experiment/ab_tasks.h"
#include "tools/experiment/report_file.h"
#include "tools/plugin/plugin_check.h"
#include "tools/run/scenario_run.h"
#include "tools/task/run/task_run.h"

namespace paceline::tools {

namespace {

struct AbOptions {
  InputOptions input;
  std::string out;
  std::string report;
  TaskOptions tasks;
  bool no_report = false;
  bool no_detail = false;
  bool check = false;
  bool all_metrics = false;
  bool markdown = false;
};

// The user's file and overrides: enough to repeat the experiment.
std::string configuration_text(const InputOptions& input) {
  std::ifstream file(input.file);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (const std::string& set : input.overrides()) text += "# --set " + set + "\n";
  return text;
}

// The command that makes the same runs.
std::string ab_command_text(const AbOptions& options) {
  std::string text = "paceline ab" + options.input.command_words();
  if (options.no_detail) text += " --no-detail";
  return text + (options.check ? " --check" : "");
}

int run(const AbOptions& options, const Workers& workers) {
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
    if (!options.tasks.writes_results(workers)) break;
    for (std::string& error : check_output(path)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return report_errors(errors);

  AbTasks list(experiment, scenarios, options.check, !options.no_detail);
  TaskRun runs(list, options.tasks, workers, ab_command_text(options));
  const std::string head = fmt::format(
      "experiment {}: {} scenarios, {} arms, {} repetitions, seed {}", experiment.name,
      experiment.scenarios.size(), experiment.arms.size(), experiment.repetitions, experiment.seed);
  if (const auto code = runs.begin(head)) return *code;
  if (const auto code = runs.execute(options.input.file)) return *code;

  experiment::Results results;
  results.version = experiment::kResultsVersion;
  results.configuration = configuration_text(options.input);
  results.plan = experiment::plan_of(experiment);
  results.runs = list.finished();
  if (!options.no_detail) {
    results.detail = list.detail().finish(options.input.file, options.input.overrides());
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
  if (!options.tasks.quiet) {
    fmt::print("\n{}\n", options.markdown ? experiment::format_markdown(analysis, table)
                                          : experiment::format_table(analysis, table));
    fmt::print("\nraw results: {} (content hash {:016x})\n", out,
               experiment::content_hash(results, analysis));
    if (!page.empty()) fmt::print("{}", written_text(page));
    fmt::print("{}", runs.speed_text());
  }
  if (!runs.whole()) {
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

void add_ab_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<AbOptions>();
  const config::Command command = app.subcommand(
      "ab", "compare congestion-control arms over scenarios by paired replays in virtual time");
  options->input.add_to(command, "experiment (TOML; docs/scenarios.md lists every key)", true);
  command.option("--out", options->out, "raw results as JSON (default: NAME.results.json)")
      .type("FILE.json");
  command
      .option("--report", options->report,
              "the page of charts and tables (default: beside the results, NAME.report.html)")
      .type("FILE.html");
  command.flag("--no-report", options->no_report, "write no page");
  command.flag("--no-detail", options->no_detail,
               "record no distributions and time series: a smaller results file, fewer charts");
  command.flag("--all-metrics", options->all_metrics, "print every metric, not only the headlines");
  command.flag("--markdown", options->markdown, "print Markdown tables");
  command.flag("--check", options->check, "check the algorithms' invariants at every step (slow)");
  options->tasks.add_to(command, "keep finished runs in this file, and reuse runs in it");
  command.footer(
      "Every repetition replays the same arrivals under every arm, so differences are paired; the\n"
      "statistics are over repetitions, never over flows (docs/experiments.md). mpirun -n 64 "
      "paceline\n"
      "ab FILE shares the runs among processes and machines (Open MPI, MPICH).\n"
      "Examples:\n"
      "  paceline ab configs/experiments/first.toml\n"
      "  paceline ab configs/experiments/first.toml --set repetitions=24 --jobs 1\n"
      "  paceline ab my.toml --set fabric.rate=400Gb/s --set arm.cadence.params.eta=1.0\n"
      "Exit status: 0 good, 1 a run failed or an invariant broke, 2 bad input, 130 interrupted\n"
      "(finished repetitions are kept and analysed).");
  command.callback([options, &exit_code] {
    TaskOptions& tasks = options->tasks;
    exit_code = run_on_ranks(tasks.jobs, tasks.quiet,
                             [&](const Workers& workers) { return run(*options, workers); });
  });
}

}  // namespace paceline::tools
