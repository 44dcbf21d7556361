// A run shared by several threads is the run of one: the same hash over every completion and its
// time, the same counters, the same number of events.

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/sim_support.h"

namespace paceline::simtest::parallel {
namespace {

// The parts of a scenario. The fabrics end in the table [fabric], for more of its keys to follow.
const std::string kLeafSpine =
    "[fabric]\ntopology = \"leaf_spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n";
const std::string kFatTree = "[fabric]\ntopology = \"fat_tree\"\nk = 4\n";
const std::string kDumbbell = "[fabric]\ntopology = \"dumbbell\"\nhosts = 8\n";
const std::string kPermutation =
    "[workload]\nkind = \"permutation\"\nmessage_bytes = \"300kB\"\nstart_jitter = \"3us\"\n";
const std::string kAllToAll =
    "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"40kB\"\nskew = 1.0\n"
    "start_jitter = \"10us\"\n";
const std::string kIncast =
    "[workload]\nkind = \"incast\"\nfan_in = 7\nmessage_bytes = \"200kB\"\n"
    "start_jitter = \"1us\"\n";
const std::string kRing =
    "[workload]\nkind = \"ring_all_reduce\"\nall_reduce_bytes = \"500kB\"\n"
    "chunk_bytes = \"16KiB\"\nstart_jitter = \"5us\"\n";
const std::string kOpenLoop =
    "[workload]\nkind = \"open_loop\"\ncdf = \"fb_hadoop\"\nload = 0.6\nwindow = \"50us\"\n";
// Marks and pauses, or losses where PFC is off.
const std::string kShallow =
    "buffer = \"400kB\"\necn = { kmin = \"20kB\", kmax = \"80kB\" }\n"
    "pfc = { headroom = \"40kB\", xon_offset = \"3kB\" }\n";
const std::string kShallowLossy =
    "buffer = \"100kB\"\necn = { kmin = \"20kB\", kmax = \"80kB\" }\npfc = { enabled = false }\n";
const std::string kQuickRepair = "[transport]\nretransmit_timeout = \"100us\"\n";

struct Outcome {
  RunEnd end = RunEnd::completed;
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t failed = 0;
  Picos now{0};
  fabric::NetworkStats stats;
  std::uint64_t last_hop_max = 0;
  Histogram last_hop;
  Histogram core;
  std::vector<std::optional<fabric::EgressStats>> egress;
  std::vector<std::int64_t> limited;
  telemetry::EngineCounters counters{};
  std::string problem;
  std::string one_thread_because;
  ParallelUse use;

  std::uint64_t events_shared() const {
    std::uint64_t sum = 0;
    for (const ThreadUse& thread : use.threads) sum += thread.events;
    return sum - use.events_alone;
  }
};

// sweep: windows node by node; else event by event.
Outcome outcome(const std::string& toml, std::uint32_t threads, bool exact_departures = false,
                bool sweep = false) {
  WorldOptions options = checked();
  options.sweep = sweep;
  options.threads = threads;
  options.exact_departures = exact_departures;
  VirtualWorld world = world_of(toml, options);
  Outcome out;
  out.end = world.run();
  out.hash = world.trace_hash();
  out.events = world.events();
  out.failed = world.messages_failed();
  out.now = world.now();
  const fabric::Network& network = world.network();
  out.stats = network.stats();
  out.last_hop_max = network.last_hop_max_bytes();
  out.last_hop = network.last_hop_depth();
  out.core = network.core_depth();
  for (std::uint32_t link = 0; link < network.links(); ++link) {
    out.egress.push_back(network.egress_stats(link));
  }
  for (std::uint32_t host = 0; host < world.hosts(); ++host) {
    for (const auto picos : world.engine(host).view().limiter_picos(world.now())) {
      out.limited.push_back(static_cast<std::int64_t>(picos));
    }
  }
  out.counters = total_counters(world);
  out.problem = world.problem();
  out.one_thread_because = world.one_thread_because();
  out.use = world.thread_use();
  return out;
}

void check_same(const Outcome& many, const Outcome& one) {
  CHECK(many.problem == one.problem);
  CHECK(many.end == one.end);
  CHECK(many.hash == one.hash);
  CHECK(many.events == one.events);
  CHECK(many.failed == one.failed);
  CHECK(many.now == one.now);
  CHECK(many.stats == one.stats);
  CHECK(many.last_hop_max == one.last_hop_max);
  CHECK((many.last_hop == one.last_hop));
  CHECK((many.core == one.core));
  CHECK((many.egress == one.egress));
  CHECK(many.limited == one.limited);
  CHECK(many.counters.tx_data_bytes == one.counters.tx_data_bytes);
  CHECK(many.counters.retransmitted_bytes == one.counters.retransmitted_bytes);
  CHECK(many.counters.cnps_sent == one.counters.cnps_sent);
}

// The run of one thread, to be asked what happened in it.
Outcome same_with_any_number(const std::string& toml, RunEnd end = RunEnd::completed,
                             const std::vector<std::uint32_t>& numbers = {2, 3, 4},
                             bool exact_departures = false) {
  INFO(toml);
  Outcome one = outcome(toml, 1, exact_departures);
  REQUIRE(one.problem == "");
  REQUIRE(one.end == end);
  REQUIRE(one.failed == 0);
  CHECK(one.use.threads.empty());
  for (const bool sweep : {false, true}) {
    for (const std::uint32_t threads : numbers) {
      CAPTURE(threads, sweep);
      const Outcome many = outcome(toml, threads, exact_departures, sweep);
      CHECK(many.one_thread_because == "");
      CHECK(many.use.threads.size() == threads);
      CHECK(many.events_shared() > 0);
      check_same(many, one);
    }
  }
  check_same(outcome(toml, 1, exact_departures, true), one);
  return one;
}

std::string event(const std::string& at, const std::string& link, const std::string& what) {
  return "[[event]]\nat = \"" + at + "\"\nlink = \"" + link + "\"\n" + what + "\n";
}

TEST_CASE("threads: any number gives the same run", "[parallel]") {
  for (const std::string& cc : {kDcqcnPaper, kCadence}) {
    for (const std::string& fabric : {kLeafSpine, kFatTree}) {
      for (const std::string& work : {kPermutation, kAllToAll, kIncast, kRing, kOpenLoop}) {
        same_with_any_number(cc + fabric + work);
      }
    }
  }
  same_with_any_number(kDcqcnPaper + kDumbbell + kPermutation, RunEnd::completed, {2});
}

TEST_CASE("threads: two of them, a small world", "[parallel]") {
  same_with_any_number(kDcqcnPaper + kLeafSpine + kShallow + kIncast, RunEnd::completed, {2});
}

TEST_CASE("threads: marks, pauses and losses fall on the same packets", "[parallel]") {
  for (const std::string& cc : {kDcqcnPaper, kFixed, kCadence}) {
    for (const std::string& work : {kPermutation, kAllToAll, kIncast}) {
      same_with_any_number(cc + kFatTree + kShallow + work);
      same_with_any_number(cc + kFatTree + kShallowLossy + kQuickRepair + work);
    }
  }
  // Pauses cross between parts, too: the uplinks of leaves pause spines, and spines leaves.
  const Outcome paused = same_with_any_number(kFixed + kLeafSpine + kShallow + kAllToAll);
  CHECK(paused.stats.pause_frames > 0);
  CHECK(paused.stats.marked_packets > 0);
  CHECK(paused.stats.total_drops() == 0);
  const Outcome lossy =
      same_with_any_number(kFixed + kLeafSpine + kShallowLossy + kQuickRepair + kAllToAll);
  CHECK(lossy.stats.drops[static_cast<std::size_t>(fabric::DropReason::buffer_full)] > 0);
  CHECK(lossy.counters.retransmitted_bytes > 0);
}

// Credits pass between parts as packets do, also over links that fail and come back.
TEST_CASE("threads: credits instead of pauses", "[parallel]") {
  const std::string credits = "flow_control = \"credit\"\n";
  for (const std::string& fabric : {kLeafSpine, kFatTree}) {
    for (const std::string& work : {kPermutation, kAllToAll, kIncast}) {
      const Outcome out = same_with_any_number(kFixed + fabric + credits + work);
      CHECK(out.stats.credit_updates > 0);
      CHECK(out.stats.pause_frames == 0);
      CHECK(out.stats.total_drops() == 0);
    }
  }
  const Outcome held =
      same_with_any_number(kFixed + kLeafSpine + credits +
                           "credit = { buffer = \"9kB\", update = \"1kB\" }\n" + kAllToAll);
  CHECK(held.stats.pause_time > Picos{0});
  for (const char* kept : {"drop", "keep"}) {
    const Outcome failed = same_with_any_number(
        kFixed + kLeafSpine + credits + "reroute_delay = \"5us\"\nqueued_when_down = \"" + kept +
        "\"\n" + kQuickRepair + kAllToAll + event("20us", "leaf0-spine1", "action = \"down\"") +
        event("24us", "leaf0-spine1", "action = \"up\"") +
        event("30us", "host5", "action = \"down\"") + event("37us", "host5", "action = \"up\""));
    CHECK(failed.stats.link_failures == 2);
  }
}

TEST_CASE("threads: what switches record crosses between parts", "[parallel]") {
  const std::string int_fabric = kFatTree + "int = true\n";
  for (const char* algorithm : {"hpcc", "powertcp"}) {
    const std::string told = "cc = { algorithm = \"" + std::string(algorithm) +
                             "\" }\ntransport = { reliability = \"selective\", "
                             "retransmit_timeout = \"100us\" }\n" +
                             int_fabric;
    same_with_any_number(told + kPermutation);
    same_with_any_number(told + kIncast);
    same_with_any_number(told + kShallowLossy + kAllToAll);
  }
}

TEST_CASE("threads: notices of switches cross between parts", "[parallel]") {
  const std::string notified =
      "cc = { algorithm = \"switch-notified\" }\ntransport = { retransmit_timeout = \"100us\" }\n" +
      kFatTree + "notice = { enabled = true }\n";
  CHECK(same_with_any_number(notified + kIncast).stats.notices > 0);
  CHECK(same_with_any_number(notified + kShallowLossy + kAllToAll).stats.notices > 0);
}

TEST_CASE("threads: departures decided at their time", "[parallel]") {
  same_with_any_number(kDcqcnPaper + kFatTree + kShallow + kPermutation, RunEnd::completed, {2},
                       true);
}

TEST_CASE("threads: links that lose, damage, double and delay", "[parallel]") {
  const std::string repair = "[transport]\nretransmit_timeout = \"100us\"\n";
  const std::string selective = repair + "reliability = \"selective\"\n";
  for (const std::string& transport : {repair, selective}) {
    same_with_any_number(kDcqcnPaper + kLeafSpine + "loss = 1e-3\ncorrupt = 1e-3\n" + transport +
                         kPermutation);
    const Outcome out = same_with_any_number(
        kDcqcnPaper + kLeafSpine + "duplicate = 5e-3\nreorder = 5e-3\nreorder_delay = \"3us\"\n" +
        transport + kPermutation);
    CHECK(out.stats.duplicated_packets > 0);
    CHECK(out.stats.reordered_packets > 0);
  }
}

TEST_CASE("threads: several paths, sprayed packets, weighted classes", "[parallel]") {
  const std::string selective = "[transport]\nreliability = \"selective\"\n";
  for (const char* multipath : {"packet", "chunk"}) {
    same_with_any_number(kDcqcnPaper + kFatTree + selective + "multipath = \"" + multipath +
                         "\"\n" + kPermutation);
  }
  for (const char* spray : {"spray", "spray_random"}) {
    same_with_any_number(kCadence + kFatTree + "load_balance = \"" + spray + "\"\n" + selective +
                         kPermutation);
  }
  same_with_any_number(kDcqcnPaper + kLeafSpine +
                       "class_weights = [1, 1, 1, 3, 1, 1, 1, 0]\necn = { kmin = \"20kB\", kmax = "
                       "\"80kB\" }\n" +
                       kAllToAll);
}

TEST_CASE("threads: servers of several NICs, each on its rail", "[parallel]") {
  for (const std::string& cc : {kDcqcnPaper, kCadence}) {
    same_with_any_number(cc +
                         "[fabric]\ntopology = \"leaf_spine\"\nnics = 4\nleaves = 4\n"
                         "hosts_per_leaf = 4\nspines = 4\n"
                         "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"20kB\"\n");
  }
}

TEST_CASE("threads: links that fail, return and change", "[parallel]") {
  const std::string fabric = kLeafSpine + "reroute_delay = \"5us\"\n";
  const std::string end = kQuickRepair + kPermutation;
  const std::string kept = fabric + "queued_when_down = \"keep\"\n";
  // Down for long enough that switches choose anew, and back.
  const std::string flap = event("20us", "leaf0-spine1", "action = \"down\"") +
                           event("60us", "leaf0-spine1", "action = \"up\"");
  const std::string blink = event("15us", "leaf3-spine0", "action = \"down\"") +
                            event("17us", "leaf3-spine0", "action = \"up\"") +
                            event("18us", "leaf2-spine0", "action = \"down\"") +
                            event("18us", "host5", "action = \"down\"") +
                            event("25us", "host5", "action = \"up\"") +
                            event("300us", "leaf2-spine0", "action = \"up\"");
  for (const std::string& with : {fabric, kept}) {
    for (const std::string& cc : {kDcqcnPaper, kCadence}) {
      for (const std::string& events : {flap, blink}) {
        const Outcome out = same_with_any_number(cc + with + end + events);
        CHECK(out.stats.link_failures > 0);
      }
    }
  }
  same_with_any_number(kFixed + kLeafSpine + kShallow + kQuickRepair + kAllToAll + flap);
  for (const char* change :
       {"action = \"rate\"\nrate = \"33Gb/s\"", "action = \"delay\"\ndelay = \"300ns\"",
        "action = \"delay\"\ndelay = \"3us\"", "action = \"loss\"\nprobability = 0.01",
        "action = \"corrupt\"\nprobability = 0.01", "action = \"duplicate\"\nprobability = 0.01",
        "action = \"reorder\"\nprobability = 0.01"}) {
    same_with_any_number(kDcqcnPaper + fabric + end + event("12us", "leaf0-spine0", change) +
                         event("14us", "leaf3-spine1", change) + event("16us", "host2", change));
  }
}

TEST_CASE("threads: a stated duration ends the run at that very time", "[parallel]") {
  const std::string duration = "duration = \"41234567ps\"\n";
  const Outcome out =
      same_with_any_number(duration + kDcqcnPaper + kFatTree + kPermutation, RunEnd::duration);
  CHECK(out.now == Picos{41'234'567});
}

// Messages to a host whose link never comes back fail, the last of all of them at a time that
// nobody foresees.
TEST_CASE("threads: a run that ends unforeseen is run again by one thread", "[parallel]") {
  const std::string toml = kDcqcnPaper + kLeafSpine +
                           "[transport]\nretransmit_timeout = \"20us\"\nretry_count = 1\n" +
                           kPermutation + event("10us", "host0", "action = \"down\"");
  const Outcome one = outcome(toml, 1);
  REQUIRE(one.failed > 0);
  const Outcome two = outcome(toml, 2);
  check_same(two, one);
}

TEST_CASE("threads: what cannot be shared is run by one, and says so", "[parallel]") {
  const auto reason = [](const std::string& toml) {
    const Outcome one = outcome(toml, 1);
    const Outcome two = outcome(toml, 2);
    check_same(two, one);
    CHECK(one.one_thread_because == "");
    CHECK(two.use.threads.empty());
    return two.one_thread_because;
  };
  using Catch::Contains;
  CHECK_THAT(reason(kDcqcnPaper + "[fabric]\nhosts = 8\n" + kIncast), Contains("one switch"));
  CHECK_THAT(reason("max_hops = 100000\n" + kDcqcnPaper + kLeafSpine + kIncast),
             Contains("max_hops"));
  CHECK_THAT(reason(kCadence + kLeafSpine + "drop_control_ppm = 1000\n" + kIncast),
             Contains("drop_control_ppm"));
  WorldOptions options;
  options.threads = kMaxThreads + 1;
  CHECK_THROWS_AS(world_of(kDcqcnPaper + kLeafSpine + kIncast, options), std::invalid_argument);
}

TEST_CASE("threads: more than a fabric has leaves are as many as it has", "[parallel]") {
  const Outcome many = outcome(kDcqcnPaper + kLeafSpine + kPermutation, 64);
  CHECK(many.use.threads.size() == 4);
  check_same(many, outcome(kDcqcnPaper + kLeafSpine + kPermutation, 1));
}

}  // namespace
}  // namespace paceline::simtest::parallel
