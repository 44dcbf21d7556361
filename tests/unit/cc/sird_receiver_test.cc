// SIRD's receiver rule by rule: buckets, pace, policies, the two loops, what never arrives.
#include "cc/sird/receiver.h"

#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::test {
namespace {

constexpr std::int64_t kSirdRtt = 4'700;

struct SirdBench {
  explicit SirdBench(const std::vector<ParamOverride>& overrides = {})
      : params(grant_params<Sird>("sird", overrides)), receiver(params), senders(receiver) {}
  // Everything that was granted has been sent and arrives, for so long.
  void flow(std::uint32_t peer, std::int64_t span, bool marked = false) {
    const std::int64_t end = now + span;
    while (now < end) {
      senders.poll(now);
      if (const std::uint64_t bytes = senders.granted(peer); bytes > 0) {
        senders.send(peer, std::min(bytes, kPacket), marked);
      }
      now += 340;
    }
  }

  Sird::Params params;
  SirdReceiver receiver;
  Senders senders;
  std::int64_t now = 1'000'000;
};

TEST_CASE("sird receiver: B bounds what is outstanding, over all senders", "[sird]") {
  SirdBench b;
  for (std::uint32_t peer = 0; peer < 8; ++peer) b.senders.ask(b.now, peer, 1'000'000);
  b.senders.run(b.now, 100'000);
  CHECK(b.receiver.outstanding() >= b.params.bucket_bytes);
  CHECK(b.receiver.outstanding() < b.params.bucket_bytes + kPacket);
  // In turns: nobody has more than a packet above another.
  for (std::uint32_t peer = 1; peer < 8; ++peer) {
    CHECK(b.senders.granted(peer) + kPacket >= b.senders.granted(0));
    CHECK(b.senders.granted(0) + kPacket >= b.senders.granted(peer));
  }
}

TEST_CASE("sird receiver: SB bounds one sender", "[sird]") {
  SirdBench b;
  b.senders.ask(b.now, 3, 1'000'000);
  b.senders.run(b.now, 100'000);
  CHECK(b.senders.granted(3) >= b.params.sender_bucket_bytes);
  CHECK(b.senders.granted(3) < b.params.sender_bucket_bytes + kPacket);
}

TEST_CASE("sird receiver: unscheduled bytes fill the bucket, too", "[sird]") {
  SirdBench b;
  for (std::uint32_t peer = 0; peer < 4; ++peer) b.senders.ask(b.now, peer, 50'000, 50'000);
  b.senders.ask(b.now, 4, 1'000'000);
  b.senders.run(b.now, 50'000);
  CHECK(b.receiver.outstanding() == 200'000);
  CHECK(b.senders.granted(4) == 0);
  for (std::uint32_t peer = 0; peer < 4; ++peer) b.senders.send(peer, 50'000);
  b.senders.run(b.now + 50'000, 50'000);
  CHECK(b.senders.granted(4) >= b.params.sender_bucket_bytes);
}

TEST_CASE("sird receiver: credit is handed out a little below line rate", "[sird]") {
  SirdBench b({{"bucket", 64}, {"sender_bucket", 64}});
  b.senders.ask(b.now, 0, 100'000'000);
  std::uint64_t packets = 0;
  const std::int64_t begin = b.now;
  while (b.now < begin + 30'000) {
    packets += b.senders.poll(b.now);
    b.now = std::max(b.now + 1, b.receiver.next_wake().count);
  }
  // 30 us at 98 Gb/s are 87.9 packets; what late polls may make up for comes on top once.
  CHECK(packets <= 88 + 9);
  CHECK(packets >= 86);
}

TEST_CASE("sird receiver: smallest first serves who has least left", "[sird]") {
  SirdBench b({{"smallest_first", 1}});
  b.senders.ask(b.now, 0, 1'000'000);
  b.senders.ask(b.now, 1, 5'000'000);
  b.senders.ask(b.now, 2, 80'000);
  b.senders.run(b.now, 6'000);
  REQUIRE(b.senders.order().size() > 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(b.senders.order()[i] == 2);
  // Its SB is full: the next smallest is served; together they have B.
  CHECK(b.senders.granted(2) >= b.params.sender_bucket_bytes);
  CHECK(b.senders.granted(0) > 0);
  CHECK(b.senders.granted(1) == 0);
}

TEST_CASE("sird receiver: marks lower SBnet, their end lets it grow again", "[sird]") {
  SirdBench b;
  b.senders.ask(b.now, 0, 100'000'000);
  b.flow(0, 20 * kSirdRtt);
  CHECK(b.receiver.bucket_of(0) == b.params.sender_bucket_bytes);
  b.flow(0, 40 * kSirdRtt, true);
  const std::uint32_t low = b.receiver.bucket_of(0);
  // Every window marked whole: alpha goes to 1, and each window halves what is left.
  CHECK(low <= b.params.least_bucket_bytes * 2);
  CHECK(low >= b.params.least_bucket_bytes);
  b.flow(0, 40 * kSirdRtt);
  CHECK(b.receiver.bucket_of(0) > low + 5 * kPacket);
}

TEST_CASE("sird receiver: csn lowers SBsender, and the credit goes to others", "[sird]") {
  SirdBench b;
  b.senders.ask(b.now, 0, 100'000'000);
  b.senders.request(0).congested = true;
  b.senders.tell(b.now, 0);
  b.flow(0, 40 * kSirdRtt);
  CHECK(b.receiver.bucket_of(0) <= b.params.least_bucket_bytes * 2);
  b.senders.request(0).congested = false;
  b.senders.tell(b.now, 0);
  b.flow(0, 40 * kSirdRtt);
  CHECK(b.receiver.bucket_of(0) > b.params.least_bucket_bytes * 4);
}

TEST_CASE("sird receiver: a dropped ceiling frees the bucket", "[sird]") {
  SirdBench b;
  RequestMessage& r = b.senders.ask(b.now, 0, 1'000'000);
  b.senders.run(b.now, 20'000);
  CHECK(b.receiver.outstanding(0) >= b.params.sender_bucket_bytes);
  b.senders.send(0, 3 * kPacket);
  r.demand_bytes = 0;
  ++r.round;
  b.senders.tell(b.now + 20'000, 0);
  CHECK(b.receiver.outstanding(0) == 0);
  b.senders.run(b.now + 20'000, 20'000);
  CHECK(b.receiver.outstanding() == 0);
}

TEST_CASE("sird receiver: what was lost stops to count, told or not", "[sird]") {
  SirdBench b;
  RequestMessage& r = b.senders.ask(b.now, 0, 1'000'000);
  b.senders.run(b.now, 20'000);
  const std::uint64_t sent = b.senders.granted(0);
  r.sent_total += sent;  // and nothing arrives
  r.lost = true;
  ++r.round;
  b.senders.tell(b.now + 30'000, 0);
  CHECK(b.receiver.outstanding(0) == 0);
  r.lost = false;
  b.senders.run(b.now + 30'000, 20'000);
  // Once more, without a word of the loss: it has its time.
  const std::uint64_t again = b.senders.granted(0);
  REQUIRE(again > 0);
  r.sent_total += again;
  b.senders.tell(b.now + 60'000, 0);
  b.senders.run(b.now + 60'000, 150'000);
  CHECK(b.senders.granted(0) == 0);
  b.senders.tell(b.now + 215'000, 0);
  b.senders.run(b.now + 215'000, 100'000);
  CHECK(b.senders.granted(0) > 0);
}

TEST_CASE("sird receiver: a sender that falls silent keeps nothing for ever", "[sird]") {
  SirdBench b;
  b.senders.ask(b.now, 0, 1'000'000);
  b.senders.run(b.now, 20'000);
  CHECK(b.receiver.outstanding() > 0);
  b.senders.run(b.now + 20'000, 6'000'000);
  CHECK(b.receiver.outstanding() == 0);
  CHECK(b.receiver.next_wake() == kNeverNanos);
}

TEST_CASE("sird receiver: who waits is told so", "[sird]") {
  SirdBench b;
  for (std::uint32_t peer = 0; peer < 64; ++peer) b.senders.ask(b.now, peer, 1'000'000);
  b.senders.run(b.now, 3 * kSirdRtt);
  unsigned waiting = 0;
  for (std::uint32_t peer = 0; peer < 64; ++peer) {
    CHECK(b.senders.heard(peer) == 1);
    waiting += b.senders.held(peer);
  }
  CHECK(waiting >= 40);  // B has room for 21 packets
  // Asked again, it answers again: the ceiling that got lost, or to wait.
  b.senders.tell(b.now + 50'000, 0);
  b.senders.run(b.now + 50'000, 2 * kSirdRtt);
  CHECK(b.senders.heard(0) == 2);
}

TEST_CASE("sird receiver: late data is not counted twice", "[sird]") {
  SirdBench b;
  RequestMessage& r = b.senders.ask(b.now, 0, 1'000'000);
  b.senders.run(b.now, 20'000);
  const std::uint64_t sent = b.senders.granted(0);
  r.lost = true;
  ++r.round;
  r.sent_total += sent;
  b.senders.tell(b.now + 30'000, 0);
  r.lost = false;
  // It comes after all.
  r.sent_total -= sent;
  b.senders.send(0, sent);
  b.senders.tell(b.now + 40'000, 0);
  b.senders.run(b.now + 40'000, 40'000);
  CHECK(b.receiver.outstanding(0) >= b.params.sender_bucket_bytes);
  CHECK(b.receiver.outstanding(0) < b.params.sender_bucket_bytes + kPacket);
}

}  // namespace
}  // namespace paceline::cc::test
