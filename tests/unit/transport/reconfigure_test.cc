// Congestion control changed while traffic runs, between two engines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/wire/extensions/control.h"
#include "tests/unit/transport/verb_stream.h"

namespace paceline::transport::test {
namespace {

using Overrides = std::vector<std::pair<std::string_view, double>>;

CcSetup setup_of(const LabOptions& options, cc::AlgorithmId primary, const Overrides& values = {},
                 cc::AlgorithmId fallback = cc::AlgorithmId::dcqcn) {
  return {choose_cc(primary, options, values), choose_cc(fallback, options)};
}

LabOptions lab_of(cc::AlgorithmId primary) {
  LabOptions options = small_packets();
  options.engine.primary.algorithm = primary;
  options.engine.fallback.algorithm = cc::AlgorithmId::dcqcn;
  return options;
}

void reconfigure(Lab& lab, unsigned side, const CcSetup& setup, std::uint8_t arm = 0,
                 std::uint8_t epoch = 0) {
  lab.side(side).engine.reconfigure(lab.now(), setup, arm, epoch);
  lab.touch(side);
}

void reconfigure_both(Lab& lab, const CcSetup& setup) {
  for (unsigned side = 0; side < 2; ++side) reconfigure(lab, side, setup);
}

telemetry::QueuePairRecord record_of(Lab& lab, unsigned side, std::uint32_t qp) {
  telemetry::QueuePairRecord record;
  REQUIRE(lab.side(side).engine.view().describe_qp(lab.now(), qp, record));
  return record;
}

std::string algorithm_of(Lab& lab, unsigned side, std::uint32_t qp) {
  return record_of(lab, side, qp).algorithm.data();
}

Picos after(Lab& lab, std::int64_t micros) { return lab.now() + picos_from_micros(micros); }

constexpr std::int64_t kChangeMicros = 50;  // ten round trips of 5 us

TEST_CASE("a setup that does not fit is refused, and says why", "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::dcqcn);
  Lab lab(options);
  Engine& engine = lab.a().engine;
  CHECK(engine.view().generation() == 1);
  CHECK(engine.view().setup().primary.algorithm == cc::AlgorithmId::dcqcn);

  CcSetup wrong = setup_of(options, cc::AlgorithmId::swift);
  wrong.primary.values.pop_back();
  const std::size_t given = wrong.primary.values.size();
  CHECK(engine.reconfigure_refusal(wrong) == "primary: swift has " + std::to_string(given + 1) +
                                                 " parameters, given are " + std::to_string(given));
  CHECK_THROWS_AS(engine.reconfigure(lab.now(), wrong, 0, 0), std::invalid_argument);
  const CcSetup proactive =
      setup_of(options, cc::AlgorithmId::cadence, {}, cc::AlgorithmId::cadence);
  CHECK(engine.reconfigure_refusal(proactive) == "fallback: must be a reactive algorithm");
  CHECK(engine.view().generation() == 1);

  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::swift));
  CHECK(engine.view().generation() == 2);
  CHECK(engine.view().setup().primary.algorithm == cc::AlgorithmId::swift);
  CHECK(!engine.view().reconfiguring());  // there is nobody to tell
}

TEST_CASE("values take effect on what is under way", "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::fixed);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 3'000'000)) ==
          PostResult::ok);
  lab.run(after(lab, 20));
  CHECK(record_of(lab, 0, pair.a).rate_bps == options.link_rate.bps);
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::fixed, {{"rate_mbps", 10'000}}));
  lab.run(after(lab, kChangeMicros));
  CHECK(!lab.a().engine.view().reconfiguring());
  const std::uint64_t before = record_of(lab, 0, pair.a).tx_bytes;
  lab.run(after(lab, 100));
  const telemetry::QueuePairRecord record = record_of(lab, 0, pair.a);
  CHECK(record.rate_bps == 10'000'000'000);
  // 100 us at 10 Gb/s, headers and gaps included, a packet more or less.
  const double share = static_cast<double>(kMtu) / (kMtu + 82);
  CHECK(static_cast<double>(record.tx_bytes - before) == Approx(125'000 * share).margin(2 * kMtu));
  CHECK(lab.run());
  CHECK(equal_memories(lab, 3'000'000));
}

// None of these would have been asked by its algorithm for a long time.
TEST_CASE("bounds that become narrower hold within ten round trips", "[transport][reconfigure]") {
  struct Case {
    cc::AlgorithmId algorithm;
    Overrides values;
    std::uint64_t rate_bps;
    std::uint64_t window_bytes;
  };
  const Case cases[] = {
      {cc::AlgorithmId::dcqcn, {{"start_rate", 0.25}}, 25'000'000'000, cc::kUnlimited},
      {cc::AlgorithmId::swift, {{"max_window", 2}}, 100'000'000'000, 2 * 1106},
      {cc::AlgorithmId::fixed, {{"window_bytes", 5000}}, 100'000'000'000, 5000},
  };
  for (const Case& c : cases) {
    const LabOptions options = lab_of(c.algorithm);
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    lab.run(after(lab, 10));
    reconfigure(lab, 0, setup_of(options, c.algorithm, c.values));
    lab.run(after(lab, kChangeMicros));
    const telemetry::QueuePairRecord record = record_of(lab, 0, pair.a);
    CAPTURE(std::string(record.algorithm.data()));
    CHECK(record.rate_bps == c.rate_bps);
    CHECK(record.window_bytes == c.window_bytes);
  }
}

// --- random changes ---

std::vector<CcSetup> all_setups(const LabOptions& options) {
  using Id = cc::AlgorithmId;
  return {setup_of(options, Id::dcqcn),
          setup_of(options, Id::dcqcn, {{"min_rate_mbps", 5000}}),
          setup_of(options, Id::cadence),
          setup_of(options, Id::cadence, {{"eta", 0.8}, {"a_max", 2}}),
          setup_of(options, Id::cadence, {}, Id::swift),
          setup_of(options, Id::swift),
          setup_of(options, Id::swift, {{"max_window", 4}}),
          setup_of(options, Id::fixed),
          setup_of(options, Id::fixed, {{"rate_mbps", 20'000}, {"window_bytes", 30'000}})};
}

struct ChangeWeather {
  const char* name;
  Impairments impairments;
};

enum class Between { native, strangers, selective };  // the two ends

std::uint32_t run_changed(const LabOptions& options, std::size_t count) {
  Lab lab(options);
  const std::vector<CcSetup> setups = all_setups(options);
  Random random(options.seed, 500);
  const std::uint32_t mtu = options.engine.payload_mtu;
  const Lab::Pair pair = lab.connect();
  VerbStream forth(lab, 0, pair.a, options.seed, count, mtu);
  VerbStream back(lab, 1, pair.b, options.seed, count, mtu);
  Picos next[2] = {picos_from_micros(5), picos_from_micros(9)};
  std::uint32_t changes = 0;
  lab.on_poll = [&](unsigned side) {
    forth.take();
    back.take();
    if (lab.now() < next[side]) return;
    next[side] = lab.now() + picos_from_micros(static_cast<std::int64_t>(10U << random.below(6)));
    ++changes;
    reconfigure(lab, side, setups[random.below(setups.size())]);
    const std::string broken = lab.side(side).engine.view().check_conservation();
    if (!broken.empty()) throw std::logic_error(broken);
  };
  lab.run(picos_from_micros(60'000'000));
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
  CHECK(lab.b().engine.view().state_of(pair.b) == QpState::rts);
  forth.finish();
  back.finish();
  CHECK(lab.leftovers() == "");
  return changes;
}

TEST_CASE("random changes: all verbs, both ways, over good and bad cables",
          "[transport][reconfigure]") {
  const ChangeWeather weathers[] = {
      {"good", {}},
      {"marks", {.mark = 0.2}},
      {"drop", {.drop = 0.02}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.01, .mark = 0.1}},
  };
  std::uint32_t changes = 0;
  for (const ChangeWeather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      for (const Between between : {Between::native, Between::strangers, Between::selective}) {
        CAPTURE(weather.name, seed, static_cast<int>(between));
        LabOptions options;
        options.seed = seed;
        options.impairments = weather.impairments;
        options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
        if (between == Between::strangers) options.engine.peers = PeerPolicy::discover;
        if (between == Between::selective) options.engine.reliability = Reliability::selective;
        options.engine.primary.algorithm = static_cast<cc::AlgorithmId>(seed % 4);
        options.engine.fallback.algorithm = cc::AlgorithmId::dcqcn;
        options.tx_burst = seed % 2 == 0 ? 1 : 8;
        options.qp.retransmit_timeout = picos_from_micros(100);
        options.qp.retry_count = 200;
        changes += run_changed(options, 120);
      }
    }
  }
  CHECK(changes > 300);
}

// --- contexts ---

// `count` queue pairs, each with a WRITE of its own piece of memory.
std::vector<Lab::Pair> busy_pairs(Lab& lab, std::uint32_t count, std::uint64_t bytes) {
  std::vector<Lab::Pair> pairs;
  Lab::fill({lab.a().memory.data(), count * bytes}, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    pairs.push_back(lab.connect(i, 2 * i));
    if (bytes == 0) continue;
    REQUIRE(lab.post(0, pairs.back().a,
                     lab.request(WorkOpcode::write, i, i * bytes, i * bytes, bytes)) ==
            PostResult::ok);
  }
  return pairs;
}

TEST_CASE("a channel splits into a context for each queue pair, and they join again",
          "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::cadence);
  Lab lab(options);
  constexpr std::uint32_t kPairs = 8;
  constexpr std::uint64_t kBytes = 400'000;
  const auto pairs = busy_pairs(lab, kPairs, kBytes);
  lab.run(after(lab, 30));
  CHECK(lab.a().engine.view().population().contexts == 1);
  CHECK(lab.b().counters().grants_sent > 0);

  const std::uint64_t granted = record_of(lab, 0, pairs[0].a).rate_bps;
  CHECK(granted > 0);
  reconfigure_both(lab, setup_of(options, cc::AlgorithmId::dcqcn));
  CHECK(lab.a().engine.view().reconfiguring());
  std::uint64_t most = 0;
  lab.on_poll = [&](unsigned) {
    std::uint64_t sum = 0;
    for (const Lab::Pair& pair : pairs) {
      const auto record = record_of(lab, 0, pair.a);
      if (std::string(record.algorithm.data()) == "dcqcn") sum += record.rate_bps;
    }
    most = std::max(most, sum);
  };
  lab.run(after(lab, kChangeMicros));
  CHECK(!lab.a().engine.view().reconfiguring());
  CHECK(lab.a().engine.view().population().contexts == kPairs);
  for (const Lab::Pair& pair : pairs) CHECK(algorithm_of(lab, 0, pair.a) == "dcqcn");
  // They began with equal parts of what the channel had; DCQCN climbs from there.
  CHECK(most <= options.link_rate.bps * 5 / 4);
  lab.on_poll = nullptr;

  reconfigure_both(lab, setup_of(options, cc::AlgorithmId::cadence));
  lab.run(after(lab, kChangeMicros));
  CHECK(lab.a().engine.view().population().contexts == 1);
  for (const Lab::Pair& pair : pairs) CHECK(algorithm_of(lab, 0, pair.a) == "cadence");
  CHECK(lab.run());
  CHECK(lab.a().sent().size() == kPairs);
  CHECK(equal_memories(lab, kPairs * kBytes));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("a change back before the first one is through leaves those alone that never left",
          "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::cadence);
  Lab lab(options);
  constexpr std::uint32_t kPairs = 10;
  const auto pairs = busy_pairs(lab, kPairs, 300'000);
  lab.run(after(lab, 30));
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::dcqcn));
  lab.run(after(lab, kChangeMicros / 2));
  const std::uint32_t contexts = lab.a().engine.view().population().contexts;
  CHECK(contexts > 3);
  CHECK(contexts < 9);
  const std::uint64_t requests = lab.a().counters().requests_sent;
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::cadence));
  lab.run(after(lab, kChangeMicros * 3 / 2));
  CHECK(lab.a().engine.view().population().contexts == 1);
  CHECK(lab.a().engine.view().population().on_fallback == 0);
  CHECK(lab.a().counters().requests_sent > requests);
  CHECK(lab.run());
  CHECK(equal_memories(lab, kPairs * 300'000));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("a thousand queue pairs change one after the other", "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::dcqcn);
  Lab lab(options);
  constexpr std::uint32_t kPairs = 1000;
  const auto pairs = busy_pairs(lab, kPairs, 0);
  lab.run(after(lab, 1));
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::swift));
  const Picos begin = lab.now();
  std::uint32_t changed = 0;
  std::uint32_t most = 0;
  lab.on_poll = [&](unsigned side) {
    if (side != 0) return;
    std::uint32_t now = 0;
    for (const Lab::Pair& pair : pairs) now += algorithm_of(lab, 0, pair.a) == "swift" ? 1 : 0;
    most = std::max(most, now - changed);
    changed = now;
    // In step with time: a tenth after a round trip.
    const double share = static_cast<double>((lab.now() - begin).count) /
                         static_cast<double>(picos_from_micros(kChangeMicros).count);
    CHECK(now <= share * kPairs + 1);
    CHECK(now + 2 >= share * kPairs);
  };
  lab.run(after(lab, kChangeMicros));
  CHECK(changed == kPairs);
  CHECK(most <= 64);
  CHECK(!lab.a().engine.view().reconfiguring());
}

TEST_CASE("where polls come late a change takes them in portions", "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::dcqcn);
  Lab lab(options);
  const auto pairs = busy_pairs(lab, 1000, 0);
  lab.run(after(lab, 1));
  Engine& engine = lab.a().engine;
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::swift));
  lab.stop_host(0, {lab.now(), after(lab, 10 * kChangeMicros), true});
  std::uint32_t changed = 0;
  std::uint32_t polls = 0;
  lab.on_poll = [&](unsigned side) {
    if (side != 0 || !(changed < 1000)) return;
    std::uint32_t now = 0;
    for (const Lab::Pair& pair : pairs) now += algorithm_of(lab, 0, pair.a) == "swift" ? 1 : 0;
    CHECK(now - changed <= 64);
    changed = now;
    ++polls;
  };
  lab.run(after(lab, 12 * kChangeMicros));
  CHECK(changed == 1000);
  CHECK(polls >= 1000 / 64);
  CHECK(!engine.view().reconfiguring());
}

TEST_CASE("arm and epoch go with the setup, into contexts and their REQUESTs",
          "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::cadence);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  std::vector<std::pair<unsigned, unsigned>> told;
  lab.a().port.on_departure = [&](Picos, const Packet& packet) {
    wire::ParsedPacket parsed;
    REQUIRE(wire::parse_headers(packet.header_view(), packet.payload_bytes, parsed) ==
            wire::ParseError::ok);
    if (parsed.properties.operation != wire::Operation::request) return;
    RequestMessage request;
    REQUIRE(wire::parse_control(wire::control_body(packet.header_view(), parsed), request) ==
            wire::ParseError::ok);
    told.emplace_back(request.arm, request.epoch);
  };
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 3'000'000)) ==
          PostResult::ok);
  lab.run(after(lab, 50));
  REQUIRE(!told.empty());
  CHECK(std::count(told.begin(), told.end(), std::pair(0U, 0U)) ==
        static_cast<std::ptrdiff_t>(told.size()));
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::cadence), 1, 77);
  lab.run(after(lab, kChangeMicros));
  told.clear();
  CHECK(lab.run());
  REQUIRE(!told.empty());
  CHECK(std::count(told.begin(), told.end(), std::pair(1U, 77U)) ==
        static_cast<std::ptrdiff_t>(told.size()));
}

// --- ends that differ ---

TEST_CASE("a sender whose receiver no longer grants runs its fallback, and comes back",
          "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::cadence);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  const auto write = [&](std::uint64_t id) {
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, id, 0, 0, 4'000'000)) ==
            PostResult::ok);
  };
  Lab::fill({lab.a().memory.data(), 4'000'000}, 3);
  for (std::uint64_t id = 0; id < 40; ++id) write(id);
  lab.run(after(lab, 100));
  CHECK(lab.a().engine.view().population().on_fallback == 0);
  reconfigure(lab, 1, setup_of(options, cc::AlgorithmId::dcqcn));
  lab.run(after(lab, 1500));
  CHECK(lab.a().engine.view().population().on_fallback ==
        0);  // grants outlive the change for a while
  lab.run(after(lab, 2500));
  CHECK(lab.a().engine.view().population().on_fallback == 1);
  CHECK(algorithm_of(lab, 0, pair.a) == "dcqcn");
  CHECK(lab.b().counters().control_ignored > 0);
  const std::uint64_t before = record_of(lab, 0, pair.a).tx_bytes;
  lab.run(after(lab, 500));
  CHECK(record_of(lab, 0, pair.a).tx_bytes > before);

  reconfigure(lab, 1, setup_of(options, cc::AlgorithmId::cadence));
  lab.run(after(lab, 2000));  // the longest interval of the fallback's probes is 1 ms
  CHECK(lab.a().engine.view().population().on_fallback == 0);
  CHECK(algorithm_of(lab, 0, pair.a) == "cadence");
  CHECK(lab.run());
  CHECK(lab.a().sent().size() == 40);
  CHECK(equal_memories(lab, 4'000'000));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("ends that find out about each other do so again when they begin to grant",
          "[transport][reconfigure]") {
  LabOptions options = lab_of(cc::AlgorithmId::dcqcn);
  options.engine.peers = PeerPolicy::discover;
  Lab lab(options);
  const auto pairs = busy_pairs(lab, 4, 900'000);
  lab.run(after(lab, 30));
  CHECK(lab.a().counters().hellos_sent == 0);
  reconfigure(lab, 0, setup_of(options, cc::AlgorithmId::cadence));
  lab.run(after(lab, 20));
  // The other end speaks, but grants nothing: each queue pair continues by itself.
  CHECK(lab.a().counters().hellos_received > 0);
  CHECK(lab.a().engine.view().population().foreign == 4);
  for (const Lab::Pair& pair : pairs) CHECK(algorithm_of(lab, 0, pair.a) == "dcqcn");
  reconfigure(lab, 1, setup_of(options, cc::AlgorithmId::cadence));
  lab.run(after(lab, kChangeMicros));
  CHECK(lab.a().engine.view().population().foreign == 0);
  CHECK(lab.a().engine.view().population().contexts == 1);
  CHECK(algorithm_of(lab, 0, pairs[0].a) == "cadence");
  CHECK(lab.run());
  CHECK(equal_memories(lab, 4 * 900'000));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("a queue pair that waits for a receive request changes like all others",
          "[transport][reconfigure]") {
  const LabOptions options = lab_of(cc::AlgorithmId::cadence);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  Lab::fill({lab.a().memory.data(), 50'000}, 4);
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 50'000)) == PostResult::ok);
  lab.run(after(lab, 30));
  CHECK(record_of(lab, 0, pair.a).rnr_received > 0);
  for (const cc::AlgorithmId id :
       {cc::AlgorithmId::swift, cc::AlgorithmId::cadence, cc::AlgorithmId::dcqcn}) {
    reconfigure_both(lab, setup_of(options, id));
    lab.run(after(lab, 2 * kChangeMicros));
    CHECK(algorithm_of(lab, 0, pair.a) == cc::find(id)->name);
  }
  REQUIRE(lab.b().post_receive(7, 0, 50'000));
  CHECK(lab.run());
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.b().received().size() == 1);
  CHECK(equal_memories(lab, 50'000));
  CHECK(lab.leftovers() == "");
}

// --- figures of queue pairs ---

TEST_CASE("a queue pair tells what it counts, message by message and within them",
          "[transport][reconfigure]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    LabOptions options = lab_of(cc::AlgorithmId::dcqcn);
    options.engine.reliability = reliability;
    options.impairments.drop = 0.01;
    options.impairments.mark = 0.05;
    options.qp.retry_count = 100;
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    CHECK(lab.a().engine.view().next_qp(0) == pair.a);
    CHECK(lab.a().engine.view().next_qp(pair.a) == 0);
    telemetry::QueuePairRecord record;
    CHECK_FALSE(lab.a().engine.view().describe_qp(lab.now(), pair.a + 1'000, record));
    constexpr std::uint64_t kBytes = 700'001;
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kBytes)) == PostResult::ok);
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0, 0, 1000)) == PostResult::ok);
    REQUIRE(lab.post(1, pair.b, lab.request(WorkOpcode::read, 3, 2'000'000, 2'000'000, 5000)) ==
            PostResult::ok);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    lab.on_poll = [&](unsigned) {
      const auto a = record_of(lab, 0, pair.a);
      const auto b = record_of(lab, 1, pair.b);
      CHECK(a.tx_bytes == lab.a().counters().tx_data_bytes);  // there is no other queue pair
      CHECK(b.rx_bytes >= received);
      CHECK(a.tx_bytes >= sent);
      sent = a.tx_bytes;
      received = b.rx_bytes;
    };
    CHECK(lab.run());
    const auto a = record_of(lab, 0, pair.a);
    const auto b = record_of(lab, 1, pair.b);
    CHECK(a.number == pair.a);
    CHECK(a.peer_number == pair.b);
    CHECK(a.peer[15] == 2);  // ::ffff:10.0.0.2
    CHECK(a.peer[10] == 0xFF);
    CHECK(std::string(a.algorithm.data()) == "dcqcn");
    CHECK(a.tx_bytes == kBytes + 1000 + 5000);
    CHECK(b.rx_bytes == kBytes + 1000 + 5000);
    CHECK(b.tx_bytes == 0);
    CHECK(a.completions == 2);
    CHECK(b.completions == 1);
    CHECK(a.inflight_bytes == 0);
    CHECK(a.backlog_bytes == 0);
    CHECK(a.retransmitted_packets == lab.a().counters().retransmitted_packets);
    CHECK(a.retransmitted_packets > 0);
    CHECK(a.naks_received == lab.a().counters().naks_received);
    CHECK(a.timeouts == lab.a().counters().timeouts);
    CHECK(a.cnps_received == lab.a().counters().cnps_received);
    CHECK(b.cnps_sent == lab.b().counters().cnps_sent);
    CHECK(b.cnps_sent > 0);
    CHECK(a.min_rtt_ns >= 2000);  // two cables of 1 us
    CHECK(a.srtt_ns >= a.min_rtt_ns);
    std::uint64_t time_ns = 0;
    for (const std::uint64_t ns : a.limiter_ns) time_ns += ns;
    CHECK(time_ns == Approx(static_cast<double>(to_nanos(lab.now()).count)).margin(8));
    const EngineView::Population population = lab.a().engine.view().population();
    CHECK(population.queue_pairs == 1);
    CHECK(population.contexts == 1);
    CHECK(population.peers == 1);
  }
}

}  // namespace
}  // namespace paceline::transport::test
