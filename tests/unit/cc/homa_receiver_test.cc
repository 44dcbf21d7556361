// Homa's receiver rule by rule: who is granted, how much, and the share of the oldest.
#include "cc/homa_receiver.h"

#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::test {
namespace {

struct HomaBench {
  explicit HomaBench(const std::vector<ParamOverride>& overrides = {})
      : params(grant_params<Homa>("homa", overrides)), receiver(params), senders(receiver) {}

  Homa::Params params;
  HomaReceiver receiver;
  Senders senders;
  std::int64_t now = 1'000'000;
};

TEST_CASE("homa receiver: the K with the least left are granted, each its window", "[homa]") {
  HomaBench b({{"overcommit", 3}, {"oldest_share", 0}});
  for (std::uint32_t peer = 0; peer < 6; ++peer) {
    b.senders.ask(b.now, peer, 10'000'000 - peer * 1'000'000);
  }
  b.senders.poll(b.now);
  CHECK(b.receiver.active() == 3);
  const std::uint64_t window = b.params.incoming_bytes / 4;
  for (std::uint32_t peer = 0; peer < 6; ++peer) {
    CAPTURE(peer);
    CHECK(b.senders.granted(peer) == (peer < 3 ? 0 : window + kGrantMessageExtra));
  }
  CHECK(b.senders.order() == std::vector<std::uint32_t>{5, 4, 3});
}

TEST_CASE("homa receiver: a shorter one comes before those that are served", "[homa]") {
  HomaBench b({{"overcommit", 1}, {"oldest_share", 0}});
  b.senders.ask(b.now, 0, 10'000'000);
  b.senders.run(b.now, 2'000);
  const std::uint64_t first = b.senders.granted(0);
  CHECK(first > 0);
  b.senders.ask(b.now + 2'000, 1, 100'000);
  b.senders.run(b.now + 2'000, 2'000);
  CHECK(b.senders.granted(1) == 100'000);
  b.senders.send(0, first / 2);
  b.senders.run(b.now + 4'000, 2'000);
  // All of the short one is granted: the long one goes on.
  CHECK(b.senders.granted(0) > first / 2);
}

TEST_CASE("homa receiver: when one stalls with its window full, the others have the link",
          "[homa]") {
  HomaBench b({{"overcommit", 2}, {"oldest_share", 0}});
  b.senders.ask(b.now, 0, 1'000'000);
  b.senders.ask(b.now, 1, 9'000'000);
  b.senders.run(b.now, 1'000);
  const std::uint64_t window = b.params.incoming_bytes / 3;
  CHECK(b.senders.granted(0) == window + kGrantMessageExtra);
  std::uint64_t got = 0;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t at = b.now + 1'000 + i * 340;
    if (b.senders.granted(1) >= kPacket) {
      b.senders.send(1, kPacket);
      got += kPacket;
    }
    b.senders.poll(at);
  }
  CHECK(got >= 190 * kPacket);
  CHECK(b.senders.granted(0) == window + kGrantMessageExtra);  // and no more
}

TEST_CASE("homa receiver: max_incoming bounds all together, unscheduled bytes included", "[homa]") {
  HomaBench b({{"max_incoming", 2}, {"oldest_share", 0}});
  for (std::uint32_t peer = 0; peer < 8; ++peer) b.senders.ask(b.now, peer, 1'000'000, 20'000);
  b.senders.run(b.now, 20'000);
  CHECK(b.receiver.outstanding() >= 8 * 20'000);
  CHECK(b.receiver.outstanding() <= std::max<std::uint64_t>(b.params.incoming_bytes, 160'000));
}

TEST_CASE("homa receiver: the oldest gets its share", "[homa]") {
  HomaBench b({{"overcommit", 1}});
  b.senders.ask(b.now, 9, 50'000'000);  // the longest, and the first
  std::uint64_t all = 0;
  for (int i = 1; i < 4'000; ++i) {
    const std::int64_t at = b.now + i * 340;
    if (b.senders.request(1).demand_bytes < 600'000) b.senders.ask(at, 1, 1'000'000);
    b.senders.poll(at);
    for (const std::uint32_t peer : {1U, 9U}) {
      if (b.senders.granted(peer) == 0) continue;
      const std::uint64_t bytes = std::min(b.senders.granted(peer), kPacket);
      b.senders.send(peer, bytes);
      all += bytes;
      break;
    }
    if (b.senders.granted(9) > 0 && i % 8 == 0) {
      const std::uint64_t bytes = std::min(b.senders.granted(9), kPacket);
      b.senders.send(9, bytes);
      all += bytes;
    }
  }
  const double share =
      static_cast<double>(b.senders.request(9).sent_total) / static_cast<double>(all);
  // 5 % of what is granted, one grant of 1.25 paths more or less, and what it had at the start.
  CHECK(share > 0.03);
  CHECK(share < 0.10);
}

}  // namespace
}  // namespace paceline::cc::test
