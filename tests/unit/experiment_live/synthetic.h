// Experiments whose truth is known: plans, and blocks that were drawn and not measured.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "control/experiment/live/analysis/analysis.h"
#include "dataplane/base/numbers/distributions.h"

namespace paceline::experiment::live::test {

inline Plan switchback_plan(std::uint32_t pairs, std::uint64_t seed = 1) {
  Plan plan;
  plan.name = "synthetic";
  plan.seed = seed;
  plan.arms.resize(2);
  plan.arms[0].name = "champion";
  plan.arms[1].name = "candidate";
  plan.arms[1].cc.algorithm = "cadence";
  plan.clusters = {{"all", {}}};
  plan.washout = picos_from_micros(5'000);
  plan.block = picos_from_micros(50'000);
  plan.pairs_max = pairs;
  plan.soft.clear();
  plan.load_strata.clear();
  return plan;
}

inline Plan cluster_plan(std::uint32_t pairs, std::uint32_t clusters, std::uint64_t seed = 1) {
  Plan plan = switchback_plan(pairs, seed);
  plan.design = Design::receiver_ports;
  plan.clusters.clear();
  for (std::uint32_t c = 0; c < clusters; ++c) {
    plan.clusters.push_back({"c" + std::to_string(c), {"n" + std::to_string(c)}});
  }
  return plan;
}

// What a block of an arm gives: the mean log slowdown.
using Outcome = std::function<double(const BlockPlace&, Random&)>;

inline BlockRecord record_of(const Schedule& schedule, std::uint32_t block, std::uint32_t cluster) {
  BlockRecord record;
  record.place = {block, cluster, schedule.arm(block, cluster), Schedule::epoch(block)};
  record.begin_ns = block * schedule.block_ns + schedule.washout_ns;
  record.end_ns = (block + std::uint64_t{1}) * schedule.block_ns;
  record.messages[0] = {1000, 1000, 0, 3};
  record.messages[1] = {100, 100, 0, 1};
  record.channels = 64;
  record.load = 0.6;
  record.values[BlockMetric::offered] = 6e10;
  return record;
}

inline std::vector<BlockRecord> draw_blocks(const Schedule& schedule, Random& random,
                                            const Outcome& outcome) {
  std::vector<BlockRecord> out;
  out.reserve(schedule.arms.size());
  for (std::uint32_t b = 0; b < schedule.blocks(); ++b) {
    for (std::uint32_t c = 0; c < schedule.mechanism.clusters; ++c) {
      BlockRecord record = record_of(schedule, b, c);
      const double chance = 0.02 * standard_normal(random);
      record.values[BlockMetric::offered] = 6e10 * (1 + chance);
      record.values[BlockMetric::log_slowdown] = outcome(record.place, random);
      out.push_back(record);
    }
  }
  return out;
}

// Block means vary by so much when they are not paired (the planning simulator's figure).
inline constexpr double kBlockSd = 0.085 / 1.41421356237309515;

}  // namespace paceline::experiment::live::test
