// Plans as connection matrices of htsim, read back.

#include "tools/workload/exports/matrix_export.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/workload/export_samples.h"
#include "tests/unit/workload/matrix_samples.h"
#include "tools/workload/files/htsim_matrix.h"
#include "tools/workload/matrix_plan.h"

namespace paceline::workload {
namespace {

using Catch::Matchers::Contains;
using namespace matrix_samples;

// Messages without joins, and what they wait for, as they are numbered there.
MessagePlan without_joins(const MessagePlan& plan) {
  MessagePlan out;
  std::vector<std::uint32_t> number(plan.messages.size(), kNoMessage);
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    if (plan.messages[id].computes) continue;
    number[id] = static_cast<std::uint32_t>(out.messages.size());
    out.messages.push_back(plan.messages[id]);
  }
  for (PlannedMessage& m : out.messages) {
    if (m.after != kNoMessage) m.after = number[m.after];
  }
  return out;
}

void check_same_plan(const MessagePlan& plan, const MessagePlan& back) {
  CHECK(back.joins.empty());
  REQUIRE(back.messages.size() == plan.messages.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lanes;
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const PlannedMessage& a = plan.messages[i];
    const PlannedMessage& b = back.messages[i];
    CHECK(std::tuple(a.src, a.dst, a.bytes, a.start, a.after) ==
          std::tuple(b.src, b.dst, b.bytes, b.start, b.after));
    CHECK(lanes.try_emplace({a.src, a.dst}, b.lane).first->second == b.lane);
  }
}

TEST_CASE("exports: a ring of one chunk as a matrix is the same plan", "[workload]") {
  for (const std::string& workload : {kRing, kJob + "all_reduce = \"ring\"\n"}) {
    CAPTURE(workload);
    const MessagePlan plan = plan_of_text(workload);
    const HtsimMatrix matrix = matrix_of(written_matrix(plan));
    check_matrix(plan, matrix);
    CHECK(matrix.flows.size() == 8 * 14);
    const auto back = plan_of_matrix(matrix, "m");
    REQUIRE(back.errors == ExportLines{});
    check_same_plan(without_joins(plan), back.value);
  }
}

TEST_CASE("exports: workloads as matrices", "[workload]") {
  for (const std::string& workload : {kIncast, kAllToAll, kRing, kJob + "chunk_bytes = \"4kB\"\n",
                                      kJob + "all_reduce = \"double_tree\"\n"}) {
    CAPTURE(workload);
    const MessagePlan plan = plan_of_text(workload, 4);
    const HtsimMatrix matrix = matrix_of(written_matrix(plan, 4));
    check_matrix(plan, matrix);
    CHECK(over_in_matrix(matrix) == over_in_plan(plan));
  }
}

TEST_CASE("exports: random plans as matrices keep every order of begin and end", "[workload]") {
  std::uint32_t written = 0;
  std::uint32_t joined = 0;
  std::uint32_t loosened = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    const MessagePlan plan = random_plan(seed);
    if (flows_of(plan) == 0) continue;
    const auto text = write_htsim_plan(plan, 6, {});
    const auto loose = write_htsim_plan(plan, 6, {.waits = true});
    if (!text.ok()) {
      CHECK_THAT(text.errors.front(), Contains("a flow of htsim fires one trigger"));
      if (!loose.ok()) continue;
      ++loosened;
      CHECK(loose.value.dropped_waits > 0);
      const std::vector<Over> planned = over_in_plan(plan);
      const std::vector<Over> kept = over_in_matrix(matrix_of(loose.value.text));
      REQUIRE(kept.size() == planned.size());
      for (std::size_t i = 0; i < kept.size(); ++i) {
        CHECK(planned[i].empty() == kept[i].empty());
        CHECK(std::includes(planned[i].begin(), planned[i].end(), kept[i].begin(), kept[i].end()));
      }
      continue;
    }
    CHECK(loose.value.text == text.value.text);
    CHECK(loose.value.dropped_waits == 0);
    ++written;
    const HtsimMatrix matrix = matrix_of(text.value.text);
    check_matrix(plan, matrix);
    CHECK(over_in_matrix(matrix) == over_in_plan(plan));
    if (std::any_of(matrix.triggers.begin(), matrix.triggers.end(),
                    [](const HtsimTrigger& t) { return t.kind == HtsimTriggerKind::barrier; })) {
      ++joined;
    }
  }
  CHECK(written > 50);
  CHECK(joined > 10);
  CHECK(loosened > 10);
}

// The second collective of a rank waits for its first, and in every step for its left neighbour,
// too.
TEST_CASE("exports: collectives that follow one another take --drop-waits", "[workload]") {
  const MessagePlan plan = plan_of_text(
      "kind = \"job\"\n[workload.job]\nbytes = \"80kB\"\niterations = 3\ncompute = \"0us\"\n"
      "all_reduce = \"ring\"\n",
      4);
  CHECK(!write_htsim_plan(plan, 4, {}).ok());
  const auto text = write_htsim_plan(plan, 4, {.waits = true});
  REQUIRE(text.errors == ExportLines{});
  const HtsimMatrix matrix = matrix_of(text.value.text);
  check_matrix(plan, matrix);
  CHECK(matrix.flows.size() == 3 * 4 * 6);
  for (const HtsimFlow& f : matrix.flows) CHECK((f.trigger == 0) == (&f - &matrix.flows[0] < 4));
  // In both later collectives, each step but the first: 4 flows that do not wait for the 7 ends of
  // their rank's last one, 6 completions and an arrival.
  CHECK(text.value.dropped_waits == 2 * 5 * 4 * 7);
}

TEST_CASE("exports: triggers of a matrix", "[workload]") {
  MessagePlan plan;
  plan.messages = {sent(0, 1, 1000), sent(2, 1, 2000), computed(1, Picos{0}, 0),
                   sent(1, 3, 3000, 2), sent(1, 3, 4000, 3)};
  plan.joins = {{2, 1}};
  plan.messages[1].start = Picos{5000};
  CHECK(written_matrix(plan, 4) ==
        "Nodes 4\nConnections 4\nTriggers 2\n"
        "0->1 id 1 start 0 size 1000 recv_done_trigger 1\n"
        "2->1 id 2 start 5000 size 2000 recv_done_trigger 1\n"
        "1->3 id 3 trigger 1 size 3000 send_done_trigger 2 msg\n"
        "1->3 id 3 trigger 2 size 4000 msg\n"
        "trigger id 1 barrier count 2\n"
        "trigger id 2 oneshot\n");
}

TEST_CASE("exports: what a matrix cannot express", "[workload]") {
  MessagePlan plan;
  plan.messages = {sent(0, 1, 1000), computed(1, Picos{7000}, 0), sent(1, 2, 1000, 1)};
  const auto refused = [&] {
    const auto text = write_htsim_plan(plan, 3, {});
    REQUIRE(text.errors.size() == 1);
    return text.errors[0];
  };
  CHECK_THAT(refused(), Contains("computing and gaps: 1, ") && Contains("message 1 (1->1)") &&
                            Contains("--drop-computing"));
  const auto dropped = write_htsim_plan(plan, 3, {.computing = true});
  REQUIRE(dropped.errors == ExportLines{});
  CHECK(matrix_of(dropped.value.text).flows[1].trigger == 1);
  plan.messages[1].gap = Picos{0};
  plan.messages[2].start = Picos{1};
  CHECK_THAT(refused(), Contains("message 2 (1->2)") && Contains("either a trigger or a start"));
  plan.messages[0].start = Picos{1};  // then the second cannot begin before, anyway
  CHECK(write_htsim_plan(plan, 3, {}).ok());
  plan.messages[1].start = Picos{2};
  CHECK_THAT(refused(), Contains("message 2 (1->2): it waits and does not begin before 2ps"));
  plan.messages[1].start = Picos{0};
  plan.messages[0].bytes = 0x7FFF'FFFF;
  CHECK(write_htsim_plan(plan, 3, {}).ok());
  plan.messages[0].bytes = 0x8000'0000;
  CHECK_THAT(refused(), Contains("2147483648 bytes: htsim reads 1 to 2147483647"));
  plan.messages[0].bytes = 0;
  CHECK_THAT(refused(), Contains("message 0 (0->1): 0 bytes"));
  plan.messages = {sent(0, 1, 1000), sent(2, 1, 1000), sent(1, 0, 1000, 0), sent(1, 2, 1000, 0)};
  plan.joins = {{3, 1}};
  CHECK_THAT(refused(), Contains("message 0 (0->1): message 2 (1->0) and message 3 (1->2) wait"));
}

}  // namespace
}  // namespace paceline::workload
