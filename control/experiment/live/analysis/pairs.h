// Combines records as the schedule says: pairs that can be compared, and what is missing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/live/analysis/balance.h"
#include "control/experiment/live/blocks/block.h"
#include "control/experiment/live/plan/schedule.h"

namespace paceline::experiment::live {

struct PairData {
  std::uint32_t pair = 0;
  bool whole = true;                                        // all clusters in one arm at a time
  double load = kUndefined;                                 // mean over its records
  std::vector<std::array<const BlockRecord*, 2>> clusters;  // [cluster][arm]
};

struct PairTable {
  std::vector<PairData> usable;                    // in order of time
  std::uint32_t attempted = 0;                     // pairs of which any block was recorded
  std::uint32_t discarded = 0;                     // pairs among these that are not usable
  std::vector<std::string> why;                    // of each discarded pair, "pair 7: ..."
  std::array<std::uint64_t, 2> planned_blocks{};   // per arm, in the pairs attempted
  std::array<std::uint64_t, 2> recorded_blocks{};  // and not discarded for reasons of their own
  std::vector<std::string> errors;                 // records that contradict the schedule
};

// Pointers into `records`. The last pair may still be in progress: while `running`, it is not
// counted until it is complete.
PairTable pair_up(const Schedule& schedule, std::span<const BlockRecord> records, bool running);

// Contrasts of a metric, pair by pair and cluster by cluster; pairs with a NaN among them left out.
struct Contrasts {
  BlockMetric metric = BlockMetric::log_slowdown;
  std::vector<std::uint32_t> pairs;             // index into the schedule
  std::vector<double> loads;                    // of these pairs
  std::vector<std::vector<double>> by_cluster;  // [pair][cluster]
  std::vector<double> means;                    // [pair]: the datum
  double champion = kUndefined;                 // mean over blocks
  double candidate = kUndefined;
  std::uint32_t missing = 0;
};
Contrasts contrasts_of(const PairTable& table, BlockMetric metric, bool whole);

// Whether the arms got what the schedule gave them.
std::vector<BalanceCheck> check_balance(const PairTable& table, bool closed_loop);

}  // namespace paceline::experiment::live
