// Windows, node by node, against the same traffic event by event.
#include "dataplane/fabric/sweep/fabric_sweep.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/forwarding/conservation.h"
#include "tests/unit/fabric/forwarding_rig.h"
#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

struct SweepTraffic {
  FabricSpec spec;
  std::vector<RigSend> sends;  // by time
  Picos lookahead = kNever;
};

SweepTraffic sweep_traffic(std::uint64_t seed) {
  Random random(seed, 9);
  SweepTraffic out;
  random_topology(random, out.spec);
  out.spec.seed = seed;
  out.spec.ecn.kmin_bytes = random.below(20'000);
  out.spec.ecn.kmax_bytes = out.spec.ecn.kmin_bytes + random.below(40'000);
  out.spec.ecn.pmax = random.uniform();
  out.spec.pfc.enabled = random.below(2) == 0;
  out.spec.pfc.lossless_classes = 1U << kDefaultDataClass;
  out.spec.pfc.alpha = 0.02;  // pauses are frequent
  out.spec.load_balance = static_cast<LoadBalance>(random.below(3));
  for (LinkSpec& link : out.spec.links) {
    if (random.below(4) == 0) link.loss = 0.05;
    out.lookahead = earlier(out.lookahead, link.delay);
  }
  const auto receiver = static_cast<std::uint32_t>(random.below(out.spec.hosts));
  for (int i = 0; i < 400; ++i) {
    const auto from = static_cast<std::uint32_t>(random.below(out.spec.hosts));
    auto to =
        random.below(3) == 0 ? static_cast<std::uint32_t>(random.below(out.spec.hosts)) : receiver;
    if (to == from) to = (from + 1) % out.spec.hosts;
    out.sends.push_back({Picos{static_cast<std::int64_t>(random.below(20'000'000))}, from, to,
                         static_cast<std::uint16_t>(random.below(4'096))});
  }
  std::sort(out.sends.begin(), out.sends.end(),
            [](const RigSend& a, const RigSend& b) { return a.at < b.at; });
  return out;
}

void run_by_events(ForwardingRig& rig, const SweepTraffic& traffic) {
  for (const RigSend& send : traffic.sends) {
    while (rig.step(send.at)) {
    }
    rig.send(send);
  }
  while (rig.step()) {
  }
}

void run_by_windows(ForwardingRig& rig, const SweepTraffic& traffic) {
  FabricSweep sweep(rig.forwarding, rig.ports);
  sweep.prepare();
  const std::uint32_t hosts = rig.spec.hosts;
  std::vector<std::vector<std::uint32_t>> due(hosts + rig.spec.switches);
  Picos leaving = kNever;
  for (auto send = traffic.sends.begin();;) {
    Picos begin = earlier(rig.wheel.next_time(), leaving);
    if (send != traffic.sends.end()) begin = earlier(begin, send->at);
    if (begin == kNever) break;
    const Picos end = begin + traffic.lookahead;
    for (auto& links : due) links.clear();
    rig.wheel.take_before(
        end, [&](std::uint32_t actor, Picos) { due[sweep.node_of(actor)].push_back(actor); });
    sweep.begin(begin, end);
    for (std::uint32_t node = 0; node < due.size(); ++node) {
      if (node >= hosts) {
        const bool backlogged = (sweep.backlogged_nodes()[node >> 6] >> (node & 63) & 1U) != 0;
        if (backlogged || !due[node].empty()) sweep.sweep_switch(node - hosts, due[node]);
        continue;
      }
      const std::uint32_t link = sweep.downlink(node);
      while (sweep.next_arrival(link) < end) {
        sweep.arrive_next(link);
        rig.receive(node);
      }
      sweep.wait_for_next(link);
    }
    for (; send != traffic.sends.end() && send->at < end; ++send) rig.send(*send);
    leaving = sweep.end();
  }
  rig.state().hosts.clear_woken();
}

TEST_CASE("sweep: windows give what events give: deliveries, marks, drops, pauses, queues") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 40));
  INFO("seed " << seed);
  const SweepTraffic traffic = sweep_traffic(seed);
  REQUIRE(FabricSweep::obstacle(traffic.spec).empty());
  ForwardingRig events(traffic.spec);
  ForwardingRig windows(traffic.spec);
  run_by_events(events, traffic);
  run_by_windows(windows, traffic);
  CHECK(events.deliveries.size() > 100);
  std::sort(events.deliveries.begin(), events.deliveries.end());
  std::sort(windows.deliveries.begin(), windows.deliveries.end());
  CHECK(events.deliveries == windows.deliveries);
  CHECK(events.state().stats == windows.state().stats);
  CHECK(check_conservation(events.state()).empty());
  CHECK(check_conservation(windows.state()).empty());
}

TEST_CASE("sweep: what cannot be worked off by windows is refused with a reason") {
  FabricSpec spec = sweep_traffic(1).spec;
  CHECK(FabricSweep::obstacle(spec).empty());
  spec.events.push_back({.at = Picos{1}, .link = 0});
  CHECK_FALSE(FabricSweep::obstacle(spec).empty());
  spec.events.clear();
  spec.links[0].reorder = 0.1;
  CHECK_FALSE(FabricSweep::obstacle(spec).empty());
  spec.links[0].reorder = 0;
  spec.exact_departures = true;
  CHECK_FALSE(FabricSweep::obstacle(spec).empty());
}

}  // namespace
}  // namespace paceline::fabric
