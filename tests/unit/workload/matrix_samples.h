// Plans as matrices of htsim, and what is over in both before a message begins.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/workload/export_samples.h"
#include "tools/workload/exports/matrix_export.h"
#include "tools/workload/files/htsim_matrix.h"

namespace paceline::workload::matrix_samples {

inline std::string written_matrix(const MessagePlan& plan, std::uint32_t nodes = 8) {
  const auto text = write_htsim_plan(plan, nodes, {});
  REQUIRE(text.errors == ExportLines{});
  CHECK(text.value.dropped_waits == 0);
  return text.value.text;
}

inline HtsimMatrix matrix_of(const std::string& text) {
  CAPTURE(text);
  const auto matrix = parse_htsim_matrix(text, "m", "ps");
  REQUIRE(matrix.errors == ExportLines{});
  return matrix.value;
}

inline void check_matrix(const MessagePlan& plan, const HtsimMatrix& matrix) {
  CHECK(matrix.flows.size() == flows_of(plan));
  std::uint64_t bytes = 0;
  for (const HtsimFlow& f : matrix.flows) bytes += f.bytes;
  CHECK(bytes == bytes_of(plan));
}

// What is over when a message begins: twice the number of the flow, plus 1 where its sender knows.
using Over = std::set<std::uint32_t>;

inline void add_end(Over& over, const std::vector<Over>& before, std::uint32_t flow,
                    std::size_t place, bool sender) {
  over.insert(before[place].begin(), before[place].end());
  over.insert(2 * flow);
  if (sender) over.insert(2 * flow + 1);
}

// Messages may wait for later ones, so that it takes several rounds.
template <class Round>
void until_steady(std::vector<Over>& over, Round round) {
  for (std::vector<Over> before; before != over;) {
    before = over;
    round();
  }
}

inline std::vector<Over> over_in_plan(const MessagePlan& plan) {
  std::vector<Over> over(plan.messages.size());
  std::vector<std::uint32_t> number;
  std::uint32_t next = 0;
  for (const PlannedMessage& m : plan.messages) number.push_back(m.computes ? 0 : next++);
  const auto await = [&](std::uint32_t id, std::uint32_t after) {
    const PlannedMessage& other = plan.messages[after];
    if (other.computes) {
      over[id].insert(over[after].begin(), over[after].end());
    } else {
      add_end(over[id], over, number[after], after, other.src == plan.messages[id].src);
    }
  };
  until_steady(over, [&] {
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      if (plan.messages[id].after != kNoMessage) await(id, plan.messages[id].after);
    }
    for (const Join& join : plan.joins) await(join.message, join.after);
  });
  std::vector<Over> flows;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    if (!plan.messages[id].computes) flows.push_back(over[id]);
  }
  return flows;
}

inline std::vector<Over> over_in_matrix(const HtsimMatrix& matrix) {
  std::vector<Over> over(matrix.flows.size());
  std::map<std::uint32_t, std::uint32_t> firings;
  for (const HtsimFlow& f : matrix.flows) {
    for (const std::uint32_t trigger : {f.recv_done, f.send_done}) ++firings[trigger];
  }
  for (const HtsimTrigger& t : matrix.triggers) {
    CHECK(firings[t.id] == (t.kind == HtsimTriggerKind::barrier ? t.count : 1));
    CHECK((t.kind == HtsimTriggerKind::barrier) == (firings[t.id] > 1));
  }
  until_steady(over, [&] {
    for (std::uint32_t id = 0; id < matrix.flows.size(); ++id) {
      const std::uint32_t trigger = matrix.flows[id].trigger;
      if (trigger == 0) continue;
      for (std::uint32_t other = 0; other < matrix.flows.size(); ++other) {
        const HtsimFlow& f = matrix.flows[other];
        if (f.recv_done == trigger) add_end(over[id], over, other, other, false);
        if (f.send_done == trigger) add_end(over[id], over, other, other, true);
      }
    }
  });
  return over;
}

}  // namespace paceline::workload::matrix_samples
