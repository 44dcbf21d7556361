// All verbs of the reliable connection at once, in both directions, over a cable that loses,
// repeats, reorders and damages: every byte right, exactly once, in order.
#include <catch2/catch.hpp>

#include "tests/unit/transport/verb_stream.h"

namespace paceline::transport::test {
namespace {

void run_all(const LabOptions& options, std::size_t count) {
  Lab lab(options);
  const std::uint32_t mtu = options.engine.payload_mtu;
  const auto first = static_cast<std::uint32_t>(0xFF'FF00 + options.seed * 16);
  const Lab::Pair pair = lab.connect(first, first + 77);
  VerbStream forth(lab, 0, pair.a, options.seed, count, mtu);
  VerbStream back(lab, 1, pair.b, options.seed, count, mtu);
  std::uint64_t polls = 0;
  lab.on_poll = [&](unsigned side) {
    forth.take();
    back.take();
    if (options.tx_burst > 1 && ++polls % 50 == 0) lab.side(side).port.refuse_calls(1);
  };
  lab.run(picos_from_micros(60'000'000));
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
  CHECK(lab.b().engine.view().state_of(pair.b) == QpState::rts);
  forth.finish();
  back.finish();
  CHECK(lab.leftovers() == "");
}

// Over a good cable nothing is sent twice.
void run_calm(const LabOptions& options) {
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  VerbStream forth(lab, 0, pair.a, options.seed, 300, options.engine.payload_mtu);
  VerbStream back(lab, 1, pair.b, options.seed, 300, options.engine.payload_mtu);
  lab.on_poll = [&](unsigned) {
    forth.take();
    back.take();
  };
  CHECK(lab.run(picos_from_micros(1'000'000)));
  forth.finish();
  back.finish();
  for (unsigned side = 0; side < 2; ++side) {
    const auto& c = lab.side(side).counters();
    CHECK(c.retransmitted_packets == 0);
    CHECK(c.timeouts == 0);
    CHECK(c.naks_sent == 0);
    CHECK(c.lost_packets == 0);
    CHECK(c.tail_probes == 0);
    CHECK(c.implied_naks == 0);
    CHECK(c.duplicates == 0);
  }
  CHECK(lab.leftovers() == "");
}

LabOptions calm(std::uint64_t seed) {
  LabOptions options;
  options.seed = seed;
  options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
  options.engine.ack_every = seed < 3 ? 1 : 8;
  return options;
}

struct Weather {
  const char* name;
  Impairments impairments;
};

LabOptions bad(const Weather& weather, std::uint64_t seed) {
  LabOptions options;
  options.seed = seed;
  options.impairments = weather.impairments;
  options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
  options.engine.ack_every = seed % 3 == 0 ? 16 : 1;
  options.tx_burst = seed % 2 == 0 ? 1 : 8;
  options.qp.retransmit_timeout = picos_from_micros(100);
  options.qp.retry_count = 100;
  options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic =
      static_cast<std::uint8_t>(1 + seed * 3 % 16);
  return options;
}

LabOptions selective(LabOptions options) {
  options.engine.reliability = Reliability::selective;
  options.engine.multipath = options.seed % 3 == 0
                                 ? Multipath::none
                                 : (options.seed % 3 == 1 ? Multipath::packet : Multipath::chunk);
  options.engine.window_packets = options.seed % 2 == 0 ? 64 : 512;
  options.engine.reorder_packets = options.seed % 4 == 0 ? 16 : 128;
  options.engine.place_in_order = options.seed % 5 == 0;
  return options;
}

TEST_CASE("all verbs, both ways, over a good cable: nothing is sent twice", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    run_calm(calm(seed));
  }
}

TEST_CASE("all verbs, both ways, over bad cables", "[transport]") {
  const Weather weathers[] = {
      {"drop", {.drop = 0.02}},
      {"duplicate", {.duplicate = 0.05}},
      {"reorder", {.reorder = 0.02, .max_hold = 6}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.01, .mark = 0.1}},
  };
  for (const Weather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(weather.name, seed);
      run_all(bad(weather, seed), 200);
    }
  }
}

TEST_CASE("all verbs under selective repeat over a good cable: nothing is sent twice",
          "[transport][selective]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    run_calm(selective(calm(seed)));
  }
}

TEST_CASE("all verbs under selective repeat over bad cables", "[transport][selective]") {
  const Weather weathers[] = {
      {"drop", {.drop = 0.02}},
      {"duplicate", {.duplicate = 0.05}},
      {"reorder", {.reorder = 0.1, .max_hold = 20}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.05, .mark = 0.1}},
  };
  for (const Weather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(weather.name, seed);
      run_all(selective(bad(weather, seed)), 200);
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
