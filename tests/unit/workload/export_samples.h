// Plans to write for others.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cc/registry.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/workload/workload.h"

namespace paceline::workload {
using ExportLines = std::vector<std::string>;

inline MessagePlan plan_of_text(const std::string& workload, std::uint32_t hosts = 8) {
  auto read = config::read_scenario_text(
      "[fabric]\nhosts = " + std::to_string(hosts) + "\n[workload]\n" + workload, "s", ".",
      {cc::algorithms(), {}});
  REQUIRE(read.errors == ExportLines{});
  const auto inputs = load_inputs(read.value);
  REQUIRE(inputs.errors == ExportLines{});
  auto plan = make_plan(read.value, inputs.value, 1);
  REQUIRE(plan.errors == ExportLines{});
  return std::move(plan.value);
}

inline PlannedMessage sent(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes,
                           std::uint32_t after = kNoMessage) {
  return {.src = src, .dst = dst, .bytes = bytes, .after = after};
}

inline PlannedMessage computed(std::uint32_t host, Picos gap, std::uint32_t after = kNoMessage) {
  PlannedMessage m = sent(host, host, 0, after);
  m.gap = gap;
  m.computes = true;
  return m;
}

// Hosts that wait for earlier messages of theirs, some by way of joins.
inline MessagePlan random_plan(std::uint64_t seed) {
  Random random(seed);
  const auto pick = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random.below(n)); };
  const std::uint32_t hosts = 2 + pick(4);
  MessagePlan plan;
  const std::uint32_t count = 2 + pick(14);
  for (std::uint32_t id = 0; id < count; ++id) {
    PlannedMessage m = sent(pick(hosts), 0, 1 + pick(100'000));
    m.dst = (m.src + 1 + pick(hosts - 1)) % hosts;
    m.lane = pick(3) == 0 ? kNoMessage : pick(2);
    if (pick(4) == 0) m = computed(m.src, Picos{0});
    std::vector<std::uint32_t> before;
    for (std::uint32_t other = 0; other < id; ++other) {
      const PlannedMessage& o = plan.messages[other];
      if ((o.src == m.src || (o.dst == m.src && !o.computes)) && pick(3) == 0) {
        before.push_back(other);
      }
    }
    if (!before.empty()) m.after = before[0];
    for (std::size_t i = 1; i < before.size(); ++i) plan.joins.push_back({id, before[i]});
    plan.messages.push_back(m);
  }
  return plan;
}

inline std::uint64_t flows_of(const MessagePlan& plan) {
  return static_cast<std::uint64_t>(
      std::count_if(plan.messages.begin(), plan.messages.end(),
                    [](const PlannedMessage& m) { return !m.computes; }));
}

inline std::uint64_t bytes_of(const MessagePlan& plan) {
  return std::accumulate(
      plan.messages.begin(), plan.messages.end(), std::uint64_t{0},
      [](std::uint64_t sum, const PlannedMessage& m) { return sum + (m.computes ? 0 : m.bytes); });
}

inline std::uint64_t waits_in(const MessagePlan& plan) {
  return plan.joins.size() + static_cast<std::uint64_t>(std::count_if(
                                 plan.messages.begin(), plan.messages.end(),
                                 [](const PlannedMessage& m) { return m.after != kNoMessage; }));
}

inline const std::string kIncast = "kind = \"incast\"\nfan_in = 3\nmessage_bytes = \"20kB\"\n";
inline const std::string kAllToAll = "kind = \"all_to_all\"\nmessage_bytes = \"20kB\"\n";
inline const std::string kRing =
    "kind = \"ring_all_reduce\"\nall_reduce_bytes = \"80kB\"\nchunk_bytes = \"10kB\"\n";
inline const std::string kJob =
    "kind = \"job\"\n[workload.job]\nbytes = \"80kB\"\niterations = 1\ncompute = \"0us\"\n";

}  // namespace paceline::workload
