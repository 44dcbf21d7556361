// End-to-end credits (vol. 1, 9.7.7.2): what the responder promises, and what the requester makes
// of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

struct Credits {
  explicit Credits(ReceiveSharing sharing, const LabOptions& options = options_of({}, 1))
      : lab(options), receives(64, sharing) {
    QpConfig b = lab.qp_config(1);
    b.receive_queue = &receives;
    b.min_rnr_timer = 1;  // 10 us
    pair = lab.connect(lab.qp_config(0), b, 100, 0);
  }
  static LabOptions options_of(Impairments impairments, std::uint64_t seed) {
    LabOptions options;
    options.seed = seed;
    options.impairments = impairments;
    options.link_rate = rate_from_gbps(10);
    options.engine.payload_mtu = kMtu;
    options.qp.retransmit_timeout = picos_from_micros(100);
    options.qp.retry_count = 100;
    return options;
  }
  void post_receives(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      REQUIRE(lab.b().engine.post_receive(lab.now(), pair.b,
                                          {id, Lab::kBase + id * 8192, 8192, lab.b().key}));
    }
  }
  void post_sends(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::send, id, id * 8192, 0, 4 * kMtu)) ==
              PostResult::ok);
    }
  }
  Lab lab;
  ReceiveQueue receives;
  Lab::Pair pair;
};

TEST_CASE("acknowledgements promise what the receive queue holds, if it is not shared",
          "[transport][credits]") {
  for (const bool shared : {true, false}) {
    Credits c(shared ? ReceiveSharing::shared : ReceiveSharing::owned);
    std::vector<std::uint8_t> codes;
    c.lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      codes.push_back(p.ext.aeth.value());
      return false;
    });
    c.post_receives(0, 7);
    c.post_sends(0, 1);
    CHECK(c.lab.run(picos_from_micros(1000)));
    REQUIRE(codes.size() == 4);
    if (shared) {
      for (const std::uint8_t code : codes) CHECK(code == wire::kCreditUnlimited);
    } else {
      CHECK(wire::credits_from_code(codes[0]) == 6);  // 6 and the one taken are 7: rounded down
      CHECK(wire::credits_from_code(codes[3]) == 6);
    }
  }
}

// The limited message: one packet that asks, and no more until there is a receive request.
TEST_CASE("beyond its credits a requester sends a single packet", "[transport][credits]") {
  for (const bool shared : {true, false}) {
    Credits c(shared ? ReceiveSharing::shared : ReceiveSharing::owned);
    Lab::fill(c.lab.a().memory, 2);
    c.post_receives(0, 3);
    c.post_sends(0, 8);
    CHECK(!c.lab.run(picos_from_micros(300)));
    CAPTURE(shared);
    CHECK(c.lab.a().sent().size() == 3);
    CHECK(c.lab.b().counters().rnr_sent > 5);
    // Without credits the packets behind the refused one are in flight when the RNR NAK comes.
    CHECK((c.lab.b().counters().out_of_sequence == 0) == !shared);
    // A request that takes no receive is held up by the one before it only.
    c.post_receives(3, 5);
    CHECK(c.lab.run(picos_from_micros(3000)));
    CHECK(c.lab.a().sent().size() == 5);
    CHECK(c.lab.b().received().size() == 8);
    for (std::uint64_t id = 0; id < 8; ++id) {
      CHECK(std::memcmp(c.lab.a().memory.data() + id * 8192, c.lab.b().memory.data() + id * 8192,
                        4 * kMtu) == 0);
    }
    CHECK(c.lab.leftovers().empty());
  }
}

// Its last packet is what takes the receive request, and what is refused: acknowledgements of those
// before it promise nothing new, and nothing would ever follow them.
TEST_CASE("beyond its credits a WRITE with immediate goes as a whole", "[transport][credits]") {
  Credits c(ReceiveSharing::owned);
  Lab::fill(c.lab.a().memory, 3);
  c.post_receives(0, 1);
  c.post_sends(0, 1);
  CHECK(c.lab.run(picos_from_micros(1000)));
  constexpr std::uint64_t kPlace = 0x10'0000;
  for (std::uint64_t id = 1; id < 4; ++id) {
    const std::uint64_t place = kPlace + id * 8192;
    REQUIRE(c.lab.post(0, c.pair.a,
                       c.lab.request(WorkOpcode::write_imm, id, place, place, 4 * kMtu, 7)) ==
            PostResult::ok);
  }
  CHECK(!c.lab.run(picos_from_micros(1300)));
  CHECK(c.lab.a().sent().size() == 1);
  CHECK(c.lab.b().counters().rnr_sent > 5);
  CHECK(c.lab.b().counters().rx_data_packets == 4 + 3);  // of the second, none but refused ones
  for (std::uint64_t id = 1; id < 4; ++id) {
    c.post_receives(id, 1);
    CHECK(c.lab.run(c.lab.now() + picos_from_micros(300)) == (id == 3));
    CHECK(c.lab.a().sent().size() == 1);
  }
  CHECK(c.lab.b().received().size() == 4);
  for (std::uint64_t id = 1; id < 4; ++id) {
    const std::uint64_t place = kPlace + id * 8192;
    CHECK(std::memcmp(c.lab.a().memory.data() + place, c.lab.b().memory.data() + place, 4 * kMtu) ==
          0);
  }
  CHECK(c.lab.leftovers().empty());
}

TEST_CASE("WRITE, READ and atomics need no credit", "[transport][credits]") {
  Credits c(ReceiveSharing::owned);
  c.post_receives(0, 1);
  c.post_sends(0, 1);
  CHECK(c.lab.run(picos_from_micros(1000)));
  for (std::uint64_t id = 1; id < 5; ++id) {
    c.lab.post(0, c.pair.a, c.lab.request(WorkOpcode::write, id, 0, 0x10'0000, 5 * kMtu));
    c.lab.post(0, c.pair.a, c.lab.request(WorkOpcode::read, id, 0, 0x10'0000, 5 * kMtu));
    c.lab.post(0, c.pair.a, c.lab.request(WorkOpcode::fetch_add, id, 0, 0, 8));
  }
  CHECK(c.lab.run(picos_from_micros(2000)));
  CHECK(c.lab.a().sent().size() == 13);
  CHECK(c.lab.b().counters().rnr_sent == 0);
  CHECK(c.lab.leftovers().empty());
}

// `reads`: of the other end, from what no SEND touches, so that the sender owes answers, too.
void all_arrives_under_loss(Credits& c, std::uint64_t seed, std::uint64_t reads = 0) {
  constexpr std::uint64_t kPlace = 0x10'0000;
  Lab::fill(c.lab.a().memory, seed);
  for (std::uint64_t id = 0; id < reads; ++id) {
    const std::uint64_t place = kPlace + id * 8192;
    REQUIRE(c.lab.post(1, c.pair.b, c.lab.request(WorkOpcode::read, id, place, place, 8 * kMtu)) ==
            PostResult::ok);
  }
  c.post_receives(0, 1);
  c.post_sends(0, 100);
  std::uint64_t posted = 1;
  std::uint64_t got = 0;
  Random random(seed);
  CAPTURE(seed);
  c.lab.on_poll = [&](unsigned) {
    for (const Completion& done : c.lab.b().received()) CHECK(done.wr_id == got++);
    if (posted < std::min<std::uint64_t>(100, got + 60) && random.below(20) == 0) {
      c.post_receives(posted, 1);
      ++posted;
    }
    CHECK(c.lab.a().engine.view().check_conservation() == "");
  };
  c.lab.run(picos_from_micros(1'000'000));
  CHECK(got == 100);
  CHECK(c.lab.a().sent().size() == 100);
  CHECK(c.lab.b().sent().size() == reads);
  for (std::uint64_t id = 0; id < reads; ++id) {
    const std::uint64_t place = kPlace + id * 8192;
    CHECK(std::memcmp(c.lab.a().memory.data() + place, c.lab.b().memory.data() + place, 8 * kMtu) ==
          0);
  }
  CHECK(c.lab.a().engine.view().state_of(c.pair.a) == QpState::rts);
  CHECK(c.lab.leftovers().empty());
}

constexpr Impairments kHardWeather{.drop = 0.03, .duplicate = 0.03, .reorder = 0.03};

TEST_CASE("credits under loss: all arrives, in order, with receives posted one by one",
          "[transport][credits]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Credits c(ReceiveSharing::owned, Credits::options_of(kHardWeather, seed));
    all_arrives_under_loss(c, seed);
  }
}

// What was lost waits for grants; the answer that it has arrived after all often comes first, with
// news of credits, and while a READ is to be answered: what there is to send is looked at in the
// midst of it.
TEST_CASE("credits under loss, selective repeat: answers that leave nothing to repair",
          "[transport][credits][selective]") {
  for (const auto algorithm : {cc::AlgorithmId::cadence, cc::AlgorithmId::eqds}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      LabOptions options = Credits::options_of(kHardWeather, seed);
      options.engine.reliability = Reliability::selective;
      options.engine.primary = choose_cc(algorithm, options);
      Credits c(ReceiveSharing::owned, options);
      all_arrives_under_loss(c, seed, 60);
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
