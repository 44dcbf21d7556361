// A plan between the ranks of a network with random delays: every message once, begun exactly when
// what it waits for allows, in the order of its lane, with the right bytes.
#include "tools/collective/rank/plan/plan_runner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tests/unit/collective/delay_network.h"
#include "tools/collective/rank/plan/plan_routes.h"
#include "tools/collective/rank/rank_error.h"
#include "tools/job/verbs/plan_cut.h"

namespace paceline::rank::plan_runner_test {
namespace {

using Catch::Matchers::Contains;
using delays::Event;
using delays::Network;
using delays::Step;

// What every message waits for.
std::vector<std::set<std::uint32_t>> waits_of(const MessagePlan& plan) {
  std::vector<std::set<std::uint32_t>> waits(plan.messages.size());
  for (std::uint32_t id = 0; id < waits.size(); ++id) {
    if (plan.messages[id].after != kNoMessage) waits[id].insert(plan.messages[id].after);
  }
  for (const Join& join : plan.joins) waits[join.message].insert(join.after);
  return waits;
}

struct Shape {
  std::uint32_t ranks;
  std::uint32_t messages;
  std::uint32_t lanes;
};

MessagePlan random_plan(const Shape& shape, Random& random) {
  MessagePlan plan;
  const auto below = [&random](std::uint64_t n) {
    return static_cast<std::uint32_t>(random.below(n));
  };
  for (std::uint32_t id = 0; id < shape.messages; ++id) {
    PlannedMessage m;
    m.src = below(shape.ranks);
    m.computes = below(5) == 0;
    m.dst = m.computes ? m.src : (m.src + 1 + below(shape.ranks - 1)) % shape.ranks;
    m.bytes = m.computes ? 0 : below(4) == 0 ? 0 : below(500);
    m.lane = below(4) == 0 ? kNoMessage : below(shape.lanes);
    if (below(3) == 0) m.start = Picos{static_cast<std::int64_t>(below(3'000'000))};
    if (below(2) == 0) m.gap = Picos{static_cast<std::int64_t>(below(1'000'000))};
    std::set<std::uint32_t> after;
    for (std::uint32_t tries = below(12); tries > 0 && id > 0; --tries) {
      const std::uint32_t other = below(id);
      const PlannedMessage& o = plan.messages[other];
      if (o.src == m.src || o.dst == m.src) after.insert(other);
    }
    for (const std::uint32_t other : after) {
      if (m.after == kNoMessage) {
        m.after = other;
      } else {
        plan.joins.push_back({id, other});
      }
    }
    plan.messages.push_back(m);
  }
  // So that every rank has a part.
  PlannedMessage last;
  last.src = shape.ranks - 1;
  plan.messages.push_back(last);
  return plan;
}

class World {
 public:
  World(const MessagePlan& plan, std::uint64_t seed, bool data = true)
      : plan_(plan), network(seed, Picos{700'000}) {
    auto cut = tools::cut_plan(plan, data);
    REQUIRE(cut.errors == std::vector<std::string>{});
    parts = std::move(cut.value);
    for (std::uint32_t r = 0; r < parts.size(); ++r) {
      RankLink& link = network.add(PlanMemory::bytes_of(parts[r]));
      memories_.push_back(std::make_unique<PlanMemory>(parts[r], link.staging()));
      runners.push_back(std::make_unique<PlanRunner>(parts[r], r, *memories_.back(), link));
      links.push_back(&link);
    }
  }

  // To the end of all that happens.
  void run() {
    while (true) {
      Picos at = network.next();
      for (const auto& runner : runners) at = earlier(at, runner->next_deadline());
      if (at == kNever) return;
      network.now = at;
      while (network.next() == at) take(network.take());
      for (const auto& runner : runners) runner->begin_due(at);
    }
  }

  // When message `id` is done for host `at`: seen there, or complete.
  Picos done_for(std::uint32_t id, std::uint32_t at) const {
    const PlannedMessage& m = plan_.messages[id];
    return m.src == at ? record_of(id).completed : seen.at(id);
  }

  const PlanRecord& record_of(std::uint32_t id) const {
    const std::uint32_t src = plan_.messages[id].src;
    const auto& sends = parts[src].sends;
    const auto found =
        std::find_if(sends.begin(), sends.end(), [id](const PlanSend& s) { return s.id == id; });
    REQUIRE(found != sends.end());
    return runners[src]->records()[static_cast<std::size_t>(found - sends.begin())];
  }

 private:
  void take(const Event& event) {
    if (event.step == Step::is_seen) {
      if (!seen.emplace(event.word, event.at).second) FAIL("message seen twice: " << event.word);
      seen_order.push_back(event.word);
      runners[event.to]->take(event.at, {true, event.from, event.word, event.bytes});
    } else if (event.step == Step::is_acknowledged) {
      runners[event.from]->take(event.at, {false, event.to, event.word, 0});
    }
  }

  const MessagePlan& plan_;
  std::vector<std::unique_ptr<PlanMemory>> memories_;

 public:
  Network network;
  std::vector<PlanPart> parts;
  std::vector<std::unique_ptr<PlanRunner>> runners;
  std::vector<RankLink*> links;
  std::map<std::uint32_t, Picos> seen;  // by message
  std::vector<std::uint32_t> seen_order;
};

void check_times(const MessagePlan& plan, const World& world) {
  const auto waits = waits_of(plan);
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    const PlanRecord& record = world.record_of(id);
    CAPTURE(id, m.src, m.dst, m.computes, record.ready.count);
    Picos last{-1};
    for (const std::uint32_t other : waits[id]) {
      last = later(last, world.done_for(other, m.src));
    }
    if (waits[id].empty()) {
      REQUIRE(record.ready == m.start);
      REQUIRE(record.cause == kNoPlanMessage);
    } else {
      REQUIRE(record.ready == later(m.start, m.computes ? last : last + m.gap));
      REQUIRE(waits[id].count(record.cause) == 1);
      REQUIRE(world.done_for(record.cause, m.src) == last);
    }
    if (m.computes) REQUIRE(record.completed == record.ready + m.gap);
    if (!m.computes) REQUIRE(record.completed >= record.ready);
  }
}

// Every message is posted once and seen once, and totals are the plan's.
void check_conservation(const MessagePlan& plan, const World& world) {
  std::map<std::uint32_t, unsigned> posted;
  for (const Event& event : world.network.posted) ++posted[event.word];
  std::vector<std::uint64_t> sent(world.parts.size()), received(world.parts.size());
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    CAPTURE(id);
    REQUIRE(posted[id] == (m.computes ? 0U : 1U));
    REQUIRE(world.seen.count(id) == (m.computes ? 0U : 1U));
    if (m.computes) continue;
    sent[m.src] += m.bytes;
    received[m.dst] += m.bytes;
  }
  for (std::uint32_t r = 0; r < world.parts.size(); ++r) {
    const PlanTotals& totals = world.runners[r]->totals();
    CAPTURE(r);
    REQUIRE(world.runners[r]->done());
    REQUIRE_FALSE(world.runners[r]->waits_for().has_value());
    REQUIRE(totals.sent_bytes == sent[r]);
    REQUIRE(totals.received_bytes == received[r]);
    REQUIRE(totals.received == world.parts[r].arrivals.size());
    REQUIRE(totals.wrong_bytes == 0);
  }
}

// Messages of one lane are posted in the order in which they became ready, and seen in that order.
void check_lanes(const MessagePlan& plan, const World& world) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::vector<std::uint32_t>> posted, seen;
  for (const Event& event : world.network.posted) {
    const PlannedMessage& m = plan.messages[event.word];
    posted[{m.src, m.dst, m.lane}].push_back(event.word);
  }
  for (const std::uint32_t id : world.seen_order) {
    const PlannedMessage& m = plan.messages[id];
    seen[{m.src, m.dst, m.lane}].push_back(id);
  }
  for (const auto& [key, ids] : posted) {
    CAPTURE(std::get<0>(key), std::get<1>(key), std::get<2>(key));
    for (std::size_t i = 1; i < ids.size(); ++i) {
      REQUIRE(world.record_of(ids[i - 1]).ready <= world.record_of(ids[i]).ready);
    }
    if (std::get<2>(key) != kNoMessage) REQUIRE(seen[key] == ids);
  }
}

// What is posted and not acknowledged, and posted and not seen, fits what the connections of both
// ends are made for.
void check_room(const World& world) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, PeerTraffic> sides;
  for (std::uint32_t r = 0; r < world.parts.size(); ++r) {
    for (const PeerTraffic& t : plan_traffic(world.parts[r], r)) {
      CAPTURE(r, t.peer, t.channel);
      REQUIRE(sides.emplace(std::tuple(r, t.peer, t.channel), t).second);
    }
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>>
      ways;
  for (const Event& event : world.network.posted) {
    ways[{event.from, event.to, event.channel}].push_back(event.word);
  }
  std::map<std::uint32_t, Picos> posted_at;
  for (const Event& event : world.network.posted) posted_at[event.word] = event.at;
  for (const auto& [way, ids] : ways) {
    const auto [from, to, channel] = way;
    CAPTURE(from, to, channel);
    REQUIRE(sides.count({from, to, channel}) == 1);
    REQUIRE(sides.count({to, from, channel}) == 1);
    REQUIRE(sides.at({to, from, channel}).received > 0);
    const std::uint32_t room = sides.at({from, to, channel}).sent;
    // The one that is `room` before it was acknowledged by then.
    for (std::size_t i = room; i < ids.size(); ++i) {
      REQUIRE(world.record_of(ids[i - room]).completed <= posted_at[ids[i]]);
    }
  }
}

TEST_CASE("plan runner: every message once, when it may begin, in order", "[collective]") {
  Random random(2026'1128);
  for (int round = 0; round < 300; ++round) {
    const Shape shape{2 + static_cast<std::uint32_t>(random.below(5)),
                      1 + static_cast<std::uint32_t>(random.below(250)),
                      1 + static_cast<std::uint32_t>(random.below(3))};
    const std::uint64_t seed = random.below(std::uint64_t{1} << 40);
    CAPTURE(shape.ranks, shape.messages, shape.lanes, seed);
    Random plans(seed);
    const MessagePlan plan = random_plan(shape, plans);
    World world(plan, seed, round % 4 != 0);
    world.run();
    check_conservation(plan, world);
    check_times(plan, world);
    check_lanes(plan, world);
    check_room(world);
  }
}

PlannedMessage message_of(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes,
                          std::uint32_t lane = 0) {
  PlannedMessage m;
  m.src = src;
  m.dst = dst;
  m.bytes = bytes;
  m.lane = lane;
  return m;
}

TEST_CASE("plan runner: a lane holds back what its connection has no room for", "[collective]") {
  for (const std::uint32_t lane : {0U, kNoMessage}) {
    MessagePlan plan;
    for (int i = 0; i < 500; ++i) plan.messages.push_back(message_of(0, 1, 8, lane));
    World world(plan, 3);
    world.runners[0]->begin_due(Picos{0});
    CHECK(world.network.posted.size() == (lane == 0 ? kMostUnderWay : kPoolSize));
    world.run();
    check_conservation(plan, world);
    check_lanes(plan, world);
    check_room(world);
  }
}

TEST_CASE("plan runner: wrong bytes are counted, and the first is named", "[collective]") {
  MessagePlan plan;
  plan.messages = {message_of(0, 1, 100), message_of(0, 1, 50), message_of(0, 1, 30)};
  World world(plan, 1);
  // After they have landed, before they are seen.
  world.runners[0]->begin_due(Picos{0});
  const PlanArrival& second = world.parts[1].arrivals[1];
  unsigned landed = 0;
  while (!world.runners[1]->done()) {
    const Event event = world.network.take();
    if (event.step == Step::lands && event.word == 1) {
      std::byte* const bytes = world.links[1]->staging() + second.at;
      bytes[7] ^= std::byte{0xFF};
      bytes[49] ^= std::byte{1};
      ++landed;
    }
    if (event.step == Step::is_seen) {
      world.runners[1]->take(event.at, {true, 0, event.word, event.bytes});
    }
  }
  REQUIRE(landed == 1);
  const PlanTotals& totals = world.runners[1]->totals();
  CHECK(totals.received == 3);
  CHECK(totals.wrong_messages == 1);
  CHECK(totals.wrong_bytes == 2);
  CHECK(totals.wrong_message == 1);
  CHECK(totals.first_wrong.first == 7);
  CHECK(totals.first_wrong.got == (totals.first_wrong.expected ^ 0xFF));
}

TEST_CASE("plan runner: an arrival that is not the plan's ends it", "[collective]") {
  MessagePlan plan;
  plan.messages = {message_of(0, 1, 100), message_of(2, 1, 50)};
  World world(plan, 1);
  PlanRunner& runner = *world.runners[1];
  CHECK_THROWS_WITH(runner.take(Picos{0}, {true, 0, 7, 100}), Contains("message 7 from rank 0"));
  CHECK_THROWS_WITH(runner.take(Picos{0}, {true, 2, 0, 100}), Contains("none of the plan"));
  CHECK_THROWS_WITH(runner.take(Picos{0}, {true, 0, 0, 99}),
                    Contains("99 bytes: expected are 100"));
  CHECK(runner.finished() == 0);
  runner.take(Picos{0}, {true, 2, 1, 50});
  CHECK_THROWS_AS(runner.take(Picos{0}, {true, 2, 1, 50}), RankError);
  CHECK(runner.finished() == 1);
}

TEST_CASE("plan runner: it tells what it waits for", "[collective]") {
  MessagePlan plan;
  plan.messages = {message_of(0, 1, 10), message_of(2, 1, 10), message_of(1, 2, 10)};
  plan.messages[2].after = 1;
  World world(plan, 1);
  const auto wait_of = [&world](std::uint32_t rank) {
    const auto wait = world.runners[rank]->waits_for();
    REQUIRE(wait.has_value());
    return std::pair(wait->message, wait->arrival);
  };
  CHECK(wait_of(1) == std::pair(1U, true));  // message 2 waits for it
  CHECK_FALSE(world.runners[0]->waits_for().has_value());
  world.runners[0]->begin_due(Picos{0});
  CHECK(wait_of(0) == std::pair(0U, false));
  world.runners[1]->take(Picos{1}, {true, 2, 1, 10});
  CHECK(wait_of(1) == std::pair(0U, true));
  world.runners[1]->begin_due(Picos{1});
  CHECK(wait_of(1) == std::pair(2U, false));
}

TEST_CASE("plan parts: lines bring them over, whatever their size", "[collective]") {
  Random random(11);
  for (const std::uint32_t messages : {0U, 20U, 20'000U}) {
    const MessagePlan plan = random_plan({4, messages, 3}, random);
    const auto cut = tools::cut_plan(plan, messages != 20);
    REQUIRE(cut.ok());
    for (const PlanPart& part : cut.value) {
      PlanPart copy;
      const auto lines = part_lines(part);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        REQUIRE(lines[i].dump().size() < (1U << 20));
        REQUIRE(add_part_line(lines[i], copy) == (i + 1 == lines.size()));
      }
      REQUIRE(part_lines(copy) == lines);
      REQUIRE(copy.sends.size() == part.sends.size());
      REQUIRE(copy.receive_bytes == part.receive_bytes);
      REQUIRE(copy.data == part.data);
    }
  }
}

TEST_CASE("plan parts: what cannot be sent is refused", "[collective]") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const auto errors_of = [](const MessagePlan& plan, bool data) {
    const auto cut = tools::cut_plan(plan, data);
    return cut.ok() ? std::string() : cut.errors.front();
  };
  MessagePlan plan;
  plan.messages = {message_of(0, 1, kGiB - 8), message_of(2, 1, 8)};
  CHECK(errors_of(plan, true) == "");
  plan.messages.push_back(message_of(0, 1, 1));
  CHECK_THAT(errors_of(plan, true), Contains("NIC 1 receives 1073741832 bytes") &&
                                        Contains("1073741824") && Contains("--no-data"));
  CHECK(errors_of(plan, false) == "");
  CHECK(tools::cut_plan(plan, false).value[1].receive_bytes == kGiB - 8);
  plan.messages = {message_of(0, 1, kGiB + 1)};
  CHECK_THAT(errors_of(plan, false), Contains("at most 1073741824") && Contains("chunk_bytes"));
  plan.messages = {message_of(1, 1, 8)};
  CHECK_THAT(errors_of(plan, true), Contains("NIC 1 sends to itself"));
}

}  // namespace
}  // namespace paceline::rank::plan_runner_test
