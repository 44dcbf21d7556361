// What servers of several NICs send where, in the scenarios that ship.
#include <catch2/catch.hpp>
#include <string>

#include "dataplane/config/server_shape.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest::rails_claims {
namespace {

constexpr std::uint64_t kServers = 8, kNics = 8, kRanks = kServers * kNics;

TEST_CASE("rails: an all-to-all crosses rails in the closed form, with PXN not at all",
          "[reference][placement]") {
  const tools::ScenarioRun direct = run(shipped("all-to-all-rails"));
  const tools::ScenarioRun relayed = run(shipped("all-to-all-pxn"));
  const std::uint64_t block = 100'000;
  for (const tools::ScenarioRun* of : {&direct, &relayed}) {
    CHECK(of->result.status == experiment::RunStatus::ok);
    CHECK(of->result.messages_completed == kRanks * (kRanks - 1));
    CHECK(of->flows.size() == kRanks * (kRanks - 1));
    for (const tools::FlowRow& flow : of->flows) CHECK(flow.fct >= flow.ideal);
    CHECK(of->rails.nic_bytes == block * kRanks * kNics * (kServers - 1));
  }
  CHECK(direct.rails.cross_rail_bytes == block * kRanks * (kNics - 1) * (kServers - 1));
  CHECK(direct.rails.cross_rail_share() == 7.0 / 8);
  CHECK(direct.rails.nvlink_bytes == block * kRanks * (kNics - 1));
  CHECK(relayed.rails.cross_rail_bytes == 0);
  CHECK(relayed.rails.nvlink_bytes ==
        block * kRanks * ((kNics - 1) + (kNics - 1) * (kServers - 1)));
}

// The leaf of a rail has all its NICs, so what does not change rail crosses no spine.
TEST_CASE("rails: with PXN nothing is on the spines' links", "[reference][placement]") {
  for (const bool pxn : {false, true}) {
    CAPTURE(pxn);
    const tools::PreparedScenario p =
        prepared(shipped(pxn ? "all-to-all-pxn" : "all-to-all-rails"));
    auto plan = workload::make_plan(p.scenario, p.inputs, p.scenario.seed);
    VirtualWorld world(p.scenario, std::move(plan.value), checked());
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(broken_law(world) == "");
    const fabric::FabricSpec& spec = world.network().spec();
    std::uint64_t packets = 0;
    for (std::uint32_t link = 0; link < spec.links.size(); ++link) {
      if (spec.links[link].a < spec.hosts) continue;
      for (const std::uint32_t directed : {2 * link, 2 * link + 1}) {
        const auto stats = world.network().egress_stats(directed);
        REQUIRE(stats);
        packets += stats->packets;
      }
    }
    CHECK((packets == 0) == pxn);
    // Peers of a NIC: with PXN the 7 of its rail, else all 56 of other servers; a queue pair each
    // way.
    for (const std::uint32_t nic : {0U, 63U}) {
      std::uint32_t count = 0;
      while (world.engine(nic).view().state_of(16 + count) != transport::QpState::reset) ++count;
      CHECK(count == 2 * (pxn ? kServers - 1 : kRanks - kNics));
    }
  }
}

}  // namespace
}  // namespace paceline::simtest::rails_claims
