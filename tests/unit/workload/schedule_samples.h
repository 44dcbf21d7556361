// Schedules to test, by name and group.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload::schedule_samples {

inline constexpr CollectiveOp kEveryOp[] = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter,
                                            CollectiveOp::all_gather, CollectiveOp::all_to_all,
                                            CollectiveOp::broadcast,  CollectiveOp::reduce};

inline Schedule built(CollectiveOp op, std::string_view algorithm, const GroupShape& group,
                      const ScheduleOptions& options = {}) {
  auto read = make_schedule(op, algorithm, group, options);
  CAPTURE(to_string(op), algorithm, group.ranks, group.per_server);
  REQUIRE(read.errors == std::vector<std::string>{});
  return std::move(read.value);
}

inline bool is_power_of_two(std::uint32_t n) { return (n & (n - 1)) == 0; }

// The smallest L with 2^L at least n.
inline std::uint32_t log2_up(std::uint32_t n) {
  std::uint32_t log = 0;
  while ((1U << log) < n) ++log;
  return log;
}

inline bool needs_power_of_two(std::string_view algorithm) {
  return algorithm == "halving_near" || algorithm == "halving_far" ||
         algorithm == "doubling_near" || algorithm == "doubling_far" || algorithm == "pairwise_xor";
}

inline bool depends_on_servers(std::string_view algorithm) {
  return algorithm == "two_level_ring" || algorithm == "rail_rings" || algorithm == "double_tree" ||
         algorithm == "nccl" || algorithm == "pxn" || algorithm == "pxn_batched";
}

// GPUs per server to try: all divisors where they matter. A ring for each is many transfers.
inline std::vector<std::uint32_t> servers_to_try(std::string_view algorithm, std::uint32_t n) {
  if (!depends_on_servers(algorithm)) return {1};
  std::vector<std::uint32_t> divisors;
  const std::uint32_t most = algorithm == "rail_rings" ? std::min(n, 8U) : n;
  for (std::uint32_t g = 1; g <= most; ++g) {
    if (n % g == 0) divisors.push_back(g);
  }
  return divisors;
}

inline std::vector<ScheduleOptions> options_to_try(CollectiveOp op, std::string_view algorithm,
                                                   std::uint32_t n) {
  std::vector<ScheduleOptions> options(1);
  if (algorithm == "pat") {
    for (std::uint32_t a = 1; a < n; a *= 2) options.push_back({.aggregation = a});
  } else if (algorithm == "rail_rings") {
    options.push_back({.in_turn = true});
  } else if (algorithm == "window") {
    for (const std::uint32_t w : {1U, 2U, 7U}) options.push_back({.window = w});
  } else if (op == CollectiveOp::broadcast || op == CollectiveOp::reduce) {
    options = {{.root = 0}, {.root = n / 2}, {.root = n - 1}};
  }
  return options;
}

}  // namespace paceline::workload::schedule_samples
