// Who speaks the control protocol is found out by HELLO; whoever does not answer is served all the
// same.
#include <catch2/catch.hpp>
#include <cstring>

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

TEST_CASE("both native: HELLO is answered and the connection becomes proactive", "[transport]") {
  // Before data, and with data under way when the answer comes.
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

TEST_CASE("a foreign peer: three tries, then reactive for good, and everything arrives",
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
