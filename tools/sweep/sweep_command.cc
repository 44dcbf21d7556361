// `paceline sweep`: one scenario over many values of its keys.

#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>

#include <fmt/format.h>

#include "control/experiment/results/results_file.h"
#include "control/sweep/page.h"
#include "control/sweep/results.h"
#include "dataplane/base/hash.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/cli/text_table.h"
#include "tools/plugin/plugin_check.h"
#include "tools/sweep/sweep_tasks.h"
#include "tools/task/run/task_run.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kMostTableRows = 50;
constexpr std::size_t kTableWidth = 110;  // if the output is not a terminal

struct SweepOptions {
  InputOptions input;
  std::string out;
  std::string csv;
  std::string page;
  TaskOptions tasks;
  bool no_page = false;
};

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kTableWidth;
  return size.ws_col;
}

void print_table(const sweep::Results& results, const std::string& csv) {
  std::vector<Column> columns;
  for (const std::string& name : sweep::table_columns(results)) {
    const std::size_t at = columns.size();
    const bool key = at < results.plan.keys.size();
    columns.push_back({name, key, 0, key ? 0 : static_cast<std::uint32_t>(at)});
  }
  TextTable table(std::move(columns));
  const std::size_t rows = std::min(results.plan.points(), kMostTableRows);
  for (std::size_t point = 0; point < rows; ++point) {
    std::vector<Cell> cells;
    for (std::string& text : sweep::table_row(results, point)) {
      cells.push_back({std::move(text), Style::plain});
    }
    table.add(std::move(cells));
  }
  fmt::print("\n");
  for (const std::string& line : table.lines(terminal_width(), false)) fmt::print("{}\n", line);
  if (rows != results.plan.points()) {
    fmt::print("and {} points more, in {}\n", results.plan.points() - rows, csv);
  }
  fmt::print("\n");
}

// Writes the text of results to a file, piece by piece; returns its content hash.
std::uint64_t write_pieces(const std::string& path,
                           const std::function<void(const sweep::Write&)>& make) {
  ContentHash hash;
  experiment::ResultsFileWriter file(path);
  make([&](std::string_view piece) {
    hash.text(piece);
    file.write(piece);
  });
  file.finish();
  return hash.value();
}

void write_page(const std::string& path, const sweep::Results& results) {
  std::string text;
  write_json(results, [&](std::string_view piece) { text += piece; });
  experiment::write_results_file(path, sweep_page(results, text));
}

int run(const SweepOptions& options, const Workers& workers) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = sweep::read_plan_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  const sweep::Plan& plan = read.value;
  SweepTasks list(plan, reader);
  // Shares, and the gathering command, were given a plan that is already checked.
  std::vector<std::string> errors = plugins_out_of_bounds();
  if (options.tasks.share.empty() && options.tasks.gather.empty()) {
    for (std::string& error : list.check_points()) errors.push_back(std::move(error));
  }
  const std::string out = options.out.empty() ? plan.name + ".sweep.json" : options.out;
  const std::string csv = options.csv.empty() ? plan.name + ".sweep.csv" : options.csv;
  std::string page = options.page.empty() ? plan.name + ".sweep.html" : options.page;
  if (options.no_page || plan.points() > sweep::kMostPagePoints) page.clear();
  TaskOptions how_run = options.tasks;
  if (how_run.runs.empty() && how_run.gather.empty()) how_run.runs = plan.name + ".runs.jsonl";
  for (const std::string& path : {out, csv, page, how_run.runs}) {
    if (!how_run.writes_results(workers)) break;
    for (std::string& error : check_output(path)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return report_errors(errors);

  const std::string command = "paceline sweep" + options.input.command_words();
  TaskRun runs(list, how_run, workers, command);
  const std::string head = fmt::format("sweep {}: {} points, {} repetitions, seed {}", plan.name,
                                       plan.points(), plan.repetitions, plan.seed);
  if (const auto code = runs.begin(head)) return *code;
  if (const auto code = runs.execute(options.input.file)) return *code;
  if (!runs.whole()) {
    fmt::print(stderr,
               "paceline: interrupted: {} of {} runs are kept in {}; the same command goes on\n",
               runs.kept(), list.size(), how_run.runs);
    return kExitInterrupted;
  }

  sweep::Results results;
  results.plan = plan;
  results.version = experiment::kResultsVersion;
  results.command = command;
  results.runs = list.take_runs();
  results.reasons = list.reasons();
  std::uint64_t hash = 0;
  try {
    hash = write_pieces(out, [&](const sweep::Write& write) { write_json(results, write); });
    write_pieces(csv, [&](const sweep::Write& write) { write_csv(results, write); });
    if (!page.empty()) write_page(page, results);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.tasks.quiet) {
    print_table(results, csv);
    fmt::print("results: {} (content hash {:016x})\nruns:    {}\n", out, hash, csv);
    if (!page.empty()) fmt::print("page:    {}\n", page);
    if (page.empty() && !options.no_page) {
      fmt::print("page:    none, it would have more than {} points\n", sweep::kMostPagePoints);
    }
    fmt::print("{}", runs.speed_text());
  }
  if (results.reasons.empty()) return kExitGood;
  const auto& [task, reason] = *results.reasons.begin();
  fmt::print(stderr, "paceline: {} runs did not finish, first {}: {}\n", results.reasons.size(),
             list.name(task), reason);
  return kExitFailed;
}

}  // namespace

void add_sweep_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  const config::Command command = app.subcommand(
      "sweep", "run a scenario over a grid, a Latin hypercube or a list of values of its keys");
  options->input.add_to(command, "a scenario with a table [sweep] (TOML)", true);
  command
      .option("--out", options->out,
              "means and intervals of all points as JSON (default: NAME.sweep.json)")
      .type("FILE.json");
  command.option("--csv", options->csv, "every run in a row (default: NAME.sweep.csv)")
      .type("FILE.csv");
  command.option("--page", options->page, "the page (default: NAME.sweep.html)").type("FILE.html");
  command.flag("--no-page", options->no_page, "write no page");
  options->tasks.add_to(
      command, "file of finished runs, which are not run again (default: NAME.runs.jsonl)");
  command.footer(
      "Keys are those of --set:\n"
      "  [sweep]\n"
      "  repetitions = 3\n"
      "  [sweep.grid]                                 every combination\n"
      "  cc.algorithm = [\"dcqcn\", \"cadence\"]\n"
      "  fabric.rate = [\"100Gb/s\", \"400Gb/s\"]\n"
      "  [sweep.latin]                                a Latin hypercube\n"
      "  points = 32\n"
      "  workload.load = \"0.2:0.9\"\n"
      "  fabric.ecn.kmin = \"20kB:2MB log\"\n"
      "  [[sweep.list]]                               one row\n"
      "  workload.fan_in = 16\n"
      "If several are given, they are combined. All points are checked before the first run. "
      "After\n"
      "an interruption the same command continues. `paceline plan` shares the runs among "
      "machines,\n"
      "and so does mpirun -n 64 paceline sweep FILE (Open MPI, MPICH).\n"
      "Examples:\n"
      "  paceline sweep configs/sweeps/marking.toml\n"
      "  paceline sweep configs/sweeps/marking.toml --set fabric.hosts=17 --jobs 1\n"
      "Exit status: 0 good, 1 a run did not finish, 2 bad input, 130 interrupted.");
  command.callback([options, &exit_code] {
    TaskOptions& tasks = options->tasks;
    exit_code = run_on_ranks(tasks.jobs, tasks.quiet,
                             [&](const Workers& workers) { return run(*options, workers); });
  });
}

}  // namespace paceline::tools
