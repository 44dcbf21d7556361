// Two arms in one world at a time, by the host that data goes to: each context reads its own arm's
// values, receivers grant as their own cluster says, and changing sides loses nothing.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/random_world.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

using Setups = std::array<transport::CcSetup, 2>;
constexpr std::uint8_t kNone = telemetry::kNoCluster;

config::CcConfig arm_of(const std::string& algorithm, std::vector<config::ParamValue> params = {}) {
  config::CcConfig cc;
  cc.algorithm = algorithm;
  cc.params = std::move(params);
  return cc;
}

// Host 0 sends to 1 and 2, host 3 to 1, all the time.
MessagePlan three_flows(std::uint64_t bytes) {
  MessagePlan plan;
  for (const auto& [src, dst] : {std::pair(0U, 1U), std::pair(0U, 2U), std::pair(3U, 1U)}) {
    PlannedMessage message;
    message.src = src;
    message.dst = dst;
    message.bytes = bytes;
    plan.messages.push_back(message);
  }
  return plan;
}

config::Scenario four_hosts(const std::string& algorithm) {
  config::Scenario s;
  s.seed = 1;
  s.max_hops = 0;
  s.fabric.hosts = 4;
  s.cc = arm_of(algorithm);
  return s;
}

// Queue pairs of a host, by where they lead: a host's address ends with its number + 1.
telemetry::QueuePairRecord flow(const VirtualWorld& world, std::uint32_t src, std::uint32_t dst) {
  const transport::Engine& engine = world.engine(src);
  for (std::uint32_t qp = engine.view().next_qp(0); qp != 0; qp = engine.view().next_qp(qp)) {
    telemetry::QueuePairRecord record;
    REQUIRE(engine.view().describe_qp(world.now(), qp, record));
    if (record.peer[15] == dst + 1) return record;
  }
  FAIL("no queue pair from " << src << " to " << dst);
  return {};
}

std::string algorithm_of(const VirtualWorld& world, std::uint32_t src, std::uint32_t dst) {
  return flow(world, src, dst).algorithm.data();
}

// Runs `plan` and calls `steps` one after the other, 200 us apart: longer than the ten round trips
// in which contexts hear of a change.
void step_through(const config::Scenario& s, MessagePlan plan,
                  const std::vector<std::function<void(VirtualWorld&)>>& steps) {
  WorldOptions options = checked();
  options.control_interval = picos_from_micros(200);
  std::size_t next = 0;
  options.control = [&](VirtualWorld& world, Picos) {
    for (std::uint32_t h = 0; h < world.hosts(); ++h) {
      CHECK(world.engine(h).view().check_conservation() == "");
    }
    if (next == steps.size()) return;
    if (steps[next] != nullptr) steps[next](world);
    ++next;
  };
  VirtualWorld world(s, std::move(plan), options);
  CHECK(to_string(world.run()) == std::string(to_string(RunEnd::completed)));
  CHECK(next == steps.size());
  CHECK(world.messages_failed() == 0);
  CHECK(broken_law(world) == "");
}

TEST_CASE("two arms of one algorithm: each receiver has its own values, at the same time",
          "[arms]") {
  constexpr std::uint64_t kGbps = 1'000'000'000;
  Setups setups;
  const auto use = [&](std::vector<std::uint8_t> arms, std::uint8_t epoch) {
    return [&, arms, epoch](VirtualWorld& world) {
      setups = {world.cc_setup(arm_of("fixed", {{"rate_mbps", 10'000}})),
                world.cc_setup(arm_of("fixed", {{"rate_mbps", 4'000}}))};
      world.reconfigure_by_receiver(setups, arms, epoch);
    };
  };
  const auto see = [](std::uint64_t to1, std::uint64_t to2, std::uint64_t from3) {
    return [=](VirtualWorld& world) {
      CHECK(flow(world, 0, 1).rate_bps == to1 * kGbps);
      CHECK(flow(world, 0, 2).rate_bps == to2 * kGbps);
      CHECK(flow(world, 3, 1).rate_bps == from3 * kGbps);
    };
  };
  step_through(four_hosts("fixed"), three_flows(5'000'000),
               {use({0, 0, 1, 1}, 1), see(10, 4, 10),
                // The other way round: what is under way changes sides.
                use({0, 1, 0, 0}, 2), see(4, 10, 4),
                // All in one, and a host that is in no cluster has the champion.
                use({1, 1, 1, 1}, 3), see(4, 4, 4), use({1, 1, kNone, 1}, 4), see(4, 10, 4),
                [&](VirtualWorld& world) { world.reconfigure(setups[0], 0, 0); }, see(10, 10, 10)});
}

TEST_CASE("two arms: clusters of peers are told by queue pair, and retransmissions by cluster",
          "[arms]") {
  config::Scenario s = four_hosts("fixed");
  s.fabric.loss = 0.01;
  s.transport.retransmit_timeout = picos_from_micros(100);
  s.transport.retry_count = 1000;
  std::uint64_t again = 0;
  std::array<std::uint64_t, 2> to{};
  step_through(
      s, three_flows(5'000'000),
      {[](VirtualWorld& world) {
         const transport::CcSetup setup = world.cc_setup(arm_of("fixed", {{"rate_mbps", 10'000}}));
         world.reconfigure_by_receiver({setup, setup}, std::vector<std::uint8_t>{kNone, 0, 1, 0},
                                       7);
         const transport::Engine& engine = world.engine(0);
         for (std::uint32_t qp = engine.view().next_qp(0); qp != 0;
              qp = engine.view().next_qp(qp)) {
           telemetry::QueuePairRecord record;
           REQUIRE(engine.view().describe_qp(world.now(), qp, record));
           CHECK(engine.view().cluster_of(qp, 0) == record.peer[15] - 2);
         }
         CHECK(engine.view().cluster_of(0xFFFF, 0) == kNone);
       },
       [&](VirtualWorld& world) { again = world.engine(0).counters().retransmitted_packets; },
       {},
       {},
       {},
       {},
       {},
       {},
       [&](VirtualWorld& world) {
         const transport::Engine& engine = world.engine(0);
         to = {engine.view().retransmitted_to(0), engine.view().retransmitted_to(1)};
         CHECK(to[0] > 0);
         CHECK(to[1] > 0);
         // All that went out again since there were clusters went to one of the two.
         CHECK(to[0] + to[1] <= world.engine(0).counters().retransmitted_packets);
         CHECK(to[0] + to[1] >= world.engine(0).counters().retransmitted_packets - again);
       }});
}

TEST_CASE("two arms: a receiver grants as its own cluster does, to senders of both", "[arms]") {
  const auto use = [](std::vector<std::uint8_t> arms) {
    return [arms](VirtualWorld& world) {
      world.reconfigure_by_receiver(
          {world.cc_setup(arm_of("dcqcn")), world.cc_setup(arm_of("cadence"))}, arms, 1);
    };
  };
  std::array<std::uint64_t, 4> grants{};
  const auto count = [&grants](VirtualWorld& world) {
    for (std::uint32_t h = 0; h < 4; ++h) grants[h] = world.engine(h).counters().grants_sent;
  };
  step_through(four_hosts("dcqcn"), three_flows(60'000'000),
               {use({0, 0, 1, 0}),
                count,
                [&](VirtualWorld& world) {
                  CHECK(algorithm_of(world, 0, 1) == "dcqcn");
                  CHECK(algorithm_of(world, 0, 2) == "cadence");
                  CHECK(algorithm_of(world, 3, 1) == "dcqcn");
                  CHECK(world.engine(1).counters().grants_sent == 0);
                  CHECK(world.engine(2).counters().grants_sent > grants[2]);
                  CHECK(world.engine(0).view().population().on_fallback == 0);
                },
                use({0, 1, 0, 0}),
                // What host 2 granted outlives its change by 2 ms, ten steps.
                {},
                {},
                {},
                {},
                {},
                {},
                {},
                {},
                {},
                {},
                {},
                count,
                [&](VirtualWorld& world) {
                  CHECK(algorithm_of(world, 0, 1) == "cadence");
                  CHECK(algorithm_of(world, 0, 2) == "dcqcn");
                  CHECK(algorithm_of(world, 3, 1) == "cadence");
                  CHECK(world.engine(1).counters().grants_sent > grants[1]);
                  CHECK(world.engine(2).counters().grants_sent == grants[2]);
                  CHECK(world.engine(0).view().population().on_fallback == 0);
                }});
}

TEST_CASE("two arms that do not go together are refused, and say why", "[arms]") {
  step_through(four_hosts("dcqcn"), three_flows(5'000'000), {[](VirtualWorld& world) {
                 transport::ArmsByPeer arms;
                 arms.setups = {world.cc_setup(arm_of("cadence")), world.cc_setup(arm_of("sird"))};
                 CHECK(world.engine(0).reconfigure_refusal(arms) ==
                       "cadence and sird cannot share the uplink: two different proactive "
                       "algorithms would each need an arbiter of their own");
                 arms.setups[1] = world.cc_setup(arm_of("cadence", {{"eta", 0.8}}));
                 CHECK(world.engine(0).reconfigure_refusal(arms) == "");
                 arms.setups[1].primary.values.pop_back();
                 CHECK_THAT(world.engine(0).reconfigure_refusal(arms),
                            Catch::Matchers::StartsWith("arm 1: primary: cadence has"));
                 arms.setups[1] = arms.setups[0];
                 arms.places.push_back({wire::IpAddress::v4(1), 16});
                 CHECK(world.engine(0).reconfigure_refusal(arms) == "cluster 16 of 16 at most");
               }});
}

// --- random worlds ---

// Puts hosts into clusters, swaps arms, goes back to one arm, at random times.
class Crosser {
 public:
  explicit Crosser(std::uint64_t seed) : random_(seed, 101) {}

  void operator()(VirtualWorld& world, Picos now) {
    for (std::uint32_t h = 0; h < world.hosts() && broken.empty(); ++h) {
      broken = world.engine(h).view().check_conservation();
      if (broken.empty()) broken = world.engine(h).view().violation();
      if (!broken.empty()) broken.insert(0, "host " + std::to_string(h) + ": ");
    }
    if (now < next_) return;
    next_ = now + picos_from_micros(static_cast<std::int64_t>(10U << random_.below(7)));
    ++changes;
    const char* const reactive[] = {"dcqcn", "swift", "fixed"};
    const char* const any[] = {"dcqcn", "swift", "fixed", "cadence", "eqds", "homa"};
    const Setups setups{world.cc_setup(arm_of(reactive[random_.below(3)])),
                        world.cc_setup(arm_of(any[random_.below(6)]))};
    if (random_.below(4) == 0) {
      world.reconfigure(setups[random_.below(2)], 1, 1);
      return;
    }
    const bool swapped = random_.below(2) == 0;
    std::vector<std::uint8_t> arms;
    for (std::uint32_t h = 0; h < world.hosts(); ++h) {
      arms.push_back(random_.below(8) == 0 ? kNone : static_cast<std::uint8_t>(random_.below(2)));
    }
    world.reconfigure_by_receiver(swapped ? Setups{setups[1], setups[0]} : setups, arms,
                                  static_cast<std::uint8_t>(changes));
  }

  std::uint32_t changes = 0;
  std::string broken;

 private:
  Random random_;
  Picos next_ = picos_from_micros(10);
};

TEST_CASE("two arms: random clusters in random worlds lose no message", "[arms]") {
  std::uint32_t changes = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed, 79);
    config::Scenario s = random_scenario(random, seed);
    s.max_hops = 0;
    s.transport.retry_count = 1000;  // whatever a fabric loses, no message may be
    if (seed % 3 == 0) s.transport.reliability = "selective";
    const MessagePlan plan = random_plan(random, s, true);
    INFO(describe(s, plan) << ", " << s.transport.reliability);
    Crosser crosser(seed);
    WorldOptions options = checked();
    options.control_interval = picos_from_micros(5);
    options.control = [&crosser](VirtualWorld& world, Picos now) { crosser(world, now); };
    VirtualWorld world(s, plan, options);
    CHECK(to_string(world.run()) == std::string(to_string(RunEnd::completed)));
    CHECK(crosser.broken == "");
    CHECK(broken_law(world) == "");
    CHECK(world.messages_failed() == 0);
    changes += crosser.changes;
  }
  CHECK(changes >= 300);
}

}  // namespace
}  // namespace paceline::simtest
