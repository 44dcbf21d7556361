#include "tools/collective/rank/program/rank_options.h"

#include <fmt/format.h>

#include <utility>

#include "dataplane/config/command_line.h"
#include "tools/collective/rank/part_runner.h"

namespace paceline::rank {

namespace {

constexpr int kBadInput = 2;

void add_options(const config::Command& app, RankOptions& options) {
  app.flag("--plan", options.plan,
           "run the part of a job that the parent sends, in the place of a collective");
  app.option("--rank", options.rank, "this one, from 0").type("R").required();
  app.option("--ranks", options.ranks, "of the group").type("N").within(2U, kMostRanks).required();
  app.option("--per-server", options.per_server, "ranks of a server (default: 1)").type("G");
  app.option("--operation", options.operation, "which collective (default: all_reduce)")
      .type("NAME");
  app.option("--schedule", options.schedule, "by which schedule (default: ring)").type("NAME");
  app.option("--bytes", options.bytes, "whole buffers of a rank, multiples of 4")
      .type("S,...")
      .separated_by(',');
  app.option("--iterations", options.iterations,
             "of each size, after one that is not counted (default: 4)")
      .type("K")
      .within(1U, 100'000U);
  app.option("--chunk-bytes", options.chunk_bytes, "the largest message (default: 1 MiB)")
      .type("B")
      .within(std::uint64_t{4}, std::uint64_t{1} << 30);
  app.option("--window", options.window, "parts in flight at once (default: 8)")
      .type("W")
      .within(1U, kMostWindow);
  app.option("--meet", options.meet, "socket of the parent").type("PATH").required();
  app.option("--timeout", options.patience, "seconds without progress (default: 60)")
      .type("S")
      .within(0.1, 3600.0);
}

std::vector<std::string> option_errors(const RankOptions& options) {
  std::vector<std::string> errors;
  if (options.rank >= options.ranks) {
    errors.push_back(
        fmt::format("--rank {}: allowed is [0 .. {}]", options.rank, options.ranks - 1));
  }
  if (options.plan) return errors;
  if (options.bytes.empty()) errors.emplace_back("--bytes: expected a list of sizes, or --plan");
  for (const std::uint64_t bytes : options.bytes) {
    if (bytes == 0 || bytes % sizeof(float) != 0) {
      errors.push_back(
          fmt::format("--bytes {}: expected a multiple of 4, for the data is float32", bytes));
    }
  }
  if (!workload::find_collective_op(options.operation)) {
    std::string names;
    for (std::size_t op = 0; op < workload::kCollectiveOps; ++op) {
      names += fmt::format("{}{}", op == 0 ? "" : ", ",
                           to_string(static_cast<workload::CollectiveOp>(op)));
    }
    errors.push_back(fmt::format("--operation {}: expected one of {}", options.operation, names));
  }
  return errors;
}

}  // namespace

RankCommand read_rank_command(int argc, char** argv) {
  RankCommand command;
  const config::Command app{
      "One rank of a collective or a job over verbs; `paceline collective bench --testbed` and "
      "`paceline job run` start them all"};
  add_options(app, command.options);
  command.exit_code = config::read_command_line(app, argc, argv, "paceline-rank");
  if (command.exit_code) return command;
  const RankOptions& options = command.options;
  std::vector<std::string> errors = option_errors(options);
  if (errors.empty() && !options.plan) {
    auto made = workload::make_schedule(*workload::find_collective_op(options.operation),
                                        options.schedule, {options.ranks, options.per_server});
    errors = std::move(made.errors);
    command.schedule = std::move(made.value);
    if (command.schedule.transfers.size() > kMostTransfers) {
      errors.push_back(fmt::format("{} by {}: {} transfers: allowed are {}", options.operation,
                                   options.schedule, command.schedule.transfers.size(),
                                   kMostTransfers));
    }
  }
  for (const std::string& error : errors) {
    fmt::print(stderr, "paceline-rank: error: {}\n", error);
  }
  if (!errors.empty()) command.exit_code = kBadInput;
  return command;
}

}  // namespace paceline::rank
