// The direction of an [[event]].

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

Read<Scenario> read_one_event(const std::string& members) {
  return read_scenario_text(
      "fabric.hosts = 4\nworkload.fan_in = 3\n[[event]]\nat = \"0us\"\nlink = \"host1\"\n" +
          members,
      "s.toml", "folder", {test_algorithms(), {}});
}

TEST_CASE("event.direction is of what can differ by direction", "[config]") {
  const auto direction = [](const std::string& members) {
    const auto read = read_one_event(members);
    REQUIRE(read.errors == std::vector<std::string>{});
    REQUIRE(read.value.events.size() == 1);
    return read.value.events[0].direction;
  };
  const std::string loss = "action = \"loss\"\nprobability = 0.5\n";
  CHECK(direction(loss) == "both");
  CHECK(direction(loss + "direction = \"both\"\n") == "both");
  CHECK(direction(loss + "direction = \"up\"\n") == "up");
  CHECK(direction("direction = \"down\"\naction = \"rate\"\nrate = \"1Gb/s\"\n") == "down");
  CHECK(direction("action = \"down\"\n") == "both");

  for (const char* action : {"down", "up"}) {
    CAPTURE(action);
    CHECK(read_one_event("action = \"" + std::string(action) + "\"\ndirection = \"up\"\n").errors ==
          std::vector<std::string>{"s.toml:7:13: event.direction does nothing with event.action = "
                                   "\"" +
                                   std::string(action) +
                                   "\"; it is for rate delay loss corrupt duplicate reorder"});
  }
  CHECK(read_one_event(loss + "direction = \"left\"\n").errors ==
        std::vector<std::string>{"s.toml:8:13: event.direction = \"left\": allowed is \"both\", "
                                 "\"up\" or \"down\""});
}

}  // namespace
}  // namespace paceline::config
