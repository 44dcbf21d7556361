// What the parent of a job makes of what its ranks say.
#include "tools/job/verbs/plan_results.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace paceline::tools::plan_results_test {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

// Rank 0 sends messages 0 and 1 to rank 1.
PlanResults results_of(double patience) {
  std::vector<rank::PlanPart> parts(2);
  for (std::uint32_t id = 0; id < 2; ++id) {
    rank::PlanSend send;
    send.id = id;
    send.to = 1;
    send.bytes = 10;
    parts[0].sends.push_back(send);
    parts[1].arrivals.push_back({id, 0, 10, 0, 0});
  }
  return PlanResults(std::move(parts), 2,
                     {[](std::uint32_t nic) { return fmt::format("rank {}", nic); },
                      [](std::uint32_t id) { return fmt::format("message {}", id); }},
                     patience);
}

Json totals_of(unsigned received, unsigned wrong_bytes) {
  return {{"totals",
           {{"received", received},
            {"received_bytes", 10 * received},
            {"wrong_messages", wrong_bytes == 0 ? 0 : 1},
            {"wrong_bytes", wrong_bytes},
            {"wrong_message", 1},
            {"first_byte", 4},
            {"expected", 0xAB},
            {"got", 0}}}};
}

TEST_CASE("plan results: a job is complete with all records and totals", "[collective]") {
  PlanResults results = results_of(3600);
  CHECK(results.share_done() == 0);
  results.take(1, {{"finished", 1}, {"later", false}});
  CHECK(results.share_done() == 0.25);
  results.take(0, {{"records", {{1, 7, 30, 0}}}});
  results.take(0, totals_of(0, 0));
  CHECK_FALSE(results.complete(0));
  results.take(0, {{"records", {{0, 5, 20, 0xFFFF'FFFF}}}});
  CHECK(results.complete(0));
  CHECK_FALSE(results.complete(1));
  results.take(1, totals_of(2, 0));
  CHECK(results.complete(1));
  CHECK(results.share_done() == 1);
  CHECK(results.records()[0].ready == Picos{5});
  CHECK(results.records()[1].completed == Picos{30});
  CHECK(results.causes() == std::vector<std::uint32_t>{kNoMessage, 0});
  CHECK(results.totals().messages == 2);
  CHECK(results.totals().bytes == 20);
  CHECK(results.wrong() == Lines{});
  CHECK(results.obstacles() == Lines{});
}

TEST_CASE("plan results: wrong bytes are reported with the first", "[collective]") {
  PlanResults results = results_of(3600);
  results.take(1, totals_of(2, 6));
  CHECK(results.wrong() ==
        Lines{"rank 1: 1 messages have arrived with 6 wrong bytes; the first is byte 4 of message "
              "1: expected 0xab, got 0x00"});
}

TEST_CASE("plan results: who waits for what, once nobody goes on", "[collective]") {
  PlanResults results = results_of(0);
  results.take(0, {{"finished", 0}, {"later", false}, {"waits_for", 0}, {"arrival", false}});
  results.take(1, {{"finished", 0}, {"later", false}, {"waits_for", 1}, {"arrival", true}});
  CHECK_FALSE(results.stalled());
  CHECK(results.obstacles() == Lines{"no message has moved for 0 s",
                                     "rank 0 waits for the acknowledgement of message 0",
                                     "rank 1 waits for message 1"});
  CHECK(results.stalled());
  // A rank that continues no longer waits.
  results.take(1, {{"finished", 1}, {"later", false}});
  CHECK(results.waits() == Lines{"rank 0 waits for the acknowledgement of message 0"});
}

TEST_CASE("plan results: what is no message of a rank is refused", "[collective]") {
  PlanResults results = results_of(3600);
  CHECK_THROWS_AS(results.take(0, {{"finished", "all"}, {"later", false}}), Json::exception);
  CHECK_THROWS_AS(results.take(0, Json::object()), Json::exception);
  CHECK_THROWS(results.take(0, {{"records", {{9, 0, 0, 0}}}}));
}

}  // namespace
}  // namespace paceline::tools::plan_results_test
