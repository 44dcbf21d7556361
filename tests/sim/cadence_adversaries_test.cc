// Worlds that cadence was never tuned on: 2 to 1,023 senders, 10 to 800 Gb/s, round trips from 2 us
// to 10 ms, every MTU, one packet to many round trips, control messages lost, half of the senders
// foreign, the receiver's link halved under load or slower than its rate from the start, senders
// that come and go at the period of the lease. Its invariants hold at every step (as with
// `paceline emulate --check`), everybody's messages arrive, and the queue stays within the bound of
// docs/algorithms/cadence.md.
//   CADENCE_WORLDS=10000 build/release/tests/sim/test_sim "cadence adversaries*"
// CADENCE_FIRST is the seed of the first world (default: 1).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/sim_support.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::simtest {
namespace {

using experiment::Metric;

struct Adversary {
  std::uint32_t senders = 0;
  std::uint64_t gbps = 0;
  std::int64_t rtt_ns = 0;
  std::uint32_t mtu = 0;
  std::uint64_t message_bytes = 0;
  bool control_lost = false;
  bool foreign = false;
  bool halved = false;
  bool slow = false;         // the receiver takes a quarter of what its link is said to carry
  std::uint32_t bursts = 1;  // messages of each sender, a lease apart

  double bdp() const { return static_cast<double>(gbps) * static_cast<double>(rtt_ns) / 8; }
  double packet() const { return mtu + 82.0; }
  bool bounded() const { return !control_lost && !foreign && !halved && !slow; }

  // The lease of so many active channels: line 37 of the law.
  double lease_ns() const {
    const double control_ns = 136 * 8 / (static_cast<double>(gbps) * 0.01 / 3);
    const double active = std::min(senders, 128U);
    return std::max(100'000.0,
                    4 * std::max(2.0 * static_cast<double>(rtt_ns), active * control_ns));
  }
  // The text of [workload]; bursts are a list of flows in `file`.
  std::string workload(const std::string& file, Random& random) const {
    if (bursts == 1) {
      return fmt::format(
          "kind = \"incast\"\nfan_in = {}\nmessage_bytes = {}\nstart_jitter = \"{}ns\"\n", senders,
          message_bytes, std::min<std::int64_t>(rtt_ns, 100'000));
    }
    std::multimap<double, std::uint32_t> flows;
    for (std::uint32_t sender = 1; sender <= senders; ++sender) {
      double at = lease_ns() * random.uniform();
      for (std::uint32_t i = 0; i < bursts; ++i) {
        flows.emplace(at, sender);
        at += lease_ns() * (0.9 + 0.2 * random.uniform());
      }
    }
    std::ofstream out(file);
    out << flows.size() << '\n';
    for (const auto& [at, sender] : flows) {
      out << fmt::format("{} 0 3 100 {} {:.9f}\n", sender, message_bytes, at / 1e9);
    }
    return fmt::format("flows_file = \"{}\"\n", file);
  }

  std::string toml(std::uint64_t seed, const std::string& work) const {
    std::string text = fmt::format(
        "seed = {}\nmax_hops = 2_000_000\n"
        "cc = {{ algorithm = \"cadence\", fallback = \"dcqcn\", fallback_profile = \"paper\" }}\n"
        "[fabric]\nhosts = {}\nrate = \"{}Gb/s\"\ndelay = \"{}ns\"\nbuffer = \"3GiB\"\n"
        "flow_control = \"none\"\ndrop_control_ppm = {}\n"
        "[transport]\npayload_bytes = {}\nretransmit_timeout = \"20ms\"\n{}[workload]\n{}",
        seed, senders + 1, gbps, std::max<std::int64_t>(rtt_ns / 4, 1), control_lost ? 100'000 : 0,
        mtu, foreign ? fmt::format("foreign_hosts = [{}]\n", half()) : "", work);
    if (halved || slow) {
      text += fmt::format(
          "[[event]]\nat = \"{}ns\"\nlink = \"host0\"\naction = \"rate\"\nrate = \"{}Mb/s\"\n",
          slow ? 0 : 5 * rtt_ns, gbps * 1000 / (slow ? 4 : 2));
    }
    return text;
  }
  std::string half() const {
    std::string hosts;
    for (std::uint32_t host = 1; host <= senders / 2; ++host) {
      hosts += (host == 1 ? "" : ", ") + std::to_string(host);
    }
    return hosts;
  }
  // I3: starts, half a BDP, and a packet for each active channel, half as many again while turns
  // change. The emulator's T contains a full packet's time on both links, which rtt_ns leaves out.
  // Control messages of all senders, 136 bytes both ways, make T' longer than T.
  double most_queued() const {
    const double wire = static_cast<double>(message_bytes) +
                        std::ceil(static_cast<double>(message_bytes) / mtu) * 82 + 32;
    const double b = bdp() + 4 * packet();
    const double small = std::max(0.75 * b, packet());
    double start = std::min(wire, b);
    if (wire > small && senders > 2)
      start = std::max(b / senders, small * small * small / wire / wire);
    return senders * std::min(start, b) + b / 2 + 1.5 * std::min(senders, 128U) * packet() +
           16 * packet() + 2 * 136.0 * senders;
  }
};

Adversary random_adversary(Random& random) {
  Adversary a;
  a.senders = static_cast<std::uint32_t>(std::pow(2.0, 1 + random.uniform() * 9));  // 2 to 1,023
  constexpr std::array<std::uint64_t, 5> kRates = {10, 25, 100, 400, 800};
  a.gbps = kRates[random.below(kRates.size())];
  a.rtt_ns = static_cast<std::int64_t>(2000 * std::pow(5000.0, random.uniform()));
  a.mtu = 256U << random.below(5);
  if (random.below(5) == 0) a.bursts = 8;
  // From a byte to 20 BDP, but no more packets than a test has time for.
  const double most = std::max(2.0, std::min(20 * a.bdp(), 6000.0 * a.mtu / a.senders / a.bursts));
  const double drawn = random.uniform();
  a.message_bytes =
      static_cast<std::uint64_t>(random.below(2) == 0 ? std::pow(most, drawn) : 1 + most * drawn);
  a.control_lost = random.below(4) == 0;
  a.foreign = random.below(5) == 0;
  a.halved = random.below(5) == 0;
  a.slow = random.below(8) == 0;
  return a;
}

TEST_CASE("cadence adversaries: invariants hold, nobody starves, the queue keeps to its bound",
          "[cadence_adversaries][property]") {
  const char* const wanted = std::getenv("CADENCE_WORLDS");
  const unsigned worlds = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 100;
  const char* const begin = std::getenv("CADENCE_FIRST");
  const std::uint64_t first = begin != nullptr ? std::strtoull(begin, nullptr, 10) : 1;
  const daemon::ScratchFolder folder;
  for (std::uint64_t seed = first; seed < first + worlds; ++seed) {
    Random random(seed, 23);
    const Adversary a = random_adversary(random);
    const std::string toml = a.toml(seed, a.workload(folder.file("flows.txt"), random));
    CAPTURE(toml);
    const tools::ScenarioRun out = run(toml);
    REQUIRE(out.result.reason == "");
    REQUIRE(out.end == RunEnd::completed);
    CHECK(out.result.messages_completed == a.senders * a.bursts);
    if (!a.bounded()) continue;
    CHECK(out.network.total_drops() == 0);
    CHECK(out.result.metrics[Metric::queue_max_bytes] <= a.most_queued());
  }
}

TEST_CASE("cadence adversaries: 4,096 channels of one packet each", "[cadence_adversaries]") {
  Adversary a;
  a.senders = 4096;
  a.gbps = 100;
  a.rtt_ns = 8'000;
  a.mtu = 4096;
  a.message_bytes = 4096;
  Random random(1, 23);
  const tools::ScenarioRun out = run(a.toml(1, a.workload("", random)));
  REQUIRE(out.result.reason == "");
  CHECK(out.result.messages_completed == a.senders);
  CHECK(out.network.total_drops() == 0);
  CHECK(out.result.metrics[Metric::queue_max_bytes] <= a.most_queued());
  // They are starts, all of them: no sender asks, and the receiver's port does not idle.
  CHECK(out.result.metrics[Metric::collective_efficiency] > 0.99);
}

}  // namespace
}  // namespace paceline::simtest
