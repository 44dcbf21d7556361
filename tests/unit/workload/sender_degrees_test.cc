// How many ranks send to one at the same time, by schedules whose answer is known.
#include "tools/workload/job_plans/sender_degrees.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/workload/job_plan_samples.h"

namespace paceline::workload {
namespace {

std::vector<std::uint16_t> degrees_of(CollectiveOp op, std::string_view algorithm,
                                      std::uint32_t ranks, std::uint32_t per_server,
                                      bool pipelined) {
  const auto made = make_schedule(op, algorithm, {ranks, per_server});
  REQUIRE(made.errors.empty());
  const auto servers = job_plan_samples::servers_of(ranks, per_server);
  std::vector<std::uint16_t> degrees = sender_degrees(made.value, servers, pipelined);
  REQUIRE(degrees.size() == made.value.transfers.size());
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    const Transfer& t = made.value.transfers[i];
    if (servers[t.from] == servers[t.to]) CHECK(degrees[i] == 0);
  }
  return degrees;
}

bool all_are(const std::vector<std::uint16_t>& degrees, std::uint16_t value) {
  return std::ranges::all_of(degrees, [value](std::uint16_t d) { return d == value; });
}

TEST_CASE("sender degrees: one in a ring, however many parts there are", "[jobs]") {
  for (const std::uint32_t ranks : {2U, 5U, 16U}) {
    for (const bool pipelined : {false, true}) {
      CAPTURE(ranks, pipelined);
      CHECK(all_are(degrees_of(CollectiveOp::all_reduce, "ring", ranks, 1, pipelined), 1));
      CHECK(all_are(degrees_of(CollectiveOp::all_gather, "ring", ranks, 1, pipelined), 1));
    }
  }
}

TEST_CASE("sender degrees: all others in an exchange without steps, one in each step of another",
          "[jobs]") {
  for (const std::uint32_t ranks : {4U, 16U}) {
    CAPTURE(ranks);
    for (const bool pipelined : {false, true}) {
      const auto all = degrees_of(CollectiveOp::all_to_all, "window", ranks, 1, pipelined);
      CHECK(std::ranges::count(all, ranks - 1) == ranks * (ranks - 1));
    }
    const auto shift = degrees_of(CollectiveOp::all_to_all, "linear_shift", ranks, 1, false);
    CHECK(std::ranges::count(shift, 1) == ranks * (ranks - 1));
    // Its steps overlap where parts follow one another: nobody knows how many.
    CHECK(all_are(degrees_of(CollectiveOp::all_to_all, "linear_shift", ranks, 1, true), 0));
  }
}

TEST_CASE("sender degrees: one at a time where ranks exchange in pairs", "[jobs]") {
  for (const std::string_view algorithm : {"halving_doubling_near", "halving_doubling_far"}) {
    CHECK(all_are(degrees_of(CollectiveOp::all_reduce, algorithm, 16, 1, false), 1));
    CHECK(all_are(degrees_of(CollectiveOp::all_reduce, algorithm, 16, 1, true), 0));
  }
}

TEST_CASE("sender degrees: ranks of the receiver's own server do not count", "[jobs]") {
  const auto degrees = degrees_of(CollectiveOp::all_to_all, "window", 8, 4, false);
  CHECK(std::ranges::count(degrees, 4) == 8 * 4);
  CHECK(std::ranges::count(degrees, 0) == 8 * 3);
}

TEST_CASE("sender degrees: messages of a job carry them", "[jobs]") {
  const Job job = job_plan_samples::job_of_calls(CollectiveOp::all_to_all, 6, 60'000, 1);
  const auto planned =
      plan_job(job, job_plan_samples::servers_of(6, 1),
               job_plan_samples::settings_with(CollectiveOp::all_to_all, "window"), 1000);
  REQUIRE(planned.errors.empty());
  for (const PlannedMessage& m : planned.value.plan.messages) {
    CHECK(m.hint_degree == (m.computes ? 0 : 5));
    CHECK(m.hint_kind == (m.computes ? 0 : kHintAllToAll));
  }
}

}  // namespace
}  // namespace paceline::workload
