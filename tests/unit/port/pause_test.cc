// What is done about pause frames on a device that says this or that, and which of its counters
// count them.
#include "dataplane/port/pause.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>

namespace paceline::test {
namespace {

TEST_CASE("pause: names go both ways", "[port]") {
  for (const PauseMode mode :
       {PauseMode::off, PauseMode::receive, PauseMode::send, PauseMode::both}) {
    CHECK(pause_mode_of(name_of(mode)) == mode);
  }
  CHECK(!pause_mode_of("keep"));
  CHECK(!pause_mode_of(""));
}

TEST_CASE("pause: a device is set only when it differs from what is wished", "[port]") {
  constexpr std::array kModes = {PauseMode::off, PauseMode::receive, PauseMode::send,
                                 PauseMode::both};
  for (const PauseMode is : kModes) {
    PauseState state;
    state.offered = true;
    state.mode = is;
    CHECK(!plan_pause(std::nullopt, state).set);
    CHECK(plan_pause(std::nullopt, state).note.empty());
    for (const PauseMode wish : kModes) {
      const PausePlan plan = plan_pause(wish, state);
      CHECK(plan.set.has_value() == (wish != is));
      CHECK(plan.set.value_or(wish) == wish);
      CHECK(plan.note.empty());
    }
  }
}

TEST_CASE("pause: a wish that a device has no ear for is told, and nothing is set", "[port]") {
  PauseState state;
  state.refusal = "Operation not supported";
  CHECK(plan_pause(std::nullopt, state).note.empty());
  // "off" as well: the link may pause all the same.
  for (const PauseMode wish :
       {PauseMode::off, PauseMode::receive, PauseMode::send, PauseMode::both}) {
    const PausePlan plan = plan_pause(wish, state);
    CHECK(!plan.set);
    CHECK_THAT(plan.note, Catch::Contains("pause = \"" + std::string(name_of(wish)) + "\"") &&
                              Catch::Contains("(Operation not supported)"));
  }
}

TEST_CASE("pause: counters of drivers are told by their names", "[port]") {
  struct Name {
    const char* text;
    PauseCounter counts;
  };
  // sent, of one priority each, a part of them
  const Name good[] = {
      {"rx_xoff_packets", {false, false, false}},              // ixgbe, igb, txgbe
      {"tx_xoff_packets", {true, false, false}},               //
      {"tx_flow_control_xoff_packets", {true, false, false}},  // igc
      {"rx_pause_frames", {false, false, false}},              // bnxt, qede
      {"tx_pause", {true, false, false}},                      // sfc
      {"MAC_RX_MAC_PAUSE_NUM", {false, false, false}},         // hns3
      {"tx_pfc_frames", {true, true, false}},                  // bnxt
      {"rx_priority_flow_control_frames", {false, true, false}},
      {"rx_pfc_ena_frames_pri3", {false, true, true}},     // bnxt
      {"rx_priority3_xoff_packets", {false, true, true}},  // i40e
      {"tx_priority_3_xoff_packets", {true, true, true}},  //
      {"MAC_TX_PFC_PRI5_PKT_NUM", {true, true, true}},     // hns3
      {"rx_prio0_pause", {false, true, true}},             // mlx5 (ethtool)
  };
  for (const Name& name : good) {
    INFO(name.text);
    const auto counter = pause_counter(name.text);
    REQUIRE(counter.has_value());
    CHECK(counter->sent == name.counts.sent);
    CHECK(counter->priority == name.counts.priority);
    CHECK(counter->part == name.counts.part);
  }
  for (const char* other :
       {"rx_xon_packets", "rx_priority3_xon_to_xoff_packets", "rx_pfc_xon2xoff_frames_pri1",
        "rx_flow_control_unsupported_packets", "rx_unsupported_da_pausepfc_frames",
        "rx_prio0_pause_duration", "tx_pause_storm_warning_events", "rx_good_packets",
        "xoff_packets", "tx_offload_errors", "rx_flow_director_matches", ""}) {
    INFO(other);
    CHECK(!pause_counter(other));
  }
}

TEST_CASE("pause: nothing is counted twice", "[port]") {
  const auto indices = [](std::vector<std::string> names) {
    std::vector<std::uint64_t> found;
    for (const PauseCounterPlace& place : pause_counters(names)) found.push_back(place.index);
    return found;
  };
  using Indices = std::vector<std::uint64_t>;
  CHECK(indices({}) == Indices{});
  CHECK(indices({"rx_good_packets", "rx_xoff_packets", "tx_xoff_packets"}) == Indices{1, 2});
  // Parts where there is no whole of that direction.
  CHECK(indices({"rx_pfc_ena_frames_pri0", "rx_pfc_ena_frames_pri1", "tx_pfc_frames",
                 "tx_pfc_ena_frames_pri0"}) == Indices{0, 1, 2});
  CHECK(indices({"rx_pfc_ena_frames_pri0", "rx_pfc_frames", "rx_pause_frames"}) == Indices{1, 2});
}

}  // namespace
}  // namespace paceline::test
