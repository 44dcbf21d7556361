// HELLO finds out which peers speak the control protocol; a peer that does not answer is served all
// the same.
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/wire/extensions/control.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions discovering() {
  LabOptions options;
  options.engine.peers = PeerPolicy::discover;
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  return options;
}

constexpr std::uint64_t kBytes = 2'000'000;

void send_and_check(Lab& lab, std::uint32_t qp) {
  Lab::fill(lab.a().memory, 3);
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(lab.post(0, qp,
                     lab.request(WorkOpcode::write, i, i * kBytes / 4, i * kBytes / 4,
                                 kBytes / 4)) == PostResult::ok);
  }
  lab.run(lab.now() + picos_from_micros(20'000));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 4);
  for (const Completion& c : sent) CHECK(c.status == CompletionStatus::success);
  CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), kBytes) == 0);
}

TEST_CASE("both speak the control protocol: HELLO is answered and the connection becomes proactive",
          "[transport]") {
  // Before data, and with data in flight when the answer comes.
  for (const bool early : {true, false}) {
    Lab lab(discovering());
    const Lab::Pair pair = lab.connect();
    if (!early) lab.run(picos_from_micros(50));
    send_and_check(lab, pair.a);
    const auto& a = lab.a().counters();
    const auto& b = lab.b().counters();
    CAPTURE(early);
    CHECK(a.hellos_received >= 1);
    CHECK(b.hellos_received >= 1);
    CHECK(a.hellos_sent <= 2);  // one question, one answer
    CHECK(a.requests_sent > 0);
    CHECK(b.grants_sent > 0);
    CHECK(a.grants_received > 0);
    CHECK(a.retransmitted_packets == 0);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("a lost HELLO is asked again", "[transport]") {
  Lab lab(discovering());
  int lost = 0;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = p.properties.operation == wire::Operation::hello && lost++ < 2;
    return true;
  });
  const Lab::Pair pair = lab.connect();
  lab.run(picos_from_micros(500));
  send_and_check(lab, pair.a);
  CHECK(lab.a().counters().grants_received > 0);
}

TEST_CASE("a plain RoCEv2 peer: three tries, then reactive for good, and everything arrives",
          "[transport]") {
  LabOptions options = discovering();
  options.foreign_b = true;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  send_and_check(lab, pair.a);
  lab.run(lab.now() + picos_from_micros(100'000));
  const auto& a = lab.a().counters();
  CHECK(a.hellos_sent == kHelloTries);
  CHECK(a.hellos_received == 0);
  CHECK(a.requests_sent == 0);
  CHECK(lab.b().counters().control_ignored == kHelloTries);
  CHECK(lab.b().counters().hellos_sent == 0);
  CHECK(lab.leftovers().empty());
}

// What a side says in its HELLOs, in order.
void listen(Lab::Side& side, std::vector<std::uint8_t>& hints) {
  side.port.on_departure = [&hints](Picos, const Packet& packet) {
    wire::ParsedPacket p;
    if (wire::parse_headers(packet.header_view(), packet.payload_bytes, p) !=
            wire::ParseError::ok ||
        p.properties.operation != wire::Operation::hello) {
      return;
    }
    HelloMessage hello;
    REQUIRE(wire::parse_control(wire::control_body(packet.header_view(), p), hello) ==
            wire::ParseError::ok);
    hints.push_back(hello.peer_count_hint);
  };
}

// Connects the side to `count` hosts that nobody has ever heard of, beyond the first `from`.
std::vector<std::uint32_t> hints_in(Lab& lab, unsigned index, std::uint32_t from,
                                    std::uint32_t count) {
  Lab::Side& side = index == 0 ? lab.a() : lab.b();
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = from; i < from + count; ++i) {
    numbers.push_back(side.engine.create_qp(lab.qp_config(index)));
    const QpAddress far{wire::IpAddress::v4(0x0AC8'0001U + i), wire::MacAddress::local(100 + i),
                        77 + i, Psn(1)};
    REQUIRE(side.engine.connect(lab.now(), numbers.back(), far, Psn(1), 0xC003));
  }
  lab.touch(index);
  return numbers;
}

TEST_CASE("a peer hears how many others there are, again when they double or are a quarter",
          "[transport]") {
  Lab lab(discovering());
  std::vector<std::uint8_t> said;
  listen(lab.b(), said);
  lab.connect();
  lab.run(picos_from_micros(50));
  REQUIRE(!said.empty());
  CHECK(said.back() == peer_count_hint_of(1));
  CHECK(lab.b().engine.peer_count_hint(kDefaultDataClass) == peer_count_hint_of(1));

  // The first two to say so are lost.
  int lost = 0;
  lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = p.properties.operation == wire::Operation::hello && lost++ < 2;
    return true;
  });
  const std::uint64_t heard = lab.a().counters().hellos_received;
  const auto numbers = hints_in(lab, 1, 0, 7);
  CHECK(lab.b().engine.peer_count_hint(kDefaultDataClass) == peer_count_hint_of(8));
  lab.run(lab.now() + picos_from_micros(1000));
  CHECK(said.back() == peer_count_hint_of(8));
  CHECK(lab.a().counters().hellos_received > heard);

  // As many again as there were, less one: no news.
  const std::size_t before = said.size();
  lab.b().engine.destroy_qp(lab.now(), numbers[0]);
  lab.touch(1);
  lab.run(lab.now() + picos_from_micros(1000));
  CHECK(said.size() == before);
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    lab.b().engine.destroy_qp(lab.now(), numbers[i]);
  }
  lab.touch(1);
  lab.run(lab.now() + picos_from_micros(1000));
  CHECK(said.back() < peer_count_hint_of(4));
}

TEST_CASE("peers = roce: nobody is asked anything", "[transport]") {
  LabOptions options = discovering();
  options.engine.peers = PeerPolicy::roce;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  send_and_check(lab, pair.a);
  CHECK(lab.a().counters().hellos_sent == 0);
  CHECK(lab.a().counters().requests_sent == 0);
  CHECK(lab.b().counters().grants_sent == 0);
}

TEST_CASE("a channel never sends beyond its ceiling, under loss of control packets too",
          "[transport]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    LabOptions options = discovering();
    options.engine.peers = PeerPolicy::paceline;
    options.seed = seed;
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    Random random(seed, 9);
    const auto lose_control = [&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
      verdict.drop = p.properties.is_control() && random.uniform() < 0.3;
      return true;
    };
    lab.a().cable.set_script(lose_control);
    lab.b().cable.set_script(lose_control);
    CAPTURE(seed);
    send_and_check(lab, pair.a);  // the lab checks conservation and the algorithms' own laws
    CHECK(lab.leftovers().empty());
  }
}

}  // namespace
}  // namespace paceline::transport::test
