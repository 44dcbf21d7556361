#include "tools/collective/tune/tune_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "control/experiment/results/results_file.h"
#include "dataplane/base/text/comma_list.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/collective/tune/nccl_table.h"
#include "tools/collective/tune/size_range.h"
#include "tools/collective/tune/tune_text.h"

namespace paceline::tools {

namespace {

struct CollectiveTuneOptions {
  InputOptions input;
  std::string operations;  // empty: that of the scenario
  std::string sizes;
  std::uint32_t iterations = 2;
  std::uint32_t evaluations = SearchLimits{}.evaluations;
  unsigned jobs = 0;
  std::string table;
  std::string json;
  bool quiet = false;
  bool one = false;  // operation and size
};

std::vector<workload::CollectiveOp> read_operations(const std::string& list,
                                                    std::vector<std::string>& errors) {
  std::vector<workload::CollectiveOp> ops;
  for (const std::string_view name : comma_list(list)) {
    const auto op = workload::find_collective_op(name);
    if (!op) {
      errors.push_back(fmt::format(
          "--operation \"{}\": expected all_reduce, reduce_scatter, all_gather, all_to_all, "
          "broadcast or reduce, several separated by commas",
          name));
    } else if (std::find(ops.begin(), ops.end(), *op) != ops.end()) {
      errors.push_back(fmt::format("--operation {}: named twice; once is allowed", name));
    } else {
      ops.push_back(*op);
    }
  }
  return ops;
}

config::Read<CollectiveTunePlan> read_tune_plan(const CollectiveTuneOptions& options,
                                                const Workers& workers) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  reader.overrides.insert(reader.overrides.begin(), "workload.kind=job");
  auto scenario = options.input.file.empty()
                      ? config::read_scenario_text("", "command line", ".", reader)
                      : config::read_scenario_file(options.input.file, reader);
  config::Read<CollectiveTunePlan> out;
  out.errors = std::move(scenario.errors);
  const config::JobConfig& job = scenario.value.workload.job;
  if (out.errors.empty() && job.format != "collective") {
    out.errors.emplace_back("workload.job.format: expected \"collective\"");
  }
  if (out.errors.empty() && scenario.value.workload.background.kind != "none") {
    out.errors.emplace_back(
        "workload.background.kind: expected \"none\" where collectives are timed");
  }
  CollectiveTunePlan& plan = out.value;
  plan.operations =
      read_operations(options.operations.empty() ? job.operation : options.operations, out.errors);
  auto sizes = parse_size_range(options.one ? "--size" : "--sizes", options.sizes);
  plan.sizes = std::move(sizes.value);
  out.errors.insert(out.errors.end(), sizes.errors.begin(), sizes.errors.end());
  if (options.one && (plan.operations.size() > 1 || plan.sizes.size() > 1)) {
    out.errors.emplace_back("--operation, --size: explain takes one of each");
  }
  for (const std::string& path : {options.table, options.json}) {
    if (!workers.first()) break;
    const auto unwritable = check_output(path);
    out.errors.insert(out.errors.end(), unwritable.begin(), unwritable.end());
  }
  plan.for_nccl = !options.table.empty();
  for (const workload::CollectiveOp op : plan.operations) {
    if (!plan.for_nccl || !nccl_collective(op).empty()) continue;
    out.errors.push_back(
        fmt::format("--operation {}: NCCL's tuner does not choose it; without -o "
                    "it is allowed",
                    to_string(op)));
  }
  if (!out.errors.empty()) return out;
  auto group = tune_group(scenario.value);
  plan.group = std::move(group.value);
  out.errors = std::move(group.errors);
  plan.space.ports = has_ports_to_plan(plan.group.scenario);
  plan.iterations = options.iterations;
  plan.limits.evaluations = options.evaluations;
  plan.workers = workers;
  return out;
}

int run_tune(const CollectiveTuneOptions& options, const Workers& workers,
             std::string (*text_of)(const CollectiveTunePlan&, const CollectiveTuneResult&)) {
  const auto plan = read_tune_plan(options, workers);
  if (!plan.ok()) return report_errors(plan.errors);
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const double begin = wall_seconds();
  const auto result = run_collective_tune(
      plan.value, Interrupt::flag(), [&](double share, const std::string& what) {
        const double spent = wall_seconds() - begin;
        line.show(share, share > 0.01 ? spent / share - spent : std::nan(""), what);
      });
  line.clear();
  if (Interrupt::flag().load()) {
    if (workers.first()) fmt::print(stderr, "paceline: interrupted: nothing written\n");
    return kExitInterrupted;
  }
  if (!result.ok()) {
    report_errors(result.errors);
    return kExitFailed;
  }
  if (!workers.first()) return kExitGood;
  try {
    if (!options.table.empty()) {
      experiment::write_results_file(options.table, nccl_table(plan.value, result.value.cells));
    }
    if (!options.json.empty()) {
      experiment::write_results_file(options.json, collective_tune_json(plan.value, result.value));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.quiet) fmt::print("{}", text_of(plan.value, result.value));
  return kExitGood;
}

void add_common(const config::Command& command, CollectiveTuneOptions& options) {
  options.input.add_to(command, "scenario with the fabric; [workload] may be missing", false);
  command
      .option("--iterations", options.iterations,
              "iterations of each emulation, after one that is not counted")
      .shows_default()
      .within(1U, 100'000U);
  command.option("--evaluations", options.evaluations, "the most emulations for one size")
      .shows_default()
      .within(8U, 100'000U);
  command.option("--json", options.json, "write everything as JSON").type("FILE.json");
  command.option("-j,--jobs", options.jobs, "emulations at a time (default: one per core)")
      .type("N")
      .within(1, 1024);
  command.flag("-q,--quiet", options.quiet, "print nothing but errors");
}

}  // namespace

void add_collective_tune(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<CollectiveTuneOptions>();
  options->sizes = "4KiB..64MiB";
  const config::Command command =
      parent.subcommand("tune",
                        "choose schedule, chunk, channels, window, queue pairs "
                        "and source ports by operation and size");
  add_common(command, *options);
  command
      .option("--operation", options->operations,
              "which collectives, separated by commas (default: that of the scenario)")
      .type("NAME,...");
  command.option("--sizes", options->sizes, "whole buffers of a rank")
      .shows_default()
      .type("FIRST..LAST[ step xN]");
  command
      .option("-o,--out", options->table,
              "write the table for NCCL's example tuner, with the schedules that NCCL has")
      .type("TABLE.csv");
  command.footer(
      "A model of latency and bandwidth, fitted to the fabric, ranks the schedules; the best are\n"
      "emulated and their settings searched, one at a time. Never slower than the default\n"
      "schedule, which is always emulated. Where switches hash, each of these is emulated with\n"
      "planned source ports too. gain: the share of the default's time that is saved.\n"
      "mpirun shares the emulations among processes and machines, as with `paceline league`.\n"
      "Examples:\n"
      "  paceline collective tune --set fabric.hosts=16 --sizes '4KiB..1MiB step x16'\n"
      "  paceline collective tune configs/scenarios/all-reduce.toml \\\n"
      "      --operation all_reduce,all_gather --sizes 64KiB..1MiB -o tuner.csv --json all.json\n"
      "Exit status: 0 good, 1 no collective runs, 2 bad input, 130 interrupted (nothing written).");
  command.callback([options, &exit_code] {
    exit_code = run_on_ranks(options->jobs, options->quiet, [&](const Workers& workers) {
      return run_tune(*options, workers, collective_tune_text);
    });
  });
}

void add_collective_explain(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<CollectiveTuneOptions>();
  options->one = true;
  const config::Command command =
      parent.subcommand("explain", "say why a schedule is the fastest for one operation and size");
  add_common(command, *options);
  command.option("--operation", options->operations, "which collective").type("NAME").required();
  command.option("--size", options->sizes, "the whole buffer of a rank").type("BYTES").required();
  command.footer(
      "For each schedule: the model's estimate with its best chunk, and the emulated time where\n"
      "there is one.\n"
      "Example:\n"
      "  paceline collective explain --set fabric.hosts=16 --operation all_reduce --size 64KiB\n"
      "Exit status: 0 good, 1 no collective runs, 2 bad input, 130 interrupted (nothing written).");
  command.callback([options, &exit_code] {
    exit_code = run_on_ranks(options->jobs, options->quiet, [&](const Workers& workers) {
      return run_tune(*options, workers, explain_text);
    });
  });
}

}  // namespace paceline::tools
