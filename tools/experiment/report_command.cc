// `paceline report`: a results file as a page. `paceline ab` writes the same page.

#include <memory>

#include <fmt/format.h>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/results/results_file.h"
#include "tools/cli/cli.h"
#include "tools/experiment/report_file.h"

namespace paceline::tools {

namespace {

struct ReportOptions {
  std::string results;
  std::string out;
  bool quiet = false;
};

int run(const ReportOptions& options) {
  const std::string out = options.out.empty() ? report_name(options.results) : options.out;
  try {
    const experiment::Results results = experiment::read_results_file(options.results);
    if (const auto errors = check_output(out); !errors.empty()) return report_errors(errors);
    const experiment::Analysis analysis = experiment::analyse(results.runs, results.plan);
    write_report(out, results, analysis, options.results);
    if (!options.quiet) {
      fmt::print("{}", written_text(out));
      if (results.detail.empty()) {
        fmt::print(
            "no detail in {}: without distributions and time series (written with --no-detail, or "
            "by an earlier version)\n",
            options.results);
      }
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return kExitGood;
}

}  // namespace

void add_report_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  const config::Command command =
      app.subcommand("report", "make a page of an experiment's results, to read and to send");
  command.option("RESULTS", options->results, "results file of `paceline ab` (JSON)").required();
  command
      .option("-o,--out", options->out,
              "the page (default: RESULTS with .report.html instead of .results.json)")
      .type("FILE.html");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "The page is one file: it opens from disk, needs no network, can be printed, and contains "
      "the\n"
      "results it was made from. It has a verdict in words for every scenario, effects with their\n"
      "intervals, completion times, slowdown by message size, one repetition over time (queue,\n"
      "rate, pauses, CNPs), limits and costs; below every figure are its data and the command "
      "that\n"
      "repeats it. `paceline ab` writes the same page beside its results.\n"
      "Examples:\n"
      "  paceline ab configs/experiments/first.toml        writes first.results.json and\n"
      "                                                    first.report.html\n"
      "  paceline report first.results.json -o review.html\n"
      "Exit status: 0 good, 2 bad input (every mistake with its place in the file).");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
