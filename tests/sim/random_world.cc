#include "tests/sim/random_world.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace paceline::simtest {

namespace {

template <class T, std::size_t N>
const T& pick(Random& random, const T (&values)[N]) {
  return values[random.below(N)];
}

std::uint64_t between(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random.below(high - low + 1);
}

// Hosts over two to four leaves, every leaf linked to every one of one to three spines. The core is
// slower than the hosts now and then, so that it congests too.
void two_tier(Random& random, config::FabricConfig& fabric) {
  const auto leaves = static_cast<std::uint32_t>(between(random, 2, 4));
  const auto spines = static_cast<std::uint32_t>(between(random, 1, 3));
  fabric.switches = leaves + spines;
  for (std::uint32_t h = 0; h < fabric.hosts; ++h) {
    fabric.links.push_back({h, fabric.hosts + h % leaves, fabric.rate, fabric.delay, 0});
  }
  const Rate core = random.below(3) == 0 ? Rate{fabric.rate.bps / 2} : fabric.rate;
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
      config::LinkSpec link{fabric.hosts + leaf, fabric.hosts + leaves + spine, core,
                            picos_from_nanos(static_cast<std::int64_t>(between(random, 1, 1500))),
                            0};
      if (random.below(8) == 0) link.error_rate = 1e-3;
      fabric.links.push_back(link);
    }
  }
}

// Ports of the switch that has most.
std::uint64_t most_ports(const config::FabricConfig& fabric) {
  if (fabric.links.empty()) return fabric.hosts;
  std::vector<std::uint64_t> ports(fabric.switches);
  for (const config::LinkSpec& link : fabric.links) {
    for (const std::uint32_t node : {link.a, link.b}) {
      if (node >= fabric.hosts) ++ports[node - fabric.hosts];
    }
  }
  return *std::max_element(ports.begin(), ports.end());
}

}  // namespace

config::Scenario random_scenario(Random& random, std::uint64_t seed) {
  config::Scenario s;
  s.seed = seed;
  s.duration = picos_from_micros(500'000);  // ten times what any needs; a livelock ends here
  s.max_hops = 3'000'000;
  config::FabricConfig& f = s.fabric;
  f.hosts = static_cast<std::uint32_t>(between(random, 2, 24));
  const std::uint64_t gbps[] = {10, 25, 100, 100, 400, 30};  // the last divides no picosecond
  f.rate = rate_from_gbps(pick(random, gbps));
  f.delay = picos_from_nanos(static_cast<std::int64_t>(between(random, 1, 2000)));
  f.ecn.enabled = random.below(4) != 0;
  f.ecn.kmin_bytes = between(random, 0, 50'000);
  f.ecn.kmax_bytes = f.ecn.kmin_bytes + between(random, 0, 200'000);
  f.ecn.pmax = random.uniform();
  f.pfc.enabled = random.below(3) != 0;
  const double alphas[] = {0.0625, 0.125, 1, 8};
  f.pfc.alpha = pick(random, alphas);
  const double losses[] = {0, 0, 0, 1e-4, 1e-3, 1e-2};
  f.loss = pick(random, losses);
  if (random.below(2) == 0) f.drop_control_ppm = random.below(300'001);
  if (f.hosts >= 4 && random.below(2) == 0) two_tier(random, f);
  // Headroom for what a sender still puts on the wire until a pause has reached it, and to share
  // between almost nothing and plenty.
  const std::uint64_t shares[] = {30'000, 200'000, 2'000'000};
  f.buffer_bytes = pick(random, shares);
  if (f.pfc.enabled) {
    f.pfc.headroom_bytes = 3 * bytes_in(picos_from_micros(2), f.rate) + 4 * 4200;
    f.buffer_bytes += most_ports(f) * (f.pfc.headroom_bytes + f.pfc.reserve_bytes);
  }

  config::TransportConfig& t = s.transport;
  const std::uint32_t payloads[] = {256, 1024, 2048, 4096, 4096};
  t.payload_bytes = pick(random, payloads);
  const std::uint32_t ack_every[] = {1, 1, 2, 16};
  t.ack_every = pick(random, ack_every);
  t.retransmit_timeout = picos_from_micros(static_cast<std::int64_t>(between(random, 40, 500)));
  const char* const peers[] = {"paceline", "paceline", "discover", "roce"};
  t.peers = pick(random, peers);
  if (random.below(3) == 0) {
    t.foreign_hosts.push_back(static_cast<std::uint32_t>(random.below(f.hosts)));
  }
  const char* const algorithms[] = {"fixed", "dcqcn", "dcqcn", "cadence", "cadence"};
  s.cc.algorithm = pick(random, algorithms);
  if (s.cc.algorithm == "dcqcn" && random.below(2) == 0) s.cc.profile = "hpcc-repo";
  return s;
}

// Messages between random hosts: many small, some large, some that wait for an earlier one to
// arrive, on numbered lanes or any idle queue pair.
MessagePlan random_plan(Random& random, const config::Scenario& s, bool dependencies) {
  MessagePlan plan;
  const std::uint64_t count = between(random, 1, 80);
  std::uint64_t budget = 2000ULL * s.transport.payload_bytes;  // bounds the time of a test
  const auto hot = static_cast<std::uint32_t>(random.below(s.fabric.hosts));
  for (std::uint64_t i = 0; i < count && budget > 0; ++i) {
    PlannedMessage m;
    m.src = static_cast<std::uint32_t>(random.below(s.fabric.hosts));
    m.dst = random.below(2) == 0 ? hot : static_cast<std::uint32_t>(random.below(s.fabric.hosts));
    if (m.src == m.dst) m.dst = (m.dst + 1) % s.fabric.hosts;
    m.bytes = std::min(budget, random.below(std::uint64_t{1} << between(random, 1, 21)));
    budget -= m.bytes;
    m.start = picos_from_nanos(static_cast<std::int64_t>(random.below(100'000)));
    m.lane = random.below(3) == 0 ? kNoMessage : static_cast<std::uint32_t>(random.below(2));
    if (dependencies && !plan.messages.empty() && random.below(3) == 0) {
      m.after = static_cast<std::uint32_t>(random.below(plan.messages.size()));
      m.src = plan.messages[m.after].dst;
      if (m.src == m.dst) m.dst = plan.messages[m.after].src;
      m.gap = picos_from_nanos(static_cast<std::int64_t>(random.below(5000)));
    }
    plan.messages.push_back(m);
  }
  return plan;
}

std::string describe(const config::Scenario& s, const MessagePlan& plan) {
  std::ostringstream text;
  text << "seed " << s.seed << ": " << s.fabric.hosts << " hosts, " << s.fabric.switches
       << " switches, " << s.fabric.rate.bps / 1'000'000'000 << " Gb/s, " << s.cc.algorithm << ' '
       << s.cc.profile << ", peers " << s.transport.peers << ", " << plan.messages.size()
       << " messages, payload " << s.transport.payload_bytes << ", loss " << s.fabric.loss
       << ", control loss " << s.fabric.drop_control_ppm << " ppm, PFC " << s.fabric.pfc.enabled
       << ", ECN " << s.fabric.ecn.enabled << ", buffer " << s.fabric.buffer_bytes;
  return text.str();
}

}  // namespace paceline::simtest
