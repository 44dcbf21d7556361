// Random fabrics and traffic that make queues, marks, pauses and drops happen, from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {

struct RandomScenario {
  FabricSpec spec;
  std::vector<Send> sends;
  bool reply = false;
};

inline Rate random_rate(Random& random) {
  // The last two are not whole picoseconds per byte.
  constexpr std::uint64_t kGbps[] = {10, 25, 40, 100, 100, 100, 400, 30, 70};
  return rate_from_gbps(kGbps[random.below(9)]);
}

inline void random_topology(Random& random, FabricSpec& spec) {
  const bool uniform = random.below(2) == 0;  // alike links make ties
  const Rate rate = random_rate(random);
  const Picos delay{static_cast<std::int64_t>(1 + random.below(4)) * 250'000};
  const auto link = [&](std::uint32_t a, std::uint32_t b) {
    LinkSpec l{.a = a, .b = b, .rate = rate, .delay = delay};
    if (!uniform) {
      l.rate = random_rate(random);
      l.delay = {static_cast<std::int64_t>(1 + random.below(1'500'000))};
    }
    spec.links.push_back(l);
  };
  const auto leaves = static_cast<std::uint32_t>(1 + random.below(3));
  spec.hosts = static_cast<std::uint32_t>(leaves * (2 + random.below(4)));
  const auto spines = static_cast<std::uint32_t>(leaves == 1 ? 0 : 1 + random.below(3));
  spec.switches = leaves + spines;
  for (std::uint32_t h = 0; h < spec.hosts; ++h) link(h, spec.hosts + h % leaves);
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
      link(spec.hosts + leaf, spec.hosts + leaves + spine);
    }
  }
}

inline RandomScenario random_scenario(std::uint64_t seed) {
  Random random(seed, 1);
  RandomScenario out;
  FabricSpec& spec = out.spec;
  random_topology(random, spec);
  spec.seed = seed;
  spec.initial_packets = 64;
  spec.ecn.enabled = random.below(5) != 0;
  spec.ecn.kmin_bytes = random.below(20'000);
  spec.ecn.kmax_bytes = spec.ecn.kmin_bytes + random.below(40'000);
  spec.ecn.pmax = random.uniform();
  spec.ecn.mark_at_dequeue = random.below(4) != 0;
  spec.pfc.enabled = random.below(4) != 0;
  spec.pfc.lossless_classes =
      random.below(2) == 0 ? 1U << kDefaultDataClass : 1U << 1 | 1U << kDefaultDataClass;
  spec.pfc.alpha = random.below(2) == 0 ? 0.125 : 0.03 + random.uniform();
  spec.pfc.reserve_bytes = random.below(3) * 1'500;
  spec.pfc.xon_offset_bytes = random.below(4'000);
  // Sometimes too little headroom, so that lossless packets are lost and counted.
  spec.pfc.headroom_bytes = random.below(3) == 0 ? 3'000 : 20'000 + random.below(60'000);
  const std::uint64_t ports = spec.links.size() * 2;
  spec.buffer_bytes = ports * 2 * (spec.pfc.headroom_bytes + spec.pfc.reserve_bytes) + 10'000 +
                      random.below(80'000);
  for (LinkSpec& link : spec.links) {
    if (random.below(6) == 0) link.loss = 0.02;
    if (random.below(6) == 0) link.error_rate = 0.02;
  }
  if (random.below(4) == 0) spec.drop_control_ppm = 300'000;

  // Bursts towards few hosts, in several classes, with many equal times.
  const auto victims = 1 + random.below(2);
  for (std::uint32_t from = 0; from < spec.hosts; ++from) {
    Picos at{0};
    const std::uint64_t n = 50 + random.below(250);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (random.below(4) == 0) at += Picos{static_cast<std::int64_t>(random.below(20)) * 100'000};
      Send s{.at = at, .from = from};
      s.to = static_cast<std::uint32_t>(random.below(5) == 0 ? random.below(spec.hosts)
                                                             : random.below(victims));
      if (s.to == from) s.to = (from + 1) % spec.hosts;
      s.payload = static_cast<std::uint16_t>(random.below(3) == 0 ? 0 : 4 * random.below(1'025));
      constexpr std::uint8_t kClasses[] = {3, 3, 3, 3, 1, 1, 0, 7};
      s.traffic_class = kClasses[random.below(8)];
      s.ecn = random.below(5) == 0 ? Ecn::not_ect : Ecn::ect0;
      s.source_port = static_cast<std::uint16_t>(49'152 + random.below(64));
      if (random.below(16) == 0) s.opcode = 0xC1;
      out.sends.push_back(s);
    }
  }
  out.reply = random.below(2) == 0;
  return out;
}

// The same where queues are trimmed, at thresholds around those of marks and pauses.
inline RandomScenario trimming_scenario(std::uint64_t seed) {
  RandomScenario out = random_scenario(seed);
  Random random(seed, 3);
  out.spec.trim.enabled = true;
  out.spec.trim.threshold_bytes = random.below(30'000);
  out.spec.trim.to_class = random.below(3) == 0 ? 5 : kControlClass;
  return out;
}

// The same with what an operator may set, and what may go wrong: weights, spraying, links that
// fail, return, change and misbehave, regular fabrics with computed routes, curves of rates,
// answers among the data.
inline RandomScenario wild_scenario(std::uint64_t seed) {
  RandomScenario out = random_scenario(seed);
  FabricSpec& spec = out.spec;
  Random random(seed, 2);
  if (random.below(3) == 0) {
    ClosShape shape{.leaves = 2, .hosts_per_leaf = spec.hosts / 2 + 1};
    if (random.below(2) == 0) shape.spines = static_cast<std::uint32_t>(1 + random.below(3));
    shape.links_per_pair = static_cast<std::uint32_t>(1 + random.below(2));
    const std::vector<LinkSpec> old = spec.links;
    const FabricSpec fresh =
        clos(shape, {old[0].rate, old.back().rate, old.back().rate, old[0].delay, old[0].delay});
    spec.shape = shape;
    spec.hosts = fresh.hosts;
    spec.switches = fresh.switches;
    spec.links = fresh.links;
    spec.buffer_bytes += spec.links.size() * 4 * (spec.pfc.headroom_bytes + spec.pfc.reserve_bytes);
  }
  spec.load_balance = static_cast<LoadBalance>(random.below(3));
  if (random.below(2) == 0) {
    for (const std::size_t c : {0U, 1U, 3U}) {
      spec.class_weights[c] = static_cast<std::uint32_t>(random.below(4));
    }
  }
  spec.keep_queued_when_down = random.below(2) == 0;
  spec.reroute_delay = Picos{static_cast<std::int64_t>(random.below(20)) * 1'000'000};
  spec.reorder_delay = Picos{static_cast<std::int64_t>(1 + random.below(5'000'000))};
  for (LinkSpec& link : spec.links) {
    if (random.below(8) == 0) link.duplicate = 0.03;
    if (random.below(8) == 0) link.reorder = 0.05;
  }
  const auto someday = [&random] {
    return Picos{static_cast<std::int64_t>(random.below(400)) * 250'000};
  };
  for (std::uint64_t n = random.below(12); n > 0; --n) {
    const auto link = static_cast<std::uint32_t>(random.below(spec.links.size()));
    LinkEvent event{.at = someday(), .link = link};
    event.action = static_cast<LinkAction>(random.below(8));
    event.rate = random_rate(random);
    event.delay = Picos{static_cast<std::int64_t>(1 + random.below(2'000'000))};
    event.probability = 0.05;
    spec.events.push_back(event);
    if (event.action == LinkAction::down) {  // and up again, sometimes before it was noticed
      event.action = LinkAction::up;
      event.at += someday() / 2;
      spec.events.push_back(event);
    }
  }
  if (random.below(2) == 0) {
    const std::uint64_t kmin = random.below(20'000);
    spec.ecn.at_rates.push_back(
        {spec.links.back().rate, {kmin, kmin + random.below(20'000), random.uniform()}});
  }
  if (random.below(2) == 0) {  // the lab's replies are ACKs
    spec.ack_class = static_cast<std::uint8_t>(random.below(kTrafficClasses));
  }
  return out;
}

}  // namespace paceline::fabric
