// Homa's receiver rule by rule: who is granted, how much, and the share of the oldest.
#include "cc/homa/receiver.h"

#include <algorithm>
#include <vector>

#include "cc/param_block.h"
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
  // All of the short one is granted: the long one continues.
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

// GRANTs say 1 + the level.
TEST_CASE("homa receiver: levels by rank, the lowest that suffice", "[homa]") {
  HomaBench b({{"priorities", 7}, {"unscheduled_levels", 3}, {"oldest_share", 0}});
  REQUIRE(b.params.priorities.scheduled() == 4);
  b.senders.ask(b.now, 0, 1'000'000);
  b.senders.poll(b.now);
  CHECK(b.senders.last(0).priority == 1);  // alone: the lowest
  b.senders.ask(b.now, 1, 500'000);
  b.senders.ask(b.now, 2, 700'000);
  b.senders.send(0, b.senders.granted(0));
  b.senders.run(b.now, 2'000);
  CHECK(b.senders.last(1).priority == 3);
  CHECK(b.senders.last(2).priority == 2);
  CHECK(b.senders.last(0).priority == 1);
  // Six active, four levels: the last three share the lowest.
  for (std::uint32_t peer = 3; peer < 6; ++peer) b.senders.ask(b.now, peer, 1'000'000 * peer);
  for (std::uint32_t peer = 0; peer < 3; ++peer) b.senders.send(peer, b.senders.granted(peer));
  b.senders.run(b.now + 2'000, 20'000);
  std::vector<unsigned> levels;
  for (std::uint32_t peer = 0; peer < 6; ++peer) levels.push_back(b.senders.last(peer).priority);
  REQUIRE(b.receiver.active() == 6);
  std::vector<unsigned> sorted = levels;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == std::vector<unsigned>{1, 1, 1, 2, 3, 4});
  CHECK(levels[5] == 1);  // the longest
}

TEST_CASE("homa receiver: the oldest's share goes at the highest level of granted bytes",
          "[homa]") {
  HomaBench b({{"priorities", 7}, {"overcommit", 1}, {"oldest_share", 0.5}});
  b.senders.ask(b.now, 9, 50'000'000);
  b.senders.send(9, b.senders.granted(9));
  unsigned most = 0;
  for (int i = 1; i < 1'000; ++i) {
    const std::int64_t at = b.now + i * 340;
    if (b.senders.request(1).demand_bytes < 600'000) b.senders.ask(at, 1, 1'000'000);
    b.senders.poll(at);
    b.senders.send(1, std::min(b.senders.granted(1), kPacket));
    most = std::max<unsigned>(most, b.senders.last(9).priority);
    // Alone in its level, and not above what may leave without a grant.
    CHECK(b.senders.last(1).priority <= 4);
  }
  CHECK(most == 4);
}

TEST_CASE("homa receiver: without priorities GRANTs say none", "[homa]") {
  HomaBench b;
  for (std::uint32_t peer = 0; peer < 4; ++peer) b.senders.ask(b.now, peer, 1'000'000);
  b.senders.run(b.now, 20'000);
  for (std::uint32_t peer = 0; peer < 4; ++peer) CHECK(b.senders.last(peer).priority == 0);
  // Taken back while senders are there.
  HomaBench c({{"priorities", 4}});
  c.senders.ask(c.now, 0, 1'000'000);
  c.senders.poll(c.now);
  CHECK(c.senders.last(0).priority == 1);
  ParamBlock off;
  off.id = AlgorithmId::homa;
  off.put(b.params);
  c.receiver.set_params(off);
  c.senders.send(0, c.senders.granted(0));
  c.senders.run(c.now, 2'000);
  CHECK(c.senders.last(0).priority == 0);
}

std::uint8_t class_from(const Homa::Params& p, std::uint8_t granted, std::uint64_t message_bytes,
                        std::uint64_t offset) {
  Homa::State state{};
  state.priority = granted;
  return Homa::packet_class(state, p, message_bytes, offset);
}

TEST_CASE("homa: classes of bytes without a grant by the length of their message", "[homa]") {
  const Homa::Params p = grant_params<Homa>("homa", {{"priorities", 7}});
  // 200 and 2800 bytes are the cutoffs; three levels, below the class of control packets.
  CHECK(class_from(p, 0, 0, 0) == 6);
  CHECK(class_from(p, 0, 200, 0) == 6);
  CHECK(class_from(p, 0, 201, 0) == 5);
  CHECK(class_from(p, 0, 2'800, 0) == 5);
  CHECK(class_from(p, 0, 2'801, 0) == 4);
  CHECK(class_from(p, 0, 50'000'000, 0) == 4);
  // Four levels of scheduled bytes below, 0 to 3; a receiver that says none: the lowest.
  const std::uint64_t behind = p.priorities.prefix_bytes;
  CHECK(behind > 50'000);  // 1 BDP is 58,750 bytes on the wire
  CHECK(behind < 58'750);
  CHECK(class_from(p, 0, 1'000'000, behind - 1) == 4);
  CHECK(class_from(p, 0, 1'000'000, behind) == 0);
  for (unsigned level = 0; level < 4; ++level) {
    CHECK(class_from(p, static_cast<std::uint8_t>(level + 1), 1'000'000, behind) == level);
  }
  // One with other values says more than there are.
  CHECK(class_from(p, 7, 1'000'000, behind) == 3);
}

TEST_CASE("homa: few levels, cutoffs out of order", "[homa]") {
  const auto with = [](double levels, double unscheduled) {
    return grant_params<Homa>("homa", {{"priorities", levels},
                                       {"unscheduled_levels", unscheduled},
                                       {"cutoff_1", 9'000},
                                       {"cutoff_2", 1'000}});
  };
  // One level at least is left to what is granted; a lone one is for all.
  CHECK(with(2, 4).priorities.scheduled() == 1);
  CHECK(class_from(with(2, 4), 1, 100, 0) == 6);
  CHECK(class_from(with(2, 4), 1, 1'000'000, 500'000) == 5);
  CHECK(class_from(with(1, 3), 1, 100, 0) == 6);
  CHECK(class_from(with(1, 3), 1, 1'000'000, 500'000) == 6);
  CHECK(class_from(with(5, 0), 5, 100, 0) == 6);
  // A cutoff below the one before it counts as that.
  CHECK(class_from(with(7, 3), 0, 5'000, 0) == 6);
  CHECK(class_from(with(7, 3), 0, 9'001, 0) == 4);
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
