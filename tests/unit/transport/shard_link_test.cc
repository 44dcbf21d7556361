// What shards tell each other: nothing is lost when a ring is full, nothing is told twice, and an
// answer never reaches a context that did not ask.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/transport/peer_table.h"
#include "dataplane/transport/shard_follower.h"
#include "dataplane/transport/shard_leader.h"

namespace paceline::transport::test {
namespace {

// Writes down what it is told, and answers what the test says.
class ScriptedGovernor final : public cc::PortSender {
 public:
  void update(Nanos, std::uint32_t context, const cc::UplinkWant& want) override {
    wants[context] = want;
    if (want.asks_start) ++asked[context];
  }
  void forget(Nanos, std::uint32_t context) override {
    wants.erase(context);
    ++forgotten[context];
  }
  std::size_t poll(Nanos, std::span<cc::ShareOutput> out) override {
    std::size_t n = 0;
    while (n < out.size() && !answers.empty()) {
      out[n++] = answers.front();
      answers.erase(answers.begin());
    }
    return n;
  }
  Nanos next_wake() const override { return answers.empty() ? kNeverNanos : Nanos{0}; }

  std::map<std::uint32_t, cc::UplinkWant> wants;
  std::map<std::uint32_t, int> asked;
  std::map<std::uint32_t, int> forgotten;
  std::vector<cc::ShareOutput> answers;
};

struct TwoShards {
  explicit TwoShards(std::size_t messages = 8)
      : link(1, messages), governor(new ScriptedGovernor), leader(link, own()), follower(link, 1) {}
  std::unique_ptr<cc::PortSender> own() { return std::unique_ptr<cc::PortSender>(governor); }
  // Everything the follower has to tell arrives; messages other than wants.
  std::vector<ShardMessage> to_leader() {
    std::vector<ShardMessage> others;
    do {
      follower.flush(foreign);
      leader.drain({0}, [&](std::uint32_t shard, const ShardMessage& message) {
        CHECK(shard == 1);
        others.push_back(message);
      });
    } while (follower.waiting());
    return others;
  }
  std::vector<cc::ShareOutput> shares() {
    std::array<cc::ShareOutput, 4> mine;
    CHECK(leader.poll({0}, mine) == 0);
    follower.drain([](const ShardMessage&) { FAIL("not a share"); });
    std::vector<cc::ShareOutput> all;
    std::size_t n;
    while ((n = follower.poll({0}, mine)) != 0) all.insert(all.end(), mine.data(), mine.data() + n);
    return all;
  }

  ShardLink link;
  ScriptedGovernor* governor;
  ShardLeader leader;
  ShardFollower follower;
  std::uint64_t foreign = 0;
};

cc::UplinkWant asking(std::uint32_t bytes) {
  cc::UplinkWant want;
  want.asks_start = true;
  want.start_bytes = bytes;
  return want;
}

cc::ShareOutput answer(std::uint32_t context, std::uint32_t bytes) {
  cc::ShareOutput out;
  out.context = context;
  out.share.start_bytes = bytes;
  out.share.answers_start = true;
  return out;
}

TEST_CASE("the governor sees the contexts of all shards, and each gets its own answers",
          "[transport]") {
  TwoShards shards;
  shards.leader.update({0}, 3, asking(100));
  shards.follower.update({0}, 3, asking(200));
  shards.to_leader();
  REQUIRE(shards.governor->wants.size() == 2);
  CHECK(shards.governor->wants[6].start_bytes == 100);
  CHECK(shards.governor->wants[7].start_bytes == 200);
  shards.governor->answers = {answer(7, 20), answer(6, 10)};
  std::array<cc::ShareOutput, 4> mine;
  REQUIRE(shards.leader.poll({0}, mine) == 1);
  CHECK(mine[0].context == 3);
  CHECK(mine[0].share.start_bytes == 10);
  CHECK(shards.follower.inbox());
  const auto theirs = shards.shares();
  REQUIRE(theirs.size() == 1);
  CHECK(theirs[0].context == 3);
  CHECK(theirs[0].share.start_bytes == 20);
}

TEST_CASE("a question is asked once, however often the want changes", "[transport]") {
  TwoShards shards;
  shards.follower.update({0}, 0, asking(100));
  shards.to_leader();
  cc::UplinkWant want = asking(100);
  shards.follower.update({0}, 0, want);
  CHECK_FALSE(shards.follower.waiting());  // nothing new
  // It changes while the answer is on its way: the two cross.
  shards.governor->answers = {answer(1, 50)};
  std::array<cc::ShareOutput, 4> mine;
  shards.leader.poll({0}, mine);
  want.active = true;
  shards.follower.update({0}, 0, want);
  shards.to_leader();
  CHECK(shards.governor->asked[1] == 1);
  CHECK(shards.governor->wants[1].active);
  CHECK(shards.shares().size() == 1);
  // Answered; the next one is another question.
  shards.follower.update({0}, 0, asking(70));
  shards.to_leader();
  CHECK(shards.governor->asked[1] == 2);
}

TEST_CASE("an answer does not reach the next owner of a context", "[transport]") {
  TwoShards shards;
  shards.follower.update({0}, 2, asking(100));
  shards.to_leader();
  shards.governor->answers = {answer(5, 50)};
  std::array<cc::ShareOutput, 4> mine;
  shards.leader.poll({0}, mine);
  shards.follower.forget({0}, 2);
  shards.follower.update({0}, 2, asking(300));  // somebody else
  CHECK(shards.shares().empty());
  shards.to_leader();
  CHECK(shards.governor->forgotten[5] == 1);
  CHECK(shards.governor->wants[5].start_bytes == 300);
  shards.governor->answers = {answer(5, 60)};
  const auto shares = shards.shares();
  REQUIRE(shares.size() == 1);
  CHECK(shares[0].share.start_bytes == 60);
}

TEST_CASE("a full ring loses nothing: what waits is summed up", "[transport]") {
  TwoShards shards(4);
  Peer peer;
  for (std::uint32_t p = 0; p < 8; ++p) shards.follower.peer_added(p, peer);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint32_t size = 100 + i;
    bytes += size;
    shards.follower.received(i % 8, i % 3, size, i % 5 == 0, static_cast<std::uint16_t>(i));
    shards.follower.update({0}, i % 16, asking(size));
    shards.foreign += 3;
    shards.follower.flush(shards.foreign);  // nobody takes anything
  }
  CHECK(shards.follower.waiting());
  std::uint64_t got = 0;
  std::uint64_t packets = 0;
  std::uint64_t marked = 0;
  std::uint64_t foreign = 0;
  std::size_t added = 0;
  auto messages = shards.to_leader();
  for (const ShardMessage& message : shards.to_leader()) messages.push_back(message);
  for (const ShardMessage& message : messages) {
    if (std::holds_alternative<shard_message::PeerAdded>(message)) ++added;
    if (const auto* m = std::get_if<shard_message::Received>(&message)) {
      got += m->bytes;
      packets += m->packets;
      marked += m->ce_packets;
    }
    if (const auto* m = std::get_if<shard_message::Foreign>(&message)) foreign += m->bytes;
  }
  CHECK(added == 8);
  CHECK(got == bytes);
  CHECK(packets == 1000);
  CHECK(marked == 200);
  CHECK(foreign + shards.foreign == 3000);
  CHECK(messages.size() < 100);
  for (std::uint32_t c = 0; c < 16; ++c) CHECK(shards.governor->asked[2 * c + 1] == 1);
}

TEST_CASE("the governor keeps answers that find a follower's ring full", "[transport]") {
  TwoShards shards(4);
  for (std::uint32_t c = 0; c < 10; ++c) shards.follower.update({0}, c, asking(1));
  shards.to_leader();
  for (std::uint32_t c = 0; c < 10; ++c) shards.governor->answers.push_back(answer(2 * c + 1, c));
  std::vector<cc::ShareOutput> all;
  for (int turn = 0; turn < 10 && all.size() < 10; ++turn) {
    for (const auto& share : shards.shares()) all.push_back(share);
  }
  REQUIRE(all.size() == 10);
  for (std::uint32_t c = 0; c < 10; ++c) CHECK(all[c].share.start_bytes == c);
}

TEST_CASE("peers have a name on either side", "[transport]") {
  TwoShards shards;
  shards.leader.map_peer(1, 5, 9);
  CHECK(shards.leader.peer_of(1, 5) == 9);
  CHECK(shards.leader.peer_of(1, 4) == ShardLeader::kNone);
  std::vector<std::uint32_t> names;
  const auto collect = [&](std::uint32_t shard, std::uint32_t index) {
    CHECK(shard == 1);
    names.push_back(index);
  };
  shards.leader.for_each_follower_of(9, collect);
  shards.leader.for_each_follower_of(8, collect);
  CHECK(names == std::vector<std::uint32_t>{5});
  shards.leader.map_peer(1, 5, ShardLeader::kNone);
  shards.leader.for_each_follower_of(9, collect);
  CHECK(names.size() == 1);
  CHECK(shards.leader.peer_of(1, 5) == ShardLeader::kNone);
}

}  // namespace
}  // namespace paceline::transport::test
