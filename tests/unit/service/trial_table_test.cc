// Trials by name, by NIC and by time, without a service.
#include "dataplane/service/congestion/trial_table.h"

#include <catch2/catch.hpp>

namespace paceline::service {

namespace {

Trial trial_of(std::string name, std::vector<std::size_t> nics, std::uint32_t hold_ms) {
  Trial out;
  out.name = std::move(name);
  out.nics = std::move(nics);
  out.hold_ms = hold_ms;
  return out;
}

}  // namespace

TEST_CASE("a trial is found by its name, and by its NICs while it runs", "[trials]") {
  TrialTable table;
  table.add(trial_of("a", {0, 1}, 500));
  CHECK(table.find("b") == nullptr);
  CHECK(table.running_on(2) == nullptr);
  Trial* const a = table.find("a");
  REQUIRE(a != nullptr);
  CHECK(table.running_on(1) == a);
  a->arm = 1;
  a->epoch = 9;
  table.end(*a, TrialState::tripped, "drops");
  CHECK(table.running_on(1) == nullptr);
  CHECK(table.find("a") == a);  // until it is ended
  CHECK(a->arm == 0);
  CHECK(a->epoch == 0);
  CHECK(a->why == "drops");
  table.remove(*a);
  CHECK(table.all().empty());
}

TEST_CASE("a hold runs from the last renewal, and only while the trial runs", "[trials]") {
  TrialTable table;
  table.tick(1000);
  table.add(trial_of("a", {0}, 500));
  Trial& a = *table.find("a");
  CHECK(table.remaining_ms(a) == 500);
  table.tick(1400);
  CHECK(table.remaining_ms(a) == 100);
  table.renew(a);
  table.tick(1899);
  CHECK(table.expired().empty());
  table.tick(1900);
  REQUIRE(table.expired().size() == 1);
  CHECK(table.remaining_ms(a) == 0);
  table.end(a, TrialState::abandoned, "nobody renewed it");
  CHECK(table.expired().empty());
}

TEST_CASE("a name is given once, and only so many trials are kept", "[trials]") {
  TrialTable table;
  for (std::size_t i = 0; i < TrialTable::kMostTrials; ++i) {
    CHECK(table.refusals(std::to_string(i)).empty());
    table.add(trial_of(std::to_string(i), {i}, 500));
  }
  CHECK(table.refusals("new").size() == 1);
  CHECK(table.refusals("0").size() == 2);
}

}  // namespace paceline::service
