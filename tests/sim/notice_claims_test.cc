// From a queue to a rate: how soon senders slow down that switches tell directly, and that their
// receivers tell; and what notices keep the queue to. In virtual time.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kNotified = "cc = { algorithm = \"switch-notified\" }\n";
constexpr std::uint64_t kKmin = 400'000;

std::string notifying(std::string toml) {
  return toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nnotice = { enabled = true }\n");
}

// The senders on one leaf, the receiver on the other: one queue, at the receiver's port.
std::string across(unsigned fan_in, std::uint64_t seed) {
  return notifying(
      "seed = " + std::to_string(seed) +
      "\n[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = "
      "16\nuplink_rate = \"1600Gb/s\"\n[workload]\nkind = \"incast\"\nreceiver = 16\nfan_in = " +
      std::to_string(fan_in) + "\nmessage_bytes = \"4MB\"\nstart_jitter = \"1us\"\n");
}

// When the queue towards the receiver first passes kmin, and from when on senders are below the
// line rate: the first of them, and half.
struct Reaction {
  Picos passed = kNever;
  Picos first = kNever;
  Picos half = kNever;

  double us(Picos at) const { return static_cast<double>((at - passed).count) * 1e-6; }
};

unsigned slowed_senders(const VirtualWorld& world, Picos at) {
  unsigned slowed = 0;
  telemetry::QueuePairRecord record;
  for (std::uint32_t host = 0; host < 16; ++host) {
    const transport::EngineView view = world.engine(host).view();
    const std::uint32_t number = view.next_qp(0);
    if (number == 0 || !view.describe_qp(at, number, record)) continue;
    if (record.rate_bps < rate_from_gbps(100).bps) ++slowed;
  }
  return slowed;
}

Reaction reaction_of(const std::string& toml, unsigned senders) {
  Reaction out;
  std::atomic<bool> stop{false};
  WorldOptions options = checked();
  options.stop = &stop;
  options.sample_interval = picos_from_nanos(20);
  options.sample = [&](const VirtualWorld& w, Picos at) {
    if (stop) return;
    // A look at a queue needs a mutable network; it changes no result (network.h).
    auto& network = const_cast<VirtualWorld&>(w).network();
    const std::uint64_t queue = network.queue_bytes(network.topology().host_downlink(16), at);
    if (out.passed == kNever && queue > kKmin) out.passed = at;
    const unsigned slowed = slowed_senders(w, at);
    if (out.first == kNever && slowed > 0) out.first = at;
    if (out.half == kNever && 2 * slowed >= senders) out.half = at;
    if (out.half != kNever && out.passed != kNever) stop = true;
  };
  VirtualWorld world = world_of(toml, options);
  world.run();
  REQUIRE(out.passed != kNever);
  REQUIRE(out.half != kNever);
  return out;
}

// A sender, for the first to be told is chosen by chance: half of them is a bound of its own only
// where there are many.
TEST_CASE("notice claims: the first sender slows down in at most half the time that DCQCN takes",
          "[notice_claims]") {
  for (const unsigned senders : {2U, 4U, 16U}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      CAPTURE(senders, seed);
      const Reaction told = reaction_of(kNotified + across(senders, seed), senders);
      const Reaction marked = reaction_of(kDcqcnPaper + across(senders, seed), senders);
      WARN(senders << " senders, us from kmin to the first cut, and until half are cut: dcqcn "
                   << marked.us(marked.first) << " and " << marked.us(marked.half)
                   << ", switch-notified " << told.us(told.first) << " and " << told.us(told.half));
      CHECK(marked.us(marked.first) > 0);
      CHECK(told.us(told.first) <= 0.5 * marked.us(marked.first));
      CHECK(told.us(told.half) < marked.us(marked.half));
    }
  }
}

TEST_CASE("notice claims: notices come from switches, and their flows are not marked",
          "[notice_claims]") {
  const tools::ScenarioRun r = run(kNotified + across(16, 1));
  REQUIRE(r.end == RunEnd::completed);
  CHECK(r.network.notices > 0);
  CHECK(r.counters.notices_received == r.network.notices);
  CHECK(r.counters.cnps_sent == 0);
  CHECK(r.network.marked_packets == 0);
  // Flows of others in the same fabric are marked, and not told.
  const tools::ScenarioRun others = run(kDcqcnPaper + across(16, 1));
  REQUIRE(others.end == RunEnd::completed);
  CHECK(others.network.notices == 0);
  CHECK(others.network.marked_packets > 0);
}

}  // namespace
}  // namespace paceline::simtest
