// What CadenceReceiver is made of, class by class, without a port.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "cc/cadence/receiver/channel_table.h"
#include "cc/cadence/receiver/grant_planner.h"
#include "cc/cadence/receiver/grant_queue.h"
#include "cc/cadence/receiver/port_watch.h"
#include "cc/cadence/receiver/start_windows.h"
#include "cc/cadence/receiver/virtual_queue.h"
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
    CHECK(table.list(peer));
    CHECK_FALSE(table.list(peer));
    table.activate(kNow, peer);
    table.set_com(table[peer], 100 + peer);
    table.set_grant(table[peer], 100 + peer);
  }
  CHECK(table.committed() == 400 + 3 + 64 + 70 + 1);
  CHECK(table.active_bits()[1] == 0b1000001);
  table.unlist(64);  // keeps what is committed: that is broken, and said
  CHECK(table.check(p).find("committed but not listed") != std::string::npos);
  table.release(64);
  table.lower(table[3], 50, true);
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

TEST_CASE("cadence channel table: every byte of the port is counted once") {
  ChannelTable table;
  table.grow(2);
  table.counters(0).rx_bytes = 1000;
  table.list(0);
  CHECK(table.arrived() == 0);  // before it was listed nobody looked
  table.counters(0).rx_bytes += 500;
  table.counters(0).rx_packets += 2;
  const auto came = table.take_arrivals(0);
  CHECK(came.bytes == 500);
  CHECK(came.packets == 2);
  table.count_other(40);
  CHECK(table.arrived() == 540);
  table.unlist(0);
  CHECK(table.arrived() == 540);
  table.forget_uncharged(0, 1200);  // 300 more arrived than were sent
  CHECK(table[0].midway);
  CHECK(table.known_sent(0) == 1200);
}

TEST_CASE("cadence virtual queue: it drains at what is promised to nobody") {
  const CadenceParams p = Port::make({});
  VirtualQueue queue;
  PortLoad load{.committed_mbps = 40'000, .unaccounted_mbps = 10'000, .senders = 2};
  queue.advance(kNow, p, load);
  queue.charge(kNow, p, 1'000'000);
  queue.advance(kNow + 10'000, p, load);
  CHECK(queue.bytes() == 1'000'000 - bytes_at(50'000, 10'000));
  SECTION("a lone sender's own grant takes none of its room") {
    load.senders = 1;
    queue.advance(kNow + 20'000, p, load);
    CHECK(queue.bytes() == 1'000'000 - bytes_at(50'000 + 90'000, 10'000));
  }
  SECTION("what was granted just now is not here yet, for a round trip") {
    const std::uint64_t before = queue.bytes();
    queue.expect(30'000);
    load.committed_mbps += 30'000;
    queue.advance(kNow + 10'000 + p.rtt_ns / 4, p, load);
    CHECK(queue.bytes() == before - bytes_at(50'000, p.rtt_ns / 4));
    CHECK(queue.before_fresh(kNow + 10'000, p) > 0);
    queue.advance(kNow + 10'000 + 2 * p.rtt_ns, p, load);
    CHECK(queue.before_fresh(kNow + 10'000 + 2 * p.rtt_ns, p) == 0);
  }
  SECTION("a port that idled has no queue but of what was announced since") {
    const std::int64_t at = kNow + 20 * p.rtt_ns;
    queue.measure(at, p, 0);  // the first look: too long ago
    const std::uint64_t before = queue.bytes();
    CHECK(queue.bytes() > 0);
    CHECK_FALSE(queue.may_measure(at + p.rtt_ns / 4, p));
    CHECK(queue.may_measure(at + p.rtt_ns, p));
    SECTION("full: it stays") {
      queue.measure(at + p.rtt_ns, p, bytes_at(p.link_mbps, p.rtt_ns));
      CHECK(queue.bytes() == before);
    }
    SECTION("idle: it goes") {
      queue.measure(at + p.rtt_ns, p, 1000);
      CHECK(queue.bytes() == 0);
    }
  }
}

TEST_CASE("cadence virtual queue: bytes of a rate given up are added to a debt that runs") {
  const CadenceParams p = Port::make({});
  VirtualQueue queue;
  queue.charge(0, p, 1000);
  queue.add_late(p, 5000);
  CHECK(queue.bytes() == 6000);
}

TEST_CASE("cadence start windows: two of four round trips, and nobody counts twice") {
  const CadenceParams p = Port::make({});
  StartWindows starts;
  std::vector<Channel> channels(4);
  starts.advance(kNow, p);
  for (Channel& ch : channels) starts.count(ch);
  starts.count(channels[0]);
  CHECK(starts.budget(p) == p.budget_bytes / 4);
  starts.advance(kNow + 4 * p.rtt_ns, p);
  starts.count(channels[0]);
  CHECK(starts.budget(p) == p.budget_bytes / 4);
  starts.advance(kNow + 8 * p.rtt_ns, p);
  CHECK(starts.budget(p) == p.budget_bytes);
}

TEST_CASE("cadence grant queue: in order, one GRANT of a channel, and paid with credit") {
  const CadenceParams p = Port::make({});
  GrantQueue queue(p);
  Channel a;
  Channel b;
  queue.push_grant(a, 1, 7);
  queue.push({GrantQueue::Due::Kind::alpha, 2, 9});
  queue.push_grant(a, 1);
  queue.push_grant(b, 3);
  queue.forget(3);
  CHECK(queue.pop().value == 7);
  CHECK(queue.pop().peer == 2);
  CHECK(queue.empty());

  const PortLoad full{.committed_mbps = p.link_mbps, .senders = 1};
  CHECK_FALSE(queue.overdrawn());
  queue.earn(kNow, p, full);
  queue.spend(std::size_t{4} * p.max_active + 10, p);
  CHECK(queue.overdrawn());
  CHECK(queue.paid_at(p, full) == kNow + 10 * p.control_ns);
  CHECK(queue.paid_at(p, {}) < kNow + 10 * p.control_ns);  // an idle port can pay for more
}

TEST_CASE(
    "cadence port watch: a full port that marks loses a part of its plan, an idle one gains") {
  const CadenceParams p = Port::make({});
  PortWatch watch;
  VirtualQueue debt;
  const auto scan = [&](std::int64_t at, std::uint32_t mbps, bool marked) {
    const std::int64_t span = 64 * p.rtt_ns;
    return watch.scan(at, {.span = span, .rx = bytes_at(mbps, span), .marked = marked}, p, debt);
  };
  scan(64 * p.rtt_ns, p.link_mbps, false);
  CHECK(watch.eta_cut() == 0);
  CHECK_FALSE(watch.below_full());
  CHECK(scan(2 * 64 * p.rtt_ns, p.link_mbps, true));
  CHECK(watch.eta_cut() == 1);
  CHECK(scan(3 * 64 * p.rtt_ns, p.link_mbps / 2, false));
  CHECK(watch.eta_cut() == 0);
  CHECK_FALSE(watch.was_empty());  // the scan before this one saw a full port
  scan(4 * 64 * p.rtt_ns, p.link_mbps / 2, false);
  CHECK(watch.was_empty());
  watch.count_unaccounted(bytes_at(10'000, 64 * p.rtt_ns));
  scan(5 * 64 * p.rtt_ns, 0, false);
  CHECK(watch.unaccounted_mbps() == Approx(10'000).epsilon(0.01));
  CHECK(watch.unaccounted_bytes() == 0);
}

TEST_CASE("cadence grant planner: shares go up within the capacity, and come down for a newcomer") {
  const CadenceParams p = Port::make({});
  ChannelTable table;
  VirtualQueue debt;
  GrantQueue queue(p);
  GrantPlanner planner;
  const auto plan = [&](std::int64_t now) {
    return planner.plan({p, table, debt, queue, now, 80'000, 0});
  };
  CHECK_FALSE(plan(kNow).lowered);  // nobody is there
  table.grow(2);
  planner.grow(table.size());
  const auto join = [&](std::uint32_t peer) {
    table[peer].final_total = 500'000'000;
    table[peer].tx_cap = p.link_mbps;
    table.list(peer);
    table.activate(kNow, peer);
  };
  join(0);
  CHECK_FALSE(plan(kNow).lowered);
  CHECK(table[0].grant == 80'000);
  CHECK(table.committed() == 80'000);
  join(1);
  const auto outcome = plan(kNow);
  CHECK(outcome.lowered);
  CHECK(outcome.retry_at == kNow + p.rtt_ns);  // the newcomer waits for the confirmation
  CHECK(table[0].grant == 40'000);
  CHECK(table[0].com == 80'000);
  CHECK(table[1].grant == 0);
  table.set_com(table[0], 40'000);  // confirmed
  plan(kNow + p.rtt_ns);
  CHECK(table[1].grant == 40'000);
  CHECK(planner.worst_raise() == 0);
  CHECK(table.check(p) == "");
  CHECK(queue.pop().peer == 0);
  CHECK(queue.pop().peer == 1);
}

}  // namespace paceline::cc::cadence
