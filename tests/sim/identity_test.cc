// A change that must not change a result: every frame of some hundred small worlds, and what the
// runs report, are those that tests/sim/identity.txt has. After a change that is meant to change
// results, write that file anew, look at which lines moved, and say in the commit why:
//   build/release/tests/sim/test_sim "[.write-identity]"
// All frames of one world, to compare those of two builds with diff:
//   IDENTITY_WORLD=links/fail build/release/tests/sim/test_sim "[.print-identity]"
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <map>
#include <utility>

#include "dataplane/base/numbers/random.h"
#include "dataplane/telemetry/counters.h"
#include "dataplane/wire/extensions/int_record.h"
#include "tests/sim/identity.h"
#include "tests/sim/random_world.h"
#include "tests/support/pinned_hashes.h"
#include "tools/emulate/emulate_report.h"
#include "tools/workload/workload.h"

namespace paceline::simtest::identity {

std::vector<World> worlds() {
  std::vector<World> all;
  for (const auto& group :
       {algorithm_worlds(), fabric_worlds(), transport_worlds(), change_worlds()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

namespace {

const std::string kPinned = std::string(PACELINE_SOURCE_DIR) + "/tests/sim/identity.txt";
const std::string kHeading =
    "# The worlds of tests/sim/identity_test.cc. wire: every frame on every link, with its time;\n"
    "# state: counters, queues and records at the end; document: the report, CSV files included.\n"
    "# Written by: build/release/tests/sim/test_sim \"[.write-identity]\"\n";

// One for each link. Headers only: bytes of payload are checked by digests, and hashed by the soak.
class Tap final : public LinkTap {
 public:
  Tap(std::uint32_t link, test::FrameTrail& trail, bool print)
      : link_(link), trail_(trail), print_(print) {}

  void show(Picos now, bool forward, const Packet& packet) override {
    now_ = now;
    facts_ = {2ULL * link_ + (forward ? 0 : 1),
              packet.wire_bytes,
              packet.payload_bytes,
              packet.traffic_class,
              static_cast<std::uint64_t>(packet.ecn),
              packet.flags};
    header_.assign(
        packet.header.begin(),
        packet.header.begin() + std::min<std::size_t>(packet.header_bytes, packet.header.size()));
    if (uses_tail(packet)) {
      const std::byte* const tail = tail_of(packet);
      header_.insert(header_.end(), tail, tail + tail_bytes(packet));
    }
    if (packet.header_bytes == 0) facts_[5] |= packet.entropy << 8U;  // a pause frame
  }
  void settle(Fate fate, const char*) override {
    trail_.add(now_,
               {facts_[0], facts_[1], facts_[2], facts_[3], facts_[4], facts_[5],
                static_cast<std::uint64_t>(fate)},
               header_, {});
    if (!print_) return;
    fmt::print(
        "{:>14} ps  link {:>3}  {:>4} B  payload {:>4}  class {}  ecn {}  flags {:x}  "
        "fate {}  ",
        now_.count, facts_[0], facts_[1], facts_[2], facts_[3], facts_[4], facts_[5],
        static_cast<unsigned>(fate));
    for (const std::byte b : header_) fmt::print("{:02x}", static_cast<unsigned>(b));
    fmt::print("\n");
  }

 private:
  static std::size_t tail_bytes(const Packet& packet) {
    if (packet.header_bytes > kMaxHeaderBytes) return packet.header_bytes - kMaxHeaderBytes;
    return std::min(kPacketTailBytes, packet.records * wire::kIntRecordBytes);
  }

  std::uint32_t link_;
  test::FrameTrail& trail_;
  bool print_;
  Picos now_{0};
  std::array<std::uint64_t, 6> facts_{};
  std::vector<std::byte> header_;
};

void add_network(test::RunHash& hash, const fabric::Network& network) {
  const fabric::NetworkStats& n = network.stats();
  for (const std::uint64_t value :
       {n.hops, n.hop_bytes, n.injected_packets, n.injected_bytes, n.delivered_packets,
        n.delivered_bytes, n.marked_packets, n.trimmed_packets, n.trimmed_bytes,
        n.corrupted_packets, n.duplicated_packets, n.duplicated_bytes, n.reordered_packets,
        n.link_failures, n.pause_frames, n.resume_frames, n.credit_updates, n.buffer_used_max}) {
    hash.add(value);
  }
  hash.add(static_cast<std::uint64_t>(n.pause_time.count));
  for (const std::uint64_t drops : n.drops) hash.add(drops);
  for (const std::uint64_t bytes : n.dropped_bytes) hash.add(bytes);
  for (std::uint32_t link = 0; link < network.links(); ++link) {
    const auto e = network.egress_stats(link);
    if (!e) continue;
    for (const std::uint64_t value :
         {e->packets, e->bytes, e->marked, e->trimmed, e->drops, e->queued_bytes, e->max_bytes}) {
      hash.add(value);
    }
    hash.add(std::bit_cast<std::uint64_t>(e->mean_bytes));
    hash.add(static_cast<std::uint64_t>(e->pause_time.count));
  }
}

void add_queue_pairs(test::RunHash& hash, const transport::Engine& engine, Picos now) {
  for (std::uint32_t qp = engine.view().next_qp(0); qp != 0; qp = engine.view().next_qp(qp)) {
    telemetry::QueuePairRecord r;
    REQUIRE(engine.view().describe_qp(now, qp, r));
    for (const std::uint64_t value : {std::uint64_t{r.number},
                                      std::uint64_t{r.peer_number},
                                      std::uint64_t{r.peer[15]},
                                      std::uint64_t{r.type},
                                      std::uint64_t{r.state},
                                      std::uint64_t{r.limiter},
                                      std::uint64_t{r.on_fallback},
                                      r.rate_bps,
                                      r.window_bytes,
                                      r.inflight_bytes,
                                      r.backlog_bytes,
                                      r.srtt_ns,
                                      r.min_rtt_ns,
                                      r.tx_bytes,
                                      r.rx_bytes,
                                      r.retransmitted_packets,
                                      r.timeouts,
                                      r.naks_received,
                                      r.rnr_received,
                                      r.cnps_received,
                                      r.cnps_sent,
                                      r.completions}) {
      hash.add(value);
    }
    hash.add(std::string_view(r.algorithm.data()));
    for (const std::uint64_t ns : r.limiter_ns) hash.add(ns);
  }
}

// What a run has left behind. Counters that are 0 do not count, so that one may be added.
std::uint64_t state_of(const VirtualWorld& world, RunEnd end) {
  test::RunHash hash;
  hash.add(world.trace_hash());
  hash.add(std::string_view(to_string(end)));
  hash.add(static_cast<std::uint64_t>(world.now().count));
  hash.add(world.messages_completed());
  hash.add(world.messages_failed());
  for (const MessageRecord& record : world.records()) {
    hash.add(static_cast<std::uint64_t>(record.ready.count));
    hash.add(static_cast<std::uint64_t>(record.completed.count));
    hash.add(record.failed ? 1U : 0U);
  }
  add_network(hash, world.network());
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    const telemetry::EngineCounters counters = world.engine(h).counters();
    telemetry::for_each(counters, [&hash](std::string_view name, std::uint64_t value) {
      if (value == 0) return;
      hash.add(name);
      hash.add(value);
    });
    for (const std::uint64_t malformed : counters.malformed) hash.add(malformed);
    for (const std::int64_t picos : world.engine(h).view().limiter_picos(world.now())) {
      hash.add(static_cast<std::uint64_t>(picos));
    }
    add_queue_pairs(hash, world.engine(h), world.now());
  }
  return hash.value();
}

struct Inputs {
  tools::PreparedScenario prepared;
  MessagePlan plan;
};

Inputs inputs_of(const World& w) {
  Inputs in;
  if (w.random_seed != 0) {
    Random random(w.random_seed, 3);
    config::Scenario s = random_scenario(random, w.random_seed);
    s.max_hops = 0;
    s.transport.retry_count = 1000;
    if (w.random_seed % 3 != 0) s.transport.reliability = "selective";
    if (w.random_seed % 3 == 2) s.transport.multipath = "packet";
    in.plan = random_plan(random, s, true);
    in.prepared = prepared(std::move(s));
    return in;
  }
  in.prepared = prepared(w.toml);
  if (w.plan) {
    in.plan = w.plan(in.prepared.scenario);
    return in;
  }
  const config::Scenario& s = in.prepared.scenario;
  auto plan = workload::make_plan(s, in.prepared.inputs, s.seed);
  REQUIRE(plan.errors == std::vector<std::string>{});
  in.plan = std::move(plan.value);
  return in;
}

struct Done {
  test::FrameTrail trail;
  std::uint64_t state = 0;
  std::uint64_t trace = 0;
};

// Frame by frame, with real bytes in packets; or as it runs when nobody looks.
Done run_world(const World& w, const Inputs& in, bool tapped, std::uint32_t threads, bool print) {
  Done done;
  WorldOptions options;
  options.check_invariants = true;
  options.threads = threads;
  if (w.control) {
    options.control = w.control();
    options.control_interval = w.control_interval;
  }
  std::deque<Tap> taps;
  if (tapped) {
    const VirtualWorld plain(in.prepared.scenario, in.plan, {});
    for (std::uint32_t link = 0; link < plain.network().spec().links.size(); ++link) {
      taps.emplace_back(link, done.trail, print);
      options.taps.push_back({link, &taps.back()});
    }
  }
  VirtualWorld world(in.prepared.scenario, in.plan, std::move(options));
  const RunEnd end = world.run();
  INFO(world.problem());
  CHECK(end != RunEnd::violation);
  done.state = state_of(world, end);
  done.trace = world.trace_hash();
  return done;
}

std::uint64_t document_of(const Inputs& in, std::uint64_t trace) {
  tools::RunControl control;
  control.check_invariants = true;
  control.series = true;
  const config::Scenario& s = in.prepared.scenario;
  const tools::ScenarioRun run = tools::run_scenario(in.prepared, s.cc, s.seed, control);
  CHECK(run.result.trace_hash == trace);
  test::RunHash hash;
  hash.add(tools::emulation_json(s, run));
  hash.add(tools::flows_csv(run));
  hash.add(tools::series_csv(run));
  return hash.value();
}

struct Outcome {
  test::PinnedRun run;
  test::FrameTrail trail;
};

Outcome outcome_of(const World& w, bool print = false) {
  INFO(w.name);
  const Inputs in = inputs_of(w);
  Done shown = run_world(w, in, true, 1, print);
  // The same world without a look at it, in windows where that is allowed, by several threads.
  const Done plain = run_world(w, in, false, w.threads, false);
  CHECK(plain.trace == shown.trace);
  CHECK(plain.state == shown.state);
  std::map<std::string, std::uint64_t> hashes{{"state", shown.state}};
  if (!w.control && !w.plan && w.random_seed == 0)
    hashes["document"] = document_of(in, shown.trace);
  return {test::pin(shown.trail, std::move(hashes)), std::move(shown.trail)};
}

void compare(std::string_view group) {
  const auto pinned = test::read_pinned(kPinned);
  std::string differ;
  std::size_t seen = 0;
  for (const World& w : worlds()) {
    if (w.name.compare(0, group.size(), group) != 0) continue;
    ++seen;
    const Outcome outcome = outcome_of(w);
    const auto found = pinned.find(w.name);
    const std::string difference =
        found == pinned.end() ? "not in the file"
                              : test::difference(found->second, outcome.run, outcome.trail);
    if (!difference.empty()) differ += fmt::format("\n  {}: {}", w.name, difference);
  }
  CHECK(seen > 0);
  INFO("tests/sim/identity_test.cc says how to look into one, and how to write the file anew.");
  CHECK(differ == "");
}

TEST_CASE("identity: every algorithm under every repair", "[identity][slow]") {
  compare("algorithm/");
}
TEST_CASE("identity: full buffers, pauses, credits, marks, classes", "[identity][slow]") {
  compare("fabric/");
}
TEST_CASE("identity: trimming", "[identity][slow]") { compare("trimming/"); }
TEST_CASE("identity: links that fail and change", "[identity][slow]") { compare("links/"); }
TEST_CASE("identity: many paths", "[identity][slow]") { compare("paths/"); }
TEST_CASE("identity: what a transport is told", "[identity][slow]") { compare("transport/"); }
TEST_CASE("identity: congestion control changed under way", "[identity][slow]") {
  compare("change/");
}
TEST_CASE("identity: random worlds", "[identity][slow]") { compare("random/"); }

// Two alike would mean that one of them does not do what it is named for.
TEST_CASE("identity: the file has the worlds that there are, no two alike", "[identity]") {
  std::vector<std::string> listed;
  std::map<std::uint64_t, std::string> first;
  for (const auto& [name, run] : test::read_pinned(kPinned)) {
    listed.push_back(name);
    const auto [same, is_new] = first.emplace(run.hashes.at("wire"), name);
    INFO(name << " and " << same->second);
    CHECK(is_new);
  }
  std::vector<std::string> there;
  for (const World& w : worlds()) there.push_back(w.name);
  std::sort(there.begin(), there.end());
  CHECK(listed == there);
}

TEST_CASE("identity: write the file", "[.write-identity]") {
  std::map<std::string, test::PinnedRun> runs;
  for (const World& w : worlds()) runs[w.name] = outcome_of(w).run;
  test::write_pinned(kPinned, kHeading, runs);
}

TEST_CASE("identity: print the frames of a world", "[.print-identity]") {
  const char* const name = std::getenv("IDENTITY_WORLD");
  REQUIRE(name != nullptr);
  for (const World& w : worlds()) {
    if (w.name == name) outcome_of(w, true);
  }
}

}  // namespace
}  // namespace paceline::simtest::identity
