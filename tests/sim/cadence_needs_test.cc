// What the reference scenarios do not show: mechanisms of Cadence whose absence costs nothing in
// the league and breaks a world here. tests/ablation/arms.toml names these cases (`held`); the
// numbers behind the bounds are with the mechanism and without it.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/sim_support.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::simtest {
namespace {

using experiment::Metric;

struct NeedFlow {
  std::uint32_t from, to;
  std::uint64_t bytes;
  double at_us;
};

// Runs flows, in any order, on what `scenario` describes.
tools::ScenarioRun run_flows(const std::string& scenario, std::vector<NeedFlow> flows) {
  std::stable_sort(flows.begin(), flows.end(),
                   [](const NeedFlow& a, const NeedFlow& b) { return a.at_us < b.at_us; });
  const daemon::ScratchFolder folder;
  const std::string file = folder.file("flows.txt");
  std::ofstream out(file);
  out << flows.size() << '\n';
  for (const NeedFlow& flow : flows) {
    out << fmt::format("{} {} 3 100 {} {:.9f}\n", flow.from, flow.to, flow.bytes, flow.at_us / 1e6);
  }
  out.close();
  tools::ScenarioRun done =
      run(kCadence + scenario + fmt::format("[workload]\nflows_file = \"{}\"\n", file));
  REQUIRE(done.result.reason == "");
  REQUIRE(done.end == RunEnd::completed);
  return done;
}

const std::string kOpenPort = "[fabric]\nhosts = 17\nbuffer = \"1GiB\"\nflow_control = \"none\"\n";

TEST_CASE("cadence needs: starts that are not acknowledged count, or small messages fill a port",
          "[cadence_needs]") {
  Random random(5);
  std::vector<NeedFlow> flows;
  for (std::uint32_t sender = 1; sender <= 16; ++sender) {
    for (int i = 0; i < 50; ++i) flows.push_back({sender, 0, 20'000, 2 * i + random.uniform()});
  }
  // 0.6 and 14.6 MB. The starts of 16 senders, s = 44 kB each, and half a BDP: 0.73 MB.
  CHECK(run_flows(kOpenPort, flows).result.metrics[Metric::queue_max_bytes] < 1e6);
}

TEST_CASE("cadence needs: short messages go ahead seldom, or they exceed every grant",
          "[cadence_needs]") {
  Random random(6);
  std::vector<NeedFlow> flows;
  for (std::uint32_t sender = 1; sender <= 16; ++sender) {
    flows.push_back({sender, 0, 5'000'000, random.uniform()});
    for (int i = 0; i < 100; ++i) {
      flows.push_back({sender, 0, 20'000, 20 + 4 * i + random.uniform()});
    }
  }
  // 1.7 and 61 MB.
  CHECK(run_flows(kOpenPort, flows).result.metrics[Metric::queue_max_bytes] < 4e6);
}

TEST_CASE(
    "cadence needs: starts of a host share a BDP, or a shuffle of small messages pauses ports",
    "[cadence_needs]") {
  Random random(7);
  std::vector<NeedFlow> flows;
  for (std::uint32_t phase = 0; phase < 2; ++phase) {
    for (std::uint32_t from = 0; from < 64; ++from) {
      for (std::uint32_t to = 0; to < 24; ++to) {
        if (to != from) flows.push_back({from, to, 40'000, 100.0 * phase + 2 * random.uniform()});
      }
    }
  }
  const tools::ScenarioRun shuffle = run_flows("[fabric]\nhosts = 64\n", flows);
  CHECK(shuffle.network.pause_frames == 0);
  CHECK(shuffle.result.metrics[Metric::queue_max_bytes] < 1e6);  // 0.6 and 1.4 MB
}

TEST_CASE("cadence needs: a_max bounds the queue of many senders", "[cadence_needs]") {
  const tools::ScenarioRun many =
      run(kCadence + "[fabric]\nhosts = 1001\nbuffer = \"1GiB\"\nflow_control = \"none\"\n" +
          "[workload]\nkind = \"incast\"\nfan_in = 1000\nmessage_bytes = \"200kB\"\n" +
          "start_jitter = \"1us\"\n");
  REQUIRE(many.result.reason == "");
  CHECK(many.result.metrics[Metric::queue_max_bytes] < 1.2e6);  // 0.8 and 3.4 MB
}

TEST_CASE("cadence needs: few peers start with a BDP together, or each message of some BDP waits",
          "[cadence_needs]") {
  const tools::ScenarioRun few = run(kCadence + R"(
[fabric]
hosts = 5
rate = "400Gb/s"
[workload]
kind = "all_to_all"
message_bytes = "500kB"
start_jitter = "2us"
)");
  REQUIRE(few.result.reason == "");
  CHECK(few.result.metrics[Metric::collective_efficiency] > 0.92);  // 0.95 and 0.89
}

TEST_CASE(
    "cadence needs: caps are told near the grant only, or an exchange of many is full of REQUESTs",
    "[cadence_needs]") {
  const tools::ScenarioRun many =
      run(shipped("moe", {"fabric.hosts=96", "workload.message_bytes=300kB", "cc.algorithm=cadence",
                          "cc.profile=default"}));
  REQUIRE(many.result.reason == "");
  CHECK(many.result.metrics[Metric::control_overhead] < 0.034);  // 3.1 and 3.6 %
}

TEST_CASE("cadence needs: the round trip of control messages, where a path is longer than T",
          "[cadence_needs]") {
  const tools::ScenarioRun longer =
      run(kCadence + "[fabric]\nhosts = 5\n" +
          "[workload]\nkind = \"incast\"\nfan_in = 4\nmessage_bytes = \"5MB\"\n" +
          "start_jitter = \"1us\"\n" +
          "[[event]]\nat = \"0us\"\nlink = \"host0\"\naction = \"delay\"\ndelay = \"20us\"\n");
  REQUIRE(longer.result.reason == "");
  CHECK(longer.result.metrics[Metric::collective_efficiency] > 0.85);  // 0.93 and 0.16
}

TEST_CASE("cadence needs: a decrease is told again, or who waits is granted nothing in time",
          "[cadence_needs]") {
  // Twice as many channels as may be active, and a tenth of the control messages lost.
  const tools::ScenarioRun turns =
      run(kCadence + "seed = 2\n[fabric]\nhosts = 257\ndrop_control_ppm = 100000\n" +
          "[workload]\nkind = \"incast\"\nfan_in = 256\nmessage_bytes = \"300kB\"\n" +
          "start_jitter = \"100us\"\n");
  CHECK(turns.result.reason == "");                                  // without: I4
  CHECK(turns.result.metrics[Metric::collective_efficiency] > 0.9);  // 0.94 and 0.88
}

TEST_CASE("cadence needs: a turn lasts until all that have it can have been told of it",
          "[cadence_needs]") {
  // The receiver takes a quarter of what its link is said to carry, so 0.25 is all there is.
  const tools::ScenarioRun turns =
      run(kCadence + "[fabric]\nhosts = 627\nrate = \"10Gb/s\"\ndelay = \"674ns\"\n" +
          "buffer = \"3GiB\"\nflow_control = \"none\"\n[transport]\npayload_bytes = 1024\n" +
          "retransmit_timeout = \"1s\"\n[workload]\nkind = \"incast\"\nfan_in = 626\n" +
          "message_bytes = 8082\nstart_jitter = \"2699ns\"\n" +
          "[[event]]\nat = \"0ns\"\nlink = \"host0\"\naction = \"rate\"\nrate = \"2500Mb/s\"\n");
  REQUIRE(turns.result.reason == "");                                 // with 64 T: I4
  CHECK(turns.result.metrics[Metric::collective_efficiency] > 0.17);  // 0.21 and 0.03
}

// 32 hosts into an oversubscribed core. Its switches drop before a queue takes five round trips.
tools::ScenarioRun core_of_small_buffers() {
  tools::ScenarioRun done = run(kCadence + R"(
[fabric]
topology = "leaf_spine"
leaves = 4
spines = 2
hosts_per_leaf = 8
oversubscription = 8
buffer = "1MiB"
flow_control = "none"
[transport]
reliability = "selective"
retransmit_timeout = "500us"
[workload]
kind = "permutation"
shift = 8
message_bytes = "5MB"
start_jitter = "5us"
)");
  REQUIRE(done.result.reason == "");
  REQUIRE(done.end == RunEnd::completed);
  return done;
}

TEST_CASE("cadence needs: P falls after losses, and grows after round trips of T' only",
          "[cadence_needs]") {
  // 4,200 drops; 56,000 without losses that lower P, 10,900 if P grows whatever the delay.
  CHECK(core_of_small_buffers().network.total_drops() < 7000);
}

TEST_CASE("cadence needs: P falls once for what was sent before, or it falls to its least",
          "[cadence_needs]") {
  // Five other hosts send 200 kB each over the same trunk.
  std::vector<NeedFlow> flows{{0, 8, 5'000'000, 0}};
  for (std::uint32_t host = 1; host <= 5; ++host) flows.push_back({host, host + 8, 200'000, 50});
  const tools::ScenarioRun beside = run_flows(
      "[transport]\nreliability = \"selective\"\nforeign_hosts = [1, 2, 3, 4, 5]\n"
      "[fabric]\ntopology = \"dumbbell\"\nhosts = 16\nuplink_rate = \"100Gb/s\"\n",
      flows);
  CHECK(beside.result.metrics[Metric::goodput_gbps] > 88);  // 92 and 82
}

TEST_CASE("cadence needs: P that is well above G binds no more, when others have gone",
          "[cadence_needs]") {
  Random random(8);
  std::vector<NeedFlow> flows;
  for (std::uint32_t sender = 0; sender < 7; ++sender) {
    flows.push_back({sender, 8, 200'000, random.uniform()});
  }
  flows.push_back({7, 8, 1'600'000, 0});
  const tools::ScenarioRun left = run_flows(
      "[[event]]\nat = \"20us\"\nlink = \"leaf0-leaf1\"\naction = \"rate\"\nrate = \"10Gb/s\"\n"
      "[[event]]\nat = \"284us\"\nlink = \"leaf0-leaf1\"\naction = \"rate\"\nrate = \"400Gb/s\"\n"
      "[fabric]\ntopology = \"dumbbell\"\nhosts = 16\nuplink_rate = \"400Gb/s\"\n",
      flows);
  CHECK(left.result.metrics[Metric::goodput_gbps] > 45);  // 47 and 42
}

}  // namespace
}  // namespace paceline::simtest
