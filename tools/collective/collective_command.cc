// `paceline collective`: collectives of a group of ranks, alone.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "control/experiment/results/results_file.h"
#include "dataplane/base/text/comma_list.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/collective/collective_bench.h"
#include "tools/collective/testbed_bench.h"
#include "tools/collective/testbed_ranks.h"
#include "tools/collective/tune/tune_command.h"
#include "tools/run/scenario_run.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

namespace {

struct BenchOptions {
  InputOptions input;
  std::string operation = "all_reduce";
  std::string schedules = "all";
  std::string least = "1 KiB";
  std::string most = "64 MiB";
  std::uint32_t factor = 4;
  std::uint32_t iterations = 4;
  std::string out;
  bool quiet = false;
  std::string testbed;  // empty: virtual time
  std::uint32_t ranks = 0;
  std::uint32_t per_server = 1;
};

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (std::size_t op = 0; op < workload::kCollectiveOps; ++op) {
    names.emplace_back(to_string(static_cast<workload::CollectiveOp>(op)));
  }
  return names;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (const std::string_view word : comma_list(list)) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

std::vector<std::uint64_t> sizes_of(const BenchOptions& options, std::vector<std::string>& errors) {
  std::uint64_t ends[2] = {};
  const std::pair<const char*, const std::string*> given[] = {{"--min", &options.least},
                                                              {"--max", &options.most}};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto parsed = config::parse_bytes(*given[i].second);
    if (!parsed.ok() || parsed.value == 0) {
      errors.push_back(fmt::format("{} {}: expected a number of bytes such as \"64 MiB\"",
                                   given[i].first, *given[i].second));
      return {};
    }
    ends[i] = parsed.value;
  }
  if (ends[0] > ends[1]) {
    errors.push_back(
        fmt::format("--min {}: expected at most --max {}", options.least, options.most));
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = ends[0]; size <= ends[1]; size *= options.factor) {
    sizes.push_back(size);
    if (size > ends[1] / options.factor) break;
  }
  return sizes;
}

// Shows how far a bench is.
std::function<void(const BenchProgress&)> shown_by(ProgressLine& line) {
  return [&line, begin = wall_seconds()](const BenchProgress& at) {
    const double share = (at.done + at.share) / at.all;
    const double spent = wall_seconds() - begin;
    line.show(share, share > 0.01 ? spent / share - spent : std::nan(""), at.what);
  };
}

int end_bench(const BenchOptions& options, const std::vector<BenchRow>& rows,
              const std::string& text, const std::string& json) {
  try {
    if (!options.out.empty()) experiment::write_results_file(options.out, json);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.quiet) fmt::print("{}", text);
  if (Interrupt::flag().load()) return kExitInterrupted;
  const bool failed = std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) {
    return !row.problem.empty() || row.right == false;
  });
  return failed ? kExitFailed : kExitGood;
}

// The ranks are the first NICs of the testbed.
std::vector<std::string> choose_nics(const BenchOptions& options, TestbedPlan& plan) {
  auto nics = testbed_nics(options.testbed);
  if (!nics.ok() || nics.value.empty()) return std::move(nics.errors);
  const std::size_t there = nics.value.size();
  const std::size_t ranks = options.ranks == 0 ? there : options.ranks;
  if (ranks < 2 || ranks > there) {
    return {fmt::format("--ranks {}: testbed {} has {} NICs, and a collective needs two or more",
                        ranks, options.testbed, there)};
  }
  nics.value.resize(ranks);
  plan.nics = std::move(nics.value);
  return {};
}

int run_on_testbed(const BenchOptions& options, const BenchPlan& bench) {
  TestbedPlan plan;
  plan.testbed = options.testbed;
  plan.operation = bench.operation;
  plan.sizes = bench.sizes;
  plan.iterations = bench.iterations;
  plan.per_server = options.per_server;
  plan.chunk_bytes = bench.scenario.workload.job.chunk_bytes;
  plan.window = bench.scenario.workload.job.window;
  if (!options.input.file.empty()) {
    return report_errors(
        {fmt::format("{}: a testbed has a fabric of its own; --set of "
                     "workload.job.chunk_bytes and .window is allowed",
                     options.input.file)});
  }
  const auto errors = choose_nics(options, plan);
  if (!errors.empty()) return report_errors(errors);
  if (plan.nics.empty()) return kExitBadInput;
  const auto ranks = static_cast<std::uint32_t>(plan.nics.size());
  plan.schedules = options.schedules == "all"
                       ? possible_schedules(plan.operation, ranks, plan.per_server)
                       : words_of(options.schedules);
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const auto rows = run_testbed_bench(plan, Interrupt::flag(), shown_by(line));
  line.clear();
  if (!rows.ok()) return report_errors(rows.errors);
  const int code = end_bench(options, rows.value.rows, testbed_text(plan, rows.value.rows),
                             testbed_json(plan, rows.value.rows));
  report_errors(rows.value.failures);
  return code;
}

int run_bench_command(const BenchOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  reader.overrides.insert(reader.overrides.begin(), "workload.kind=job");
  auto read = options.input.file.empty()
                  ? config::read_scenario_text("", "command line", ".", reader)
                  : config::read_scenario_file(options.input.file, reader);
  std::vector<std::string> errors = std::move(read.errors);
  BenchPlan plan;
  plan.scenario = std::move(read.value);
  if (errors.empty() && plan.scenario.workload.job.format != "collective") {
    errors.emplace_back("workload.job.format: expected \"collective\"");
  }
  if (errors.empty() && plan.scenario.workload.background.kind != "none") {
    errors.emplace_back("workload.background.kind: expected \"none\" where collectives are timed");
  }
  plan.operation = options.operation;
  plan.iterations = options.iterations;
  plan.sizes = sizes_of(options, errors);
  if (!errors.empty()) return report_errors(errors);
  if (const auto unwritable = check_output(options.out); !unwritable.empty()) {
    return report_errors(unwritable);
  }
  if (!options.testbed.empty()) return run_on_testbed(options, plan);
  const auto prepared = prepare(plan.scenario);  // a topology file says how many ranks there are
  if (!prepared.ok()) return report_errors(prepared.errors);
  const config::FabricConfig& fabric = prepared.value.scenario.fabric;
  plan.scenario.fabric.hosts = fabric.hosts;
  plan.schedules = options.schedules == "all"
                       ? possible_schedules(plan.operation, fabric.hosts, fabric.nics)
                       : words_of(options.schedules);
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const auto rows = run_bench(plan, Interrupt::flag(), shown_by(line));
  line.clear();
  if (!rows.ok()) return report_errors(rows.errors);
  return end_bench(options, rows.value, bench_text(plan, rows.value), bench_json(plan, rows.value));
}

void print_schedules() {
  for (const std::string& name : operations()) {
    fmt::print("{}\n", name);
    const workload::CollectiveOp op = *workload::find_collective_op(name);
    for (const std::string_view schedule : workload::schedule_names(op)) {
      fmt::print("  {}\n", schedule);
    }
  }
}

void add_testbed_options(const config::Command& command, BenchOptions& options) {
  const config::Option testbed =
      command
          .option("--testbed", options.testbed,
                  "run between the NICs of a running testbed, over verbs, and compare the data")
          .type("NAME");
  command.option("--ranks", options.ranks, "with --testbed: use its first N NICs (default: all)")
      .type("N")
      .needs(testbed);
  command
      .option("--per-server", options.per_server,
              "with --testbed: ranks per server, as schedules see it (default: 1)")
      .type("G")
      .needs(testbed);
}

void add_bench(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  const config::Command command = parent.subcommand(
      "bench",
      "time collectives of several sizes by several schedules, in virtual time or on a testbed");
  options->input.add_to(command, "scenario with the fabric; [workload] may be missing", false);
  command.option("--operation", options->operation, "which collective (default: all_reduce)")
      .type("NAME")
      .one_of(operations());
  command
      .option("--schedules", options->schedules,
              "by which schedules, separated by commas: names, and in virtual time files of "
              "MSCCL XML (default: all that the number of ranks allows)")
      .type("NAME,...");
  command.option("--min", options->least, "the smallest buffer of a rank (default: 1 KiB)")
      .type("BYTES");
  command.option("--max", options->most, "the largest (default: 64 MiB)").type("BYTES");
  command.option("--factor", options->factor, "ratio of each size to the one before (default: 4)")
      .type("N")
      .within(2U, 1U << 30);
  command
      .option("--iterations", options->iterations, "runs of each, after a warm-up run (default: 4)")
      .type("N")
      .within(1U, 100'000U);
  add_testbed_options(command, *options);
  command.option("--out", options->out, "write the table as JSON").type("FILE.json");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Size is the whole buffer of a rank, as nccl-tests counts it; algbw = size / time, and "
      "busbw\n"
      "what a ring would put on each link, comparable to the rate of the NIC.\n"
      "Examples:\n"
      "  paceline collective bench --set fabric.hosts=16 --set 'fabric.rate=400 Gb/s'\n"
      "  paceline collective bench configs/scenarios/all-reduce.toml --operation all_to_all\n"
      "  paceline collective bench --schedules ring,double_tree --min 64KiB --max 1GiB \\\n"
      "      --set cc.algorithm=dcqcn\n"
      "  paceline collective bench --testbed default --operation all_gather --max 1MiB\n"
      "Exit status: 0 good, 1 a run failed or data is wrong, 2 bad input, 130 interrupted.");
  command.callback([options, &exit_code] { exit_code = run_bench_command(*options); });
}

}  // namespace

void add_collective_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "collective", "collectives of a group of ranks: which schedules there are, and how fast");
  command.require_subcommand();
  command.subcommand("list", "print the schedules of every collective, the default one first")
      .callback([&exit_code] {
        print_schedules();
        exit_code = kExitGood;
      });
  add_bench(command, exit_code);
  add_collective_tune(command, exit_code);
  add_collective_explain(command, exit_code);
}

}  // namespace paceline::tools
