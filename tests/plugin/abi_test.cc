// The layout of what crosses the border, as of the version that brought it. Numbers here never
// change, but for sizes of structs that grow at their end: then a plug-in of an older version is
// still to be given what it knows.

#include <catch2/catch.hpp>
#include <cstddef>

#include "cc/plugin/paceline_cc.h"

namespace paceline::plugintest {
namespace {

TEST_CASE("structs of version 1.3 are where they were") {
  CHECK(sizeof(paceline_cc_handover) == 24);
  CHECK(sizeof(paceline_cc_hop) == 16);
  CHECK(sizeof(paceline_cc_telemetry) == 84);
  CHECK(sizeof(paceline_cc_event) == 128);
  CHECK(offsetof(paceline_cc_event, handover) == 104);
  CHECK(offsetof(paceline_cc_event, telemetry) == 112);
  CHECK(offsetof(paceline_cc_event, trimmed_bytes) == 120);
  CHECK(sizeof(paceline_cc_decision) == 48);
  CHECK(offsetof(paceline_cc_decision, timed) == 46);
  CHECK(sizeof(paceline_cc_port) == 24);
  CHECK(sizeof(paceline_cc_item) == 32);
  CHECK(sizeof(paceline_cc_param) == 64);
  CHECK(sizeof(paceline_cc_profile_value) == 24);
  CHECK(sizeof(paceline_cc_profile) == 32);
  CHECK(sizeof(paceline_cc_grant_rules) == 32);
  CHECK(sizeof(paceline_cc_sender) == 64);
  CHECK(sizeof(paceline_cc_grant) == 16);
  CHECK(sizeof(paceline_cc_round) == 80);
  CHECK(offsetof(paceline_cc_round, next_ns) == 72);
  CHECK(sizeof(paceline_cc_receiver) == 48);
  CHECK(offsetof(paceline_cc_algorithm, on_events) == 72);
  CHECK(offsetof(paceline_cc_algorithm, receiver) == 96);
}

TEST_CASE("structs of version 1.4 are as it says") {
  CHECK(offsetof(paceline_cc_event, rate_grant) == 80);
  CHECK(offsetof(paceline_cc_event, share) == 96);
  CHECK(offsetof(paceline_cc_event, peers) == 124);
  CHECK(sizeof(paceline_cc_request) == 40);
  CHECK(offsetof(paceline_cc_request, grant_echo) == 32);
  CHECK(sizeof(paceline_cc_rate_grant) == 32);
  CHECK(offsetof(paceline_cc_rate_grant, number) == 28);
  CHECK(sizeof(paceline_cc_want) == 24);
  CHECK(sizeof(paceline_cc_share) == 16);
  CHECK(offsetof(paceline_cc_share, answers_start) == 12);
  CHECK(sizeof(paceline_cc_uplink_context) == 32);
  CHECK(sizeof(paceline_cc_uplink) == 56);
  CHECK(sizeof(paceline_cc_channel) == 48);
  CHECK(offsetof(paceline_cc_channel, received_total) == 16);
  CHECK(sizeof(paceline_cc_downlink) == 48);
  CHECK(offsetof(paceline_cc_downlink, next_ns) == 40);
  CHECK(sizeof(paceline_cc_rates) == 72);
  CHECK(offsetof(paceline_cc_rates, fill_grant) == 64);
  CHECK(sizeof(paceline_cc_algorithm) == 112);
  CHECK(offsetof(paceline_cc_algorithm, rates) == 104);
}

}  // namespace
}  // namespace paceline::plugintest
