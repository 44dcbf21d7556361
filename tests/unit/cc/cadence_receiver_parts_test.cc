// What CadenceReceiver is made of, class by class, without a port.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "cc/cadence/receiver/channel_table.h"
#include "cc/cadence/receiver/grant_planner.h"
#include "tests/unit/cc/cadence_port.h"

namespace paceline::cc::cadence {
namespace {

constexpr std::int64_t kNow = 10'000'000;

}  // namespace

TEST_CASE("cadence channel table: lists and sums agree with the channels whatever happens") {
  const CadenceParams p = Port::make({});
  ChannelTable table;
  CHECK(table.grow(70));  // two blocks of counters
  CHECK_FALSE(table.grow(70));
  std::vector<std::uint32_t> peers = {3, 64, 70, 1};
  for (const std::uint32_t peer : peers) {
    table.list(peer);
    table.list(peer);
    table.activate(kNow, peer);
    table.set_com(table[peer], 100 + peer);
    table.set_grant(table[peer], 100 + peer);
  }
  CHECK(table.committed() == 400 + 3 + 64 + 70 + 1);
  table.unlist(64);  // keeps what is committed: that is broken, and said
  CHECK(table.check(p).find("active or committed, but not listed") != std::string::npos);
  table.release(64);
  table.lower(table[3], 50);
  CHECK(table[3].com == 103);
  CHECK(table[3].seq == 1);
  CHECK(table.granted() == 50 + 170 + 101);
  table.enqueue(kNow, 70);
  CHECK(table.active() == 2);
  CHECK(table.check(p) == "");
}

TEST_CASE(
    "cadence channel table: channels wait in order, and who left in the meantime is skipped") {
  ChannelTable table;
  table.grow(200);
  for (std::uint32_t peer = 0; peer < 200; ++peer) table.enqueue(kNow, peer);
  table.release(1);
  for (std::uint32_t peer = 0; peer < 200; ++peer) {
    if (peer == 1) continue;
    const auto first = table.pop_waiting();
    REQUIRE(first == peer);
    table.activate(kNow, *first);
    if (peer == 150) table.enqueue(kNow, 1);  // among those the spent entries are dropped
  }
  CHECK(table.pop_waiting() == 1U);
}

TEST_CASE(
    "cadence channel table: GRANTs leave in order, one of a channel, none of one that is gone") {
  ChannelTable table;
  table.grow(3);
  table.push_grant(1, 7);
  table.push_grant(2);
  table.push_grant(1);
  table.push_grant(3);
  table.erase(2);
  REQUIRE(table.grants_due());
  CHECK(table.pop_grant() == 1U);
  CHECK(table[1].delay_us == 7);
  table.push_grant(2);  // a new channel of the same peer
  CHECK(table.pop_grant() == 2U);
  CHECK(table.pop_grant() == 3U);
  CHECK(table.pop_grant() == std::nullopt);
  CHECK_FALSE(table.grants_due());
}

TEST_CASE(
    "cadence channel table: data that arrives is noticed once, and more than was sent forgiven") {
  ChannelTable table;
  table.grow(2);
  table.counters(0).rx_bytes = 1000;
  table.list(0);
  CHECK_FALSE(table.take_arrivals(0));  // before it was listed nobody looked
  table.counters(0).rx_bytes += 500;
  CHECK(table.take_arrivals(0));
  CHECK_FALSE(table.take_arrivals(0));
  table.forget_uncharged(0, 1200);  // 300 more arrived than were sent
  CHECK(table[0].midway);
  CHECK(table.known_sent(0) == 1200);
}

TEST_CASE("cadence grant planner: shares go up within the capacity, and come down for a newcomer") {
  const CadenceParams p = Port::make({});
  ChannelTable table;
  GrantPlanner planner;
  const auto plan = [&](std::int64_t now) { return planner.plan({p, table, now, 80'000}); };
  CHECK(plan(kNow) == kNeverNanos.count);  // nobody is there
  table.grow(2);
  planner.grow(table.size());
  const auto join = [&](std::uint32_t peer) {
    table[peer].final_total = 500'000'000;
    table[peer].tx_cap = p.link_mbps;
    table.list(peer);
    table.activate(kNow, peer);
  };
  join(0);
  CHECK(plan(kNow) == kNeverNanos.count);
  CHECK(table[0].grant == 80'000);
  CHECK(table.committed() == 80'000);
  join(1);
  CHECK(plan(kNow) == kNow + p.rtt_ns);  // the newcomer waits for the confirmation
  CHECK(table[0].grant == 40'000);
  CHECK(table[0].com == 80'000);
  CHECK(table[1].grant == 0);
  table.set_com(table[0], 40'000);  // confirmed
  plan(kNow + p.rtt_ns);
  CHECK(table[1].grant == 40'000);
  CHECK(planner.worst_raise() == 0);
  CHECK(table.check(p) == "");
  CHECK(table.pop_grant() == 0U);
  CHECK(table.pop_grant() == 1U);
}

}  // namespace paceline::cc::cadence
