// From triggers of htsim to messages that wait for one another.

#include "tools/workload/matrix_plan.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/files/htsim_matrix.h"

namespace paceline::workload {
namespace {

using PlanLines = std::vector<std::string>;

// A file of 4 nodes with these flows from line 4 on, and these triggers.
config::Read<MessagePlan> plan_of_lines(const PlanLines& flows, const PlanLines& triggers) {
  std::string text = "Nodes 4\nConnections " + std::to_string(flows.size()) + "\nTriggers " +
                     std::to_string(triggers.size()) + "\n";
  for (const std::string& line : flows) text += line + "\n";
  for (const std::string& line : triggers) text += "trigger id " + line + "\n";
  CAPTURE(text);
  const auto matrix = parse_htsim_matrix(text, "m", "ps");
  REQUIRE(matrix.errors == PlanLines{});
  return plan_of_matrix(matrix.value, "m");
}

MessagePlan good_plan(const PlanLines& flows, const PlanLines& triggers) {
  auto plan = plan_of_lines(flows, triggers);
  REQUIRE(plan.errors == PlanLines{});
  CHECK_NOTHROW(mark_awaited(plan.value));
  return std::move(plan.value);
}

PlanLines refused_plan(const PlanLines& flows, const PlanLines& triggers) {
  return plan_of_lines(flows, triggers).errors;
}

TEST_CASE("plans of matrices: flows wait for one arrival or one completion", "[workload]") {
  const MessagePlan plan =
      good_plan({"1->2 id 2 trigger 1 size 7", "0->1 id 1 start 2000 size 5 recv_done_trigger 1",
                 "1->3 id 3 trigger 1 size 9 send_done_trigger 2", "1->0 id 4 trigger 2 size 4"},
                {"1 oneshot", "2 barrier count 1"});
  const auto& messages = plan.messages;
  REQUIRE(messages.size() == 4);
  CHECK(plan.joins.empty());
  CHECK(messages[0].after == 1);
  CHECK(messages[1].after == kNoMessage);
  CHECK(messages[1].start.count == 2'000);
  CHECK((messages[1].notify && !messages[1].notify_sender));
  CHECK(messages[2].after == 1);
  CHECK(messages[2].bytes == 9);
  CHECK((messages[2].notify_sender && !messages[2].notify));
  CHECK(messages[3].after == 2);
  CHECK(messages[0].lane == kNoMessage);
}

TEST_CASE("plans of matrices: messages of one connection share a queue pair", "[workload]") {
  const MessagePlan plan =
      good_plan({"0->1 id 7 start 0 size 5 msg", "0->1 id 9 start 0 size 5 msg",
                 "0->1 id 7 start 0 size 5 msg", "0->1 id 2 start 0 size 5"},
                {});
  CHECK(plan.messages[0].lane == plan.messages[2].lane);
  CHECK(plan.messages[0].lane != plan.messages[1].lane);
  CHECK(plan.messages[3].lane == kNoMessage);
}

TEST_CASE("plans of matrices: one flow waits at a barrier by itself", "[workload]") {
  const MessagePlan plan = good_plan(
      {"0->1 start 0 size 5 recv_done_trigger 1", "1->2 start 0 size 5 send_done_trigger 1",
       "3->1 start 0 size 5 recv_done_trigger 1", "1->3 id 4 trigger 1 size 5"},
      {"1 barrier count 3"});
  REQUIRE(plan.messages.size() == 4);
  CHECK(plan.messages[3].after == 0);
  CHECK(plan.joins == std::vector<Join>{{3, 1}, {3, 2}});
}

TEST_CASE("plans of matrices: several flows wait at a barrier by way of a join", "[workload]") {
  const MessagePlan plan =
      good_plan({"1->3 id 1 trigger 1 size 5", "0->1 start 0 size 5 recv_done_trigger 1",
                 "1->2 start 0 size 5 send_done_trigger 1", "1->0 id 4 trigger 1 size 5"},
                {"1 barrier count 2"});
  REQUIRE(plan.messages.size() == 5);
  const PlannedMessage& join = plan.messages[4];
  CHECK((join.computes && join.src == 1 && join.dst == 1 && join.gap.count == 0));
  CHECK(join.after == 1);
  CHECK(plan.joins == std::vector<Join>{{4, 2}});
  CHECK(plan.messages[0].after == 4);
  CHECK(plan.messages[3].after == 4);
}

TEST_CASE("plans of matrices: a flow that is complete has arrived", "[workload]") {
  const PlanLines both{"0->1 start 0 size 5 recv_done_trigger 1 send_done_trigger 1",
                       "0->2 id 2 trigger 1 size 5"};
  const MessagePlan plan = good_plan(both, {"1 barrier count 2"});
  CHECK(plan.joins.empty());
  CHECK(plan.messages[1].after == 0);
  CHECK((plan.messages[0].notify_sender && !plan.messages[0].notify));
  CHECK(refused_plan(both, {"1 barrier count 1"}) ==
        PlanLines{"m:6:1: trigger 1: count = 1, and the flows fire it 2 times; allowed is count "
                  "2"});
}

TEST_CASE("plans of matrices: multishot starts one flow for each firing", "[workload]") {
  // Each flow fires the trigger that started it and starts the next; the last firing starts none.
  const MessagePlan plan = good_plan({"0->3 id 1 trigger 1 size 5 send_done_trigger 1",
                                      "0->2 id 2 trigger 1 size 5 send_done_trigger 1",
                                      "0->1 id 3 start 0 size 5 send_done_trigger 1"},
                                     {"1 multishot"});
  CHECK(plan.messages[0].after == 2);
  CHECK(plan.messages[1].after == 0);
  CHECK(plan.messages[2].after == kNoMessage);
  const MessagePlan ring =
      good_plan({"0->1 id 1 start 0 size 5 recv_done_trigger 1",
                 "1->2 id 2 trigger 1 size 5 recv_done_trigger 1", "2->3 id 3 trigger 1 size 5"},
                {"1 multishot"});
  CHECK(ring.messages[1].after == 0);
  CHECK(ring.messages[2].after == 1);

  const PlanLines two{"0->1 start 0 size 5 send_done_trigger 1",
                      "0->2 start 0 size 5 send_done_trigger 1", "0->3 id 3 trigger 1 size 5"};
  CHECK(refused_plan(two, {"1 multishot"}) ==
        PlanLines{"m:7:1: trigger 1: multishot, and only a run tells the order of its 2 firings; "
                  "allowed are one firing, firings of which each starts the flow that fires next, "
                  "or barrier count 2"});
  CHECK(refused_plan({"0->1 start 0 size 5 recv_done_trigger 1", "1->2 id 2 trigger 1 size 5",
                      "1->3 id 3 trigger 1 size 5"},
                     {"1 multishot"}) ==
        PlanLines{"m:7:1: trigger 1 starts one flow for each firing: 2 wait, and the flows fire it "
                  "1 times; allowed are as many firings"});
  // The first firing starts the flow of line 5, which fires nothing: there is no second.
  CHECK(refused_plan({"0->1 start 0 size 5 send_done_trigger 1", "0->2 id 2 trigger 1 size 5",
                      "0->3 id 3 trigger 1 size 5 send_done_trigger 1"},
                     {"1 multishot"})
            .size() == 1);
}

TEST_CASE("plans of matrices: what a host does not know of is refused", "[workload]") {
  const auto second = [](const std::string& ends, const std::string& flow) {
    return refused_plan({"0->1 id 1 start 0 size 5 " + ends, flow + " id 2 trigger 1 size 5"},
                        {"1 oneshot"});
  };
  CHECK(second("recv_done_trigger 1", "0->2") ==
        PlanLines{"m:5:1: 0->2 waits for the arrival of 0->1 of line 4, which host 1 knows of and "
                  "host 0 does not; allowed is a flow from host 1, or send_done_trigger in line "
                  "4"});
  CHECK(second("send_done_trigger 1", "1->2") ==
        PlanLines{"m:5:1: 1->2 waits for the completion of 0->1 of line 4, which host 0 knows of "
                  "and host 1 does not; allowed is a flow from host 0, or recv_done_trigger in "
                  "line 4"});
  CHECK(second("recv_done_trigger 1", "2->3") ==
        PlanLines{"m:5:1: 2->3 waits for the arrival of 0->1 of line 4, which host 1 knows of and "
                  "host 2 does not; allowed is a flow from host 1"});

  // A barrier over hosts: whichever of both flows host 1 or 2 waits for, it knows of one only.
  const PlanLines over_hosts{"0->1 start 0 size 5 recv_done_trigger 1",
                             "3->2 start 0 size 5 recv_done_trigger 1",
                             "1->0 id 3 trigger 1 size 5", "2->0 id 4 trigger 1 size 5"};
  CHECK(refused_plan(over_hosts, {"1 barrier count 2"}) ==
        PlanLines{"m:6:1: 1->0 waits for the arrival of 3->2 of line 5, which host 2 knows of and "
                  "host 1 does not; allowed is a flow from host 2",
                  "m:7:1: 2->0 waits for the arrival of 0->1 of line 4, which host 1 knows of and "
                  "host 2 does not; allowed is a flow from host 1"});
}

TEST_CASE("plans of matrices: triggers that a run cannot obey are refused", "[workload]") {
  const PlanLines joined{"0->1 start 0 size 5 recv_done_trigger 1",
                         "2->1 start 0 size 5 recv_done_trigger 1", "1->3 id 3 trigger 1 size 5"};
  for (const std::uint32_t count : {1U, 3U}) {
    CAPTURE(count);
    const std::string given = std::to_string(count);
    CHECK(refused_plan(joined, {"1 barrier count " + given}) ==
          PlanLines{"m:7:1: trigger 1: count = " + given +
                    ", and the flows fire it 2 times; allowed is count 2"});
  }
  CHECK(refused_plan(joined, {"1 oneshot"}) ==
        PlanLines{"m:7:1: trigger 1: the flows fire it 2 times; allowed is once for oneshot, or "
                  "barrier count 2"});
  for (const std::string kind : {"oneshot", "multishot", "barrier count 1"}) {
    CAPTURE(kind);
    CHECK(refused_plan({"0->1 id 1 trigger 1 size 5"}, {"1 " + kind}) ==
          PlanLines{"m:5:1: trigger 1 starts flows and no flow fires it; allowed is one with "
                    "recv_done_trigger 1 or send_done_trigger 1"});
  }
  CHECK(
      plan_of_lines({"0->1 start 0 size 5 recv_done_trigger 1"}, {"1 oneshot", "2 oneshot"}).ok());
}

TEST_CASE("plans of matrices: a circle is refused", "[workload]") {
  CHECK(refused_plan({"0->1 id 1 trigger 1 size 5 recv_done_trigger 2",
                      "1->0 id 2 trigger 2 size 5 recv_done_trigger 1"},
                     {"1 oneshot", "2 oneshot"}) ==
        PlanLines{"m:4:1: 0->1 waits for itself, by way of line 5; allowed are triggers without a "
                  "circle"});
  CHECK(refused_plan({"2->1 id 1 start 0 size 5", "0->1 id 2 trigger 1 size 5 send_done_trigger 1"},
                     {"1 oneshot"}) ==
        PlanLines{"m:5:1: 0->1 waits for itself, by way of line 5; allowed are triggers without a "
                  "circle"});
  // By way of a join.
  CHECK(
      refused_plan({"0->1 start 0 size 5 recv_done_trigger 1",
                    "1->2 id 2 trigger 1 size 5 recv_done_trigger 2",
                    "2->1 id 3 trigger 2 size 5 recv_done_trigger 1", "1->3 id 4 trigger 1 size 5"},
                   {"1 barrier count 2", "2 oneshot"}) ==
      PlanLines{"m:5:1: 1->2 waits for itself, by way of line 6; allowed are triggers without a "
                "circle"});
}

TEST_CASE("plans of matrices: failed links are refused", "[workload]") {
  const auto matrix = parse_htsim_matrix(
      "Nodes 4\nConnections 1\nFailures 1\n0->1 start 0 size 5\n"
      "failure switch_type AGG switch_id 3 link_id 0\n",
      "m", "ps");
  REQUIRE(matrix.errors == PlanLines{});
  CHECK(plan_of_matrix(matrix.value, "m").errors ==
        PlanLines{"m:5:1: a failed link; allowed is an [[event]] of the scenario"});
}

}  // namespace
}  // namespace paceline::workload
