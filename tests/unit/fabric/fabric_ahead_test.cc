#include "dataplane/fabric/sweep/fabric_ahead.h"

#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/fabric/forwarding_rig.h"
#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

// Every look that there is at one link, in the order that a caller keeps.
void look_at(const FabricAhead& ahead, std::uint32_t link) {
  FabricAhead::Found found;
  ahead.prefetch_actor(link);
  ahead.prefetch_packet(link);
  if (ahead.ends_at_a_switch(link)) {
    ahead.prefetch_next(link, found);
    ahead.prefetch_egress(link, found);
    ahead.prefetch_joined(link, found);
    ahead.prefetch_before(link, found);
  } else {
    ahead.prefetch_port(ahead.host_at(link));
    ahead.prefetch_uplink(ahead.host_at(link));
    ahead.prefetch_arrival(link, found);
  }
  ahead.prefetch_departure(link, found);
  ahead.prefetch_departure(link, found);
}

TEST_CASE("ahead: it knows where links end and what reaches a host first") {
  FabricSpec spec;
  spec.hosts = 2;
  spec.switches = 1;
  for (std::uint32_t host = 0; host < 2; ++host) {
    spec.links.push_back({.a = host, .b = 2, .rate = rate_from_gbps(100), .delay = Picos{1'000}});
  }
  ForwardingRig rig(spec);
  const FabricAhead ahead(rig.state(), rig.ports);
  CHECK(ahead.ends_at_a_switch(0));
  CHECK_FALSE(ahead.ends_at_a_host(0));
  CHECK(ahead.ends_at_a_host(3));
  CHECK(ahead.host_at(3) == 1);
  CHECK_FALSE(ahead.ends_at_a_switch(4));  // no link
  CHECK_FALSE(ahead.ends_at_a_host(4));
  CHECK(ahead.first_on(3) == nullptr);
  rig.send({Picos{0}, 0, 1});
  FabricAhead::Found found;
  ahead.prefetch_next(0, found);
  CHECK(found.out == 3);
  REQUIRE(rig.step());
  REQUIRE(ahead.first_on(3) != nullptr);
  CHECK(ahead.first_on(3)->digest == 0);
}

TEST_CASE("ahead: looks change nothing") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 20));
  INFO("seed " << seed);
  Random random(seed, 13);
  FabricSpec spec;
  random_topology(random, spec);
  spec.seed = seed;
  ForwardingRig plain(spec);
  ForwardingRig watched(spec);
  const FabricAhead ahead(watched.state(), watched.ports);
  for (std::int64_t t = 0; t < 10'000'000; t += 50'000) {
    while (plain.step(Picos{t})) {
    }
    while (watched.step(Picos{t})) {
      for (std::uint32_t link = 0; link < watched.state().wire.size(); ++link) look_at(ahead, link);
    }
    const auto from = static_cast<std::uint32_t>(random.below(spec.hosts));
    const RigSend send{Picos{t}, from, (from + 1) % spec.hosts};
    plain.send(send);
    watched.send(send);
  }
  while (plain.step()) {
  }
  while (watched.step()) {
  }
  CHECK(plain.deliveries.size() > 100);
  CHECK(plain.deliveries == watched.deliveries);
  CHECK(plain.state().stats == watched.state().stats);
}

}  // namespace
}  // namespace paceline::fabric
