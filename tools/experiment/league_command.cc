// `paceline league`: every algorithm over the reference scenarios.

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/experiment/results/results_file.h"
#include "control/league/bounds.h"
#include "control/league/page/page.h"
#include "control/league/results.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/experiment/league_tasks.h"
#include "tools/task/run/task_run.h"

namespace paceline::tools {

namespace {

struct LeagueOptions {
  std::string file;
  std::string out;
  std::string page;
  std::string bounds;
  std::string write_bounds;
  std::vector<std::string> only;
  std::vector<std::string> entries;
  std::uint32_t repetitions = 0;
  TaskOptions tasks;
  bool quick = false;
  bool no_page = false;
};

// The command that makes the same results, without what concerns only this machine.
std::string league_command_text(const LeagueOptions& options) {
  std::string out = "paceline league " + options.file + (options.quick ? " --quick" : "");
  if (!options.only.empty()) out += fmt::format(" --only {}", fmt::join(options.only, ","));
  if (!options.entries.empty())
    out += fmt::format(" --entries {}", fmt::join(options.entries, ","));
  if (options.repetitions != 0) out += fmt::format(" --repetitions {}", options.repetitions);
  return out;
}

std::vector<std::string> prepare_cells(const league::Plan& plan,
                                       std::vector<PreparedScenario>& out) {
  std::vector<std::string> errors;
  for (const config::Scenario& cell : plan.cells) {
    auto prepared = prepare(cell);
    for (std::string& error : prepared.errors) {
      if (std::find(errors.begin(), errors.end(), error) == errors.end()) {
        errors.push_back(std::move(error));
      }
    }
    out.push_back(std::move(prepared.value));
  }
  return errors;
}

// Cells that are outside their bounds, one line each on standard error; the exit code.
int check_bounds_file(const std::string& file, const league::Results& results, bool quiet) {
  const auto read = league::read_bounds_file(file, results.plan);
  if (!read.ok()) return report_errors(read.errors);
  const league::BoundsCheck check = league::check_bounds(read.value, results);
  for (const std::string& line : check.left) fmt::print(stderr, "paceline: {}\n", line);
  if (!quiet) {
    fmt::print("bounds: {} of {} figures inside ({})\n", check.checked - check.left.size(),
               check.checked, file);
    for (const std::string& cell : check.unbounded) fmt::print("        no bounds: {}\n", cell);
  }
  if (check.checked == 0) {
    return report_errors({fmt::format("{}: has no bounds for any of these cells", file)});
  }
  return check.left.empty() ? kExitGood : kExitFailed;
}

int write_league_files(const LeagueOptions& options, const league::Results& results,
                       const std::string& out, const std::string& page) {
  const std::string text = league::results_text(results);
  try {
    experiment::write_results_file(out, text);
    if (!page.empty()) experiment::write_results_file(page, league::league_page(results, text));
    if (!options.write_bounds.empty()) {
      experiment::write_results_file(options.write_bounds, league::bounds_text(results));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return kExitGood;
}

int run(const LeagueOptions& options, const Workers& workers) {
  league::PlanOptions how;
  how.reader = reader_options();
  how.size = options.quick ? league::Size::quick : league::Size::full;
  how.only = options.only;
  how.entries = options.entries;
  how.repetitions = options.repetitions;
  auto read = league::read_plan_file(options.file, how);
  if (!read.ok()) return report_errors(read.errors);
  const league::Plan& plan = read.value;
  std::vector<PreparedScenario> prepared;
  std::vector<std::string> errors = prepare_cells(plan, prepared);
  const std::string stem = fmt::format("{}.{}", plan.name, to_text(plan.size));
  const std::string out = options.out.empty() ? stem + ".json" : options.out;
  const std::string page = options.no_page        ? ""
                           : options.page.empty() ? stem + ".html"
                                                  : options.page;
  TaskOptions how_run = options.tasks;
  if (how_run.runs.empty() && how_run.gather.empty()) how_run.runs = plan.name + ".runs.jsonl";
  for (const std::string& path : {out, page, how_run.runs, options.write_bounds}) {
    if (!how_run.writes_results(workers)) break;
    for (std::string& error : check_output(path)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return report_errors(errors);

  LeagueTasks list(plan, prepared);
  TaskRun runs(list, how_run, workers, league_command_text(options));
  const std::string head = fmt::format(
      "league {} ({}): {} scenarios, {} entries, {} repetitions, seed {}", plan.name,
      to_text(plan.size), plan.scenarios.size(), plan.entries.size(), plan.repetitions, plan.seed);
  if (const auto code = runs.begin(head)) return *code;
  if (const auto code = runs.execute(options.file)) return *code;
  if (!runs.whole()) {
    fmt::print(stderr,
               "paceline: interrupted: {} of {} runs are kept in {}; the same command goes on\n",
               runs.kept(), list.size(), how_run.runs);
    return kExitInterrupted;
  }

  league::Results results = league::results_of(plan, list.runs());
  results.version = experiment::kResultsVersion;
  results.command = league_command_text(options);
  if (const int code = write_league_files(options, results, out, page); code != kExitGood)
    return code;
  if (!options.tasks.quiet) {
    fmt::print("\n{}\nresults: {}\n", league::format_league(results), out);
    if (!page.empty()) fmt::print("page:    {}\n", page);
    fmt::print("{}", runs.speed_text());
  }
  int code = kExitGood;
  for (std::size_t c = 0; c < results.cells.size(); ++c) {
    if (results.cells[c].status != experiment::RunStatus::failed) continue;
    fmt::print(stderr, "paceline: {} under {}: {}\n", plan.cells[c].name,
               plan.entries[c % plan.entries.size()].name, results.cells[c].reason);
    code = kExitFailed;
  }
  if (!options.bounds.empty()) {
    code = std::max(code, check_bounds_file(options.bounds, results, options.tasks.quiet));
  }
  return code;
}

}  // namespace

void add_league_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<LeagueOptions>();
  const config::Command command = app.subcommand(
      "league", "rank every algorithm over the reference scenarios, in virtual time");
  take_shipped_files(
      command.option("FILE", options->file, "the league (TOML; docs/experiments.md has every key)")
          .required());
  command.flag("--quick", options->quick,
               "use the small size of every scenario and few repetitions");
  command.option("--only", options->only, "only these scenarios, separated by commas")
      .separated_by(',')
      .type("NAME,...");
  command.option("--entries", options->entries, "only these entries, separated by commas")
      .separated_by(',')
      .type("NAME,...");
  command
      .option("--repetitions", options->repetitions,
              "repetitions of a scenario (default: those of its size)")
      .type("N")
      .within(1U, 10'000U);
  command.option("--out", options->out, "results as JSON (default: NAME.SIZE.json)")
      .type("FILE.json");
  command.option("--page", options->page, "the page (default: NAME.SIZE.html)").type("FILE.html");
  command.flag("--no-page", options->no_page, "write no page");
  command
      .option("--check-bounds", options->bounds,
              "say which cells are outside these bounds, and by how much; exit 1 if any is")
      .type("FILE.json");
  command
      .option("--write-bounds", options->write_bounds,
              "write bounds around these results, for --check-bounds")
      .type("FILE.json");
  options->tasks.add_to(
      command, "file of finished runs, which are not run again (default: NAME.runs.jsonl)");
  command.footer(
      "Every entry gets the same arrivals. An interrupted league continues where it stopped: a run "
      "is\n"
      "kept under a hash of everything that determines it, this program included. Results are the\n"
      "same with any --jobs. docs/experiments.md says how entries are ranked and how to add one.\n"
      "Many processes and machines share the runs when mpirun starts the command:\n"
      "mpirun -n 64 paceline league FILE (Open MPI, MPICH; --jobs is then per process).\n"
      "Examples:\n"
      "  paceline league configs/league.toml --quick\n"
      "  paceline league configs/league.toml --quick --only incast,ring --entries "
      "cadence,dcqcn-paper\n"
      "  paceline league configs/league.toml\n"
      "Exit status: 0 good, 1 a run failed or a cell left its bounds, 2 bad input, 130 "
      "interrupted.");
  command.callback([options, &exit_code] {
    TaskOptions& tasks = options->tasks;
    exit_code = run_on_ranks(tasks.jobs, tasks.quiet,
                             [&](const Workers& workers) { return run(*options, workers); });
  });
}

}  // namespace paceline::tools
