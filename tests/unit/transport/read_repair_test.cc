// READ beside WRITE under selective repeat: the same losses cost both about the same. Everything in
// virtual time, from seeds that a failure prints.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint64_t kMessage = std::uint64_t{1} << 20;
constexpr std::uint64_t kSlots = 3;  // messages at a time

struct Weather {
  double loss = 0;
  bool several_paths = false;
  Reliability reliability = Reliability::selective;
};

struct Outcome {
  double gbps = 0;
  std::uint64_t lost = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t probes = 0;
  std::uint64_t repeated = 0;
  std::uint64_t fresh = 0;
  std::size_t completed = 0;
  bool equal = false;
  std::string leftovers;
};

// `count` messages of kMessage bytes, as many at a time as there are slots.
Outcome transfer(WorkOpcode opcode, const Weather& weather, std::uint64_t seed, unsigned count) {
  LabOptions options = small_packets();
  options.engine.reliability = weather.reliability;
  options.seed = seed;
  if (weather.several_paths) {
    options.engine.multipath = Multipath::packet;
    options.engine.paths = 8;
  }
  options.qp.retransmit_timeout = picos_from_micros(4000);
  Lab lab(options);
  Lab::fill(lab.a().memory, seed);
  Lab::fill(lab.b().memory, seed + 1000);
  const Lab::Pair pair = lab.connect();
  Random random(seed);
  for (unsigned side = 0; side < 2; ++side) {
    lab.side(side).cable.set_script([&](const auto& p, ImpairmentVerdict& verdict) {
      verdict.drop = random.uniform() < weather.loss;
      // On several paths every fifth packet of data is overtaken by up to 12 others.
      if (weather.several_paths && p.properties.carries_payload() && random.below(5) == 0) {
        verdict.hold = static_cast<std::uint32_t>(1 + random.below(12));
      }
      return true;
    });
  }
  Outcome outcome;
  unsigned posted = 0;
  Picos last{0};
  const auto post = [&] {
    const std::uint64_t at = posted % kSlots * kMessage;
    lab.post(0, pair.a, lab.request(opcode, posted, at, at, kMessage));
    ++posted;
  };
  lab.on_poll = [&](unsigned side) {
    if (side != 0) return;
    for (const Completion& done : lab.a().sent()) {
      if (done.status != CompletionStatus::success) continue;
      ++outcome.completed;
      last = lab.now();
      if (posted < count) post();
    }
  };
  while (posted < kSlots) post();
  lab.run(picos_from_micros(1'000'000));
  outcome.gbps =
      static_cast<double>(outcome.completed * kMessage) * 8e3 / static_cast<double>(last.count);
  for (unsigned side = 0; side < 2; ++side) {
    const auto& c = lab.side(side).counters();
    outcome.timeouts += c.timeouts;
    outcome.probes += c.tail_probes;
    outcome.repeated += c.retransmitted_packets;
    outcome.fresh += c.tx_data_packets;
    outcome.lost += lab.side(side).cable.counters().dropped;
  }
  outcome.equal = equal_memories(lab, kSlots * kMessage);
  // What was set aside by the cable is not home yet.
  for (unsigned side = 0; side < 2; ++side) lab.side(side).cable.take_back();
  outcome.leftovers = lab.leftovers();
  return outcome;
}

TEST_CASE("selective: READs lose no more by losses than WRITEs do", "[transport][read][slow]") {
  for (const bool several : {false, true}) {
    for (const double loss : {0.001, 0.01}) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        CAPTURE(several, loss, seed);
        const Outcome write = transfer(WorkOpcode::write, {loss, several}, seed, 24);
        const Outcome read = transfer(WorkOpcode::read, {loss, several}, seed, 24);
        CAPTURE(write.gbps, read.gbps, read.lost, read.repeated, read.probes);
        REQUIRE(read.completed == 24);
        CHECK(read.equal);
        CHECK(read.leftovers == "");
        // A third is what is asked for; nine tenths is what it comes to.
        CHECK(read.gbps > 0.9 * write.gbps);
        CHECK(read.timeouts == 0);
        // For each loss one request and one response; a few more where one of these is lost, or
        // late on several paths.
        CHECK(read.repeated < 2 * read.lost + 20);
      }
    }
  }
}

// What docs/charts/read_goodput.py draws.
TEST_CASE("goodput of READs and WRITEs against loss", "[.goodput]") {
  std::printf("| loss | reliability | WRITE, Gb/s | READ, Gb/s | timeouts of READ |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    for (const double loss : {1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2}) {
      double write = 0;
      double read = 0;
      std::uint64_t timeouts = 0;
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const Weather weather{loss, false, reliability};
        write += transfer(WorkOpcode::write, weather, seed, 24).gbps / 3;
        const Outcome reads = transfer(WorkOpcode::read, weather, seed, 24);
        read += reads.gbps / 3;
        timeouts += reads.timeouts;
      }
      std::printf("| %g | %s | %.1f | %.1f | %llu |\n", loss,
                  reliability == Reliability::selective ? "selective" : "go_back_n", write, read,
                  static_cast<unsigned long long>(timeouts));
    }
  }
}

LabOptions selective_lab() {
  LabOptions options = small_packets();
  options.engine.reliability = Reliability::selective;
  options.qp.retransmit_timeout = picos_from_micros(100'000);
  return options;
}

bool is_request(const wire::ParsedPacket& p) {
  return p.properties.operation == wire::Operation::read_request;
}
bool is_response(const wire::ParsedPacket& p) {
  return p.properties.operation == wire::Operation::read_response;
}

TEST_CASE("selective: a READ longer than the window asks for no more than is kept",
          "[transport][read]") {
  for (const std::uint8_t depth : {std::uint8_t{1}, std::uint8_t{16}}) {
    CAPTURE(depth);
    LabOptions options = selective_lab();
    options.engine.window_packets = 64;
    options.qp.retransmit_timeout = picos_from_micros(2000);
    options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic = depth;
    Lab lab(options);
    Lab::fill(lab.b().memory, 1);
    const Lab::Pair pair = lab.connect(0, 0);
    unsigned requests = 0;
    lab.b().cable.set_script(drop_if([&](const auto& p) {
      requests += is_request(p) ? 1 : 0;
      return false;
    }));
    // One is lost, and repeated only when the window has long been used up.
    bool blocked = true;
    std::uint32_t highest = 0;
    std::uint32_t highest_msn = 0;  // of the first of it
    std::uint32_t last_msn = 0;
    lab.a().cable.set_script(drop_if([&](const auto& p) {
      if (!is_response(p)) return false;
      highest = std::max(highest, p.psn.value());
      if (p.properties.has_aeth()) {
        if (p.psn.value() == 299) last_msn = p.ext.aeth.msn;
        if (p.psn.value() < 100) highest_msn = std::max(highest_msn, p.ext.aeth.msn);
      }
      return blocked && p.psn.value() == 3;
    }));
    lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 300 * kMtu));
    CHECK_FALSE(lab.run(picos_from_micros(100)));
    CHECK(highest == 63);
    CHECK(requests >= 2);
    blocked = false;
    CHECK(lab.run(picos_from_micros(10'000)));
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(equal_memories(lab, 300 * kMtu));
    CHECK(lab.a().counters().beyond_window == 0);
    // It counts as one message, when the last of it has been asked for.
    CHECK(highest_msn == 0);
    CHECK(last_msn == 1);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: what was asked for and is lost again does not wait for the timer",
          "[transport][read]") {
  for (const bool lose_request : {true, false}) {
    CAPTURE(lose_request);
    Lab lab(selective_lab());
    Lab::fill(lab.b().memory, 2);
    const Lab::Pair pair = lab.connect(0, 0);
    int answers = 0;
    int asked = 0;
    lab.a().cable.set_script(drop_if([&](const auto& p) {
      return is_response(p) && p.psn.value() == 10 && answers++ < (lose_request ? 1 : 3);
    }));
    lab.b().cable.set_script(drop_if([&](const auto& p) {
      return is_request(p) && p.psn.value() == 10 && asked++ < (lose_request ? 2 : 0);
    }));
    lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 100 * kMtu));
    CHECK(lab.run(picos_from_micros(200)));
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(equal_memories(lab, 100 * kMtu));
    CHECK(asked == 3);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: a READ needs no acknowledgement but its responses", "[transport][read]") {
  Lab lab(selective_lab());
  Lab::fill(lab.b().memory, 3);
  const Lab::Pair pair = lab.connect(0, 0);
  lab.a().cable.set_script(
      drop_if([](const auto& p) { return p.properties.operation == wire::Operation::xack; }));
  lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 100 * kMtu));
  CHECK(lab.run(picos_from_micros(100)));
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 100 * kMtu));
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.a().counters().tail_probes == 0);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: a lost tail of a READ is found by a probe", "[transport][read]") {
  for (const std::uint32_t lost : {1U, 20U}) {
    CAPTURE(lost);
    Lab lab(selective_lab());
    Lab::fill(lab.b().memory, 4);
    const Lab::Pair pair = lab.connect(0, 0);
    std::uint32_t dropped = 0;
    lab.a().cable.set_script(drop_if([&](const auto& p) {
      return is_response(p) && p.psn.value() >= 100 - lost && dropped++ < lost;
    }));
    lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 100 * kMtu));
    CHECK(lab.run(picos_from_micros(200)));
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(equal_memories(lab, 100 * kMtu));
    CHECK(lab.a().counters().tail_probes == 1);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.b().counters().retransmitted_packets == lost);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: the lost result of an atomic is asked for at once", "[transport][atomic]") {
  for (const bool behind_read : {false, true}) {
    CAPTURE(behind_read);
    Lab lab(selective_lab());
    Lab::fill(lab.b().memory, 5);
    const Lab::Pair pair = lab.connect(0, 0);
    int lost = 0;
    lab.a().cable.set_script(drop_if([&](const auto& p) {
      return p.properties.operation == wire::Operation::atomic_acknowledge && lost++ == 0;
    }));
    if (behind_read) lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 4096, 4096, 50 * kMtu));
    const std::byte before = lab.b().memory[0];
    WorkRequest add = lab.request(WorkOpcode::fetch_add, 2, 0, 0, kAtomicBytes);
    add.swap_add = 1;
    lab.post(0, pair.a, add);
    CHECK(lab.run(picos_from_micros(200)));
    CHECK(lab.a().sent().size() == (behind_read ? 2 : 1));
    CHECK(lost == 2);
    CHECK(lab.a().counters().tail_probes == 0);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.a().memory[0] == before);  // the value that it found, once
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: of a peer that is gone little is asked", "[transport][read]") {
  LabOptions options = selective_lab();
  options.qp.retransmit_timeout = picos_from_micros(500);
  Lab lab(options);
  const Lab::Pair pair = lab.connect(0, 0);
  unsigned asked = 0;
  bool gone = false;
  lab.a().cable.set_script(drop_if([&](const auto& p) {
    gone = gone || (is_response(p) && p.psn.value() == 40);
    return gone || (is_response(p) && p.psn.value() % 2 == 1);
  }));
  lab.b().cable.set_script(drop_if([&](const auto&) {
    asked += gone ? 1 : 0;
    return gone;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 100 * kMtu));
  CHECK(lab.run(picos_from_micros(100'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::retry_exceeded);
  // 20 gaps; each is asked for a few times before all is silent, and in each of eight timeouts.
  CHECK(asked < 20 * 4 + 8 * 30);
}

}  // namespace
}  // namespace paceline::transport::test
