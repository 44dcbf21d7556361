// The pull pacer, rule by rule, with hand-written REQUESTs.
#include "cc/eqds/receiver.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/param_block.h"

namespace paceline::cc {
namespace {

constexpr std::int64_t kRtt = 4680;
constexpr std::uint64_t kBdp = 58'500;  // 100 Gb/s x 4680 ns

EqdsParams eqds_params(const std::map<std::string, double>& changes = {}) {
  std::vector<double> values;
  for (const ParamSpec& spec : eqds_info().params) {
    const auto it = changes.find(std::string(spec.name));
    values.push_back(it == changes.end() ? spec.default_value : it->second);
  }
  return make_eqds_params(values, PortFacts{rate_from_gbps(100), 4096, 4170, kRtt});
}

struct Pacer {
  explicit Pacer(const std::map<std::string, double>& changes = {})
      : p(eqds_params(changes)), r(p) {}

  struct Sender {
    RequestMessage request{};
    ChannelCounters* counters = nullptr;
    GrantMessage grant{};
    unsigned grants = 0;
    std::vector<std::int64_t> at{};
  };

  void request(std::uint32_t id, std::uint64_t demand, std::uint64_t start = 0,
               std::uint32_t cap = kCapUnlimited) {
    Sender& s = senders[id];
    ++s.request.req_seq;
    s.request.channel = static_cast<std::uint16_t>(id);
    s.request.demand_bytes = demand;
    s.request.unscheduled_total += start;
    s.request.tx_cap_mbps = cap;
    s.request.grant_echo = s.grant.grant_seq;
    s.counters = r.on_request(Nanos{now}, id, s.request);
  }
  // Everything due up to then.
  void run_to(std::int64_t end) {
    for (;;) {
      const std::int64_t wake = r.next_wake().count;
      if (wake > end) break;
      now = std::max(now, wake);
      std::array<ReceiverOutput, 4> out;
      std::size_t n;
      do {
        n = r.poll(Nanos{now}, out);
        for (std::size_t i = 0; i < n; ++i) {
          Sender& s = senders[out[i].peer];
          s.grant = out[i].grant;
          ++s.grants;
          s.at.push_back(now);
          if (lose == s.grants) continue;
          if (uses_at_once && s.grant.limit_total > s.request.sent_total) {
            const std::uint64_t more = s.grant.limit_total - s.request.sent_total;
            s.request.sent_total += more;
            s.counters->rx_bytes += more;
            s.counters->rx_packets += static_cast<std::uint32_t>(more / 4170 + 1);
          }
        }
      } while (n == out.size());
      REQUIRE(r.check_invariants(Nanos{now}) == "");
    }
    now = std::max(now, end);
  }

  EqdsParams p;
  EqdsReceiver r;
  std::int64_t now = 1'000'000;
  std::map<std::uint32_t, Sender> senders;
  bool uses_at_once = true;
  unsigned lose = 0;
};

TEST_CASE("eqds pacer: credit comes at the pace, a pull at a time", "[cc][eqds]") {
  Pacer pacer;
  pacer.request(1, 10'000'000);
  const std::int64_t from = pacer.now;
  pacer.run_to(from + 100'000);
  // 4 packets each, at 99 Gb/s; the first at once.
  const double per_pull = 4 * 4170 * 8 / 99.0;
  CHECK(pacer.senders[1].grants == static_cast<unsigned>(100'000 / per_pull) + 1);
  CHECK(pacer.senders[1].grant.credit);
  CHECK(pacer.senders[1].grant.limit_total == pacer.senders[1].grants * 4 * 4170);
}

TEST_CASE("eqds pacer: an idle one gathers nothing, demand is all that is given", "[cc][eqds]") {
  Pacer pacer({{"idle_credit", 0}});
  pacer.now = 50'000'000;
  pacer.request(1, 40'000);
  pacer.run_to(pacer.now);
  CHECK(pacer.senders[1].grants == 1);
  pacer.run_to(pacer.now + 100'000);
  CHECK(pacer.senders[1].grant.limit_total == 40'000);
  CHECK(pacer.senders[1].grants == 3);
  CHECK(pacer.r.snapshot().active == 0);
  CHECK(pacer.r.next_wake() == kNeverNanos);
}

TEST_CASE("eqds pacer: turns go round", "[cc][eqds]") {
  Pacer pacer;
  for (std::uint32_t id = 1; id <= 5; ++id) pacer.request(id, 10'000'000);
  pacer.run_to(pacer.now + 50 * 1348);
  for (std::uint32_t id = 1; id <= 5; ++id) {
    CHECK(pacer.senders[id].grants >= 9);
    CHECK(pacer.senders[id].grants <= 12);
  }
  CHECK(pacer.senders[3].grant.active_senders == 5);
}

TEST_CASE("eqds pacer: who does not use its credit is given no more of it", "[cc][eqds]") {
  Pacer pacer;
  pacer.uses_at_once = false;
  pacer.request(1, 10'000'000);
  pacer.request(2, 10'000'000, 0, 50'000);  // half its uplink is for others
  pacer.run_to(pacer.now + 100'000);
  // 1.5 paths, times the share of the uplink; the last pull may not lift it above.
  CHECK(pacer.senders[1].grant.limit_total <= kBdp * 3 / 2);
  CHECK(pacer.senders[1].grant.limit_total > kBdp * 3 / 2 - 4 * 4170);
  CHECK(pacer.senders[2].grant.limit_total <= kBdp * 3 / 4);
  CHECK(pacer.senders[2].grant.limit_total > kBdp * 3 / 4 - 4 * 4170);
  // Something arrives: as much may be pulled again.
  const std::uint64_t before = pacer.senders[1].grant.limit_total;
  pacer.senders[1].counters->rx_bytes += 8 * 4170;
  pacer.run_to(pacer.now + 20'000);
  CHECK(pacer.senders[1].grant.limit_total == before + 8 * 4170);
  // One that is silent for long leaves the ring, or the port would never rest.
  pacer.run_to(pacer.now + 100 * kRtt);
  CHECK(pacer.r.snapshot().active == 0);
  CHECK(pacer.r.next_wake() == kNeverNanos);
}

TEST_CASE("eqds pacer: speculative bytes pass before anything is pulled", "[cc][eqds]") {
  for (const bool charged : {true, false}) {
    Pacer pacer({{"charge_start", charged ? 1 : 0}});
    const std::int64_t from = pacer.now;
    // Eight senders of 1.5 paths each: 12 round trips of the port.
    for (std::uint32_t id = 1; id <= 8; ++id) pacer.request(id, 1'000'000, 87'750);
    pacer.run_to(from + 30'000);
    std::uint64_t pulled = 0;
    for (auto& [id, sender] : pacer.senders) {
      if (sender.grants != 0) pulled += sender.grant.limit_total - 87'750;
    }
    if (charged) {
      CHECK(pulled == 0);
      // What is pulled a round trip before the last of them has passed comes behind it.
      CHECK(pacer.r.snapshot().next_pull_ns ==
            Approx(from + 8 * 87'750 * 8 / 100 - kRtt).margin(9));
      // All of them wait, and know.
      CHECK(pacer.senders[5].grants == 1);
      CHECK(pacer.senders[5].grant.hold);
      CHECK(pacer.senders[5].grant.lease_us > 30);
    } else {
      CHECK(pulled > 300'000);
    }
  }
}

TEST_CASE("eqds pacer: what was trimmed of them has not passed", "[cc][eqds]") {
  Pacer pacer;
  const std::int64_t from = pacer.now;
  for (std::uint32_t id = 1; id <= 8; ++id) pacer.request(id, 1'000'000, 87'750);
  const std::int64_t before = pacer.r.snapshot().next_pull_ns;
  pacer.r.on_trimmed_bytes(4 * 87'750);
  pacer.run_to(from + 2'000);
  CHECK(pacer.r.snapshot().next_pull_ns == before - 4 * 87'750 * 8 / 100);
}

TEST_CASE("eqds pacer: a sender that exaggerates its start does not stop the port", "[cc][eqds]") {
  Pacer pacer;
  pacer.request(1, 1'000'000, std::uint64_t{1} << 40);
  CHECK(pacer.r.snapshot().next_pull_ns < pacer.now + 5 * kRtt);
}

TEST_CASE("eqds pacer: other traffic is taken off, up to a half", "[cc][eqds]") {
  for (const double share : {0.2, 0.9}) {
    Pacer pacer;
    pacer.request(1, 100'000'000);
    const std::int64_t end = pacer.now + 200'000;
    while (pacer.now < end) {
      pacer.r.on_unaccounted_bytes(static_cast<std::uint64_t>(share * 1000 * 12.5));
      pacer.run_to(pacer.now + 1000);
    }
    const double pulled = static_cast<double>(pacer.senders[1].grant.limit_total) * 8 / 200'000;
    CHECK(pulled == Approx(99 * (1 - std::min(share, 0.5))).epsilon(0.03));
  }
}

TEST_CASE("eqds pacer: a lost GRANT loses no credit", "[cc][eqds]") {
  Pacer pacer({{"idle_credit", 0}});
  pacer.uses_at_once = false;
  pacer.request(1, 4 * 4170);
  pacer.run_to(pacer.now + 1000);
  REQUIRE(pacer.senders[1].grants == 1);
  const std::uint64_t given = pacer.senders[1].grant.limit_total;
  pacer.senders[1].grant = {};  // it never came
  pacer.now += 2 * kRtt;
  pacer.request(1, 4 * 4170);
  pacer.run_to(pacer.now + 1000);
  CHECK(pacer.senders[1].grants == 2);
  CHECK(pacer.senders[1].grant.limit_total == given);
  // One that knows its credit is told nothing.
  pacer.now += 2 * kRtt;
  pacer.request(1, 4 * 4170);
  pacer.run_to(pacer.now + 1000);
  CHECK(pacer.senders[1].grants == 2);
}

TEST_CASE("eqds pacer: idle senders get a path's bytes between them", "[cc][eqds]") {
  Pacer pacer;
  pacer.uses_at_once = false;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    pacer.request(id, 4170, 4170 + 32);
    pacer.senders[id].counters->rx_bytes += 4170;
  }
  pacer.run_to(pacer.now + 50'000);
  CHECK(pacer.r.snapshot().idle_bytes <= kBdp);
  CHECK(pacer.r.snapshot().idle_bytes > kBdp - 4170);
  CHECK(pacer.r.next_wake() == kNeverNanos);
  // Used: what is left is less, and it may have some again.
  pacer.senders[1].request.sent_total += 40'000;
  pacer.request(1, 0);
  CHECK(pacer.r.snapshot().idle_bytes < kBdp / 2);
}

TEST_CASE("eqds pacer: marks and trims of pulled data slow it down, their end lets it rise",
          "[cc][eqds]") {
  for (const bool trims : {false, true}) {
    Pacer pacer;
    pacer.request(1, 1'000'000'000);
    auto& sender = pacer.senders[1];
    const auto go = [&](std::int64_t until, double bad) {
      while (pacer.now < until) {
        const std::uint32_t packets = sender.counters->rx_packets;
        pacer.run_to(pacer.now + 1000);
        const double more = (sender.counters->rx_packets - packets) * bad;
        if (trims) {
          sender.counters->trimmed_bytes += static_cast<std::uint64_t>(more * 4170);
        } else {
          sender.counters->ce_packets += static_cast<std::uint32_t>(more + 0.5);
        }
      }
    };
    go(pacer.now + 10 * kRtt, 0);
    CHECK(pacer.r.snapshot().pace == 1);
    go(pacer.now + 60 * kRtt, 1);
    CHECK(pacer.r.snapshot().pace == Approx(0.1));  // least_pull
    go(pacer.now + 40 * kRtt, 0);
    CHECK(pacer.r.snapshot().pace == 1);
  }
}

TEST_CASE("eqds pacer: old REQUESTs, restarts, closed and forgotten channels", "[cc][eqds]") {
  Pacer pacer;
  pacer.request(1, 1'000'000);
  pacer.run_to(pacer.now + 20'000);
  const unsigned grants = pacer.senders[1].grants;
  CHECK(grants > 0);
  // Overtaken by a newer one: nothing changes.
  pacer.senders[1].request.req_seq -= 2;
  pacer.request(1, 77'000'000);
  CHECK(pacer.r.snapshot().active == 1);
  pacer.senders[1].request.req_seq += 1;
  // The sender has restarted from 0.
  pacer.senders[1].request.sent_total = 0;
  pacer.request(1, 8 * 4170);
  pacer.run_to(pacer.now + 20'000);
  CHECK(pacer.senders[1].grant.limit_total <= 8 * 4170 + kBdp);
  pacer.senders[1].request.close = true;
  pacer.request(1, 1'000'000);
  CHECK(pacer.r.snapshot().active == 0);
  CHECK(pacer.r.snapshot().idle_bytes == 0);
  pacer.senders[1].request.close = false;
  pacer.request(1, 1'000'000);
  CHECK(pacer.r.snapshot().active == 1);
  pacer.r.forget(Nanos{pacer.now}, 1);
  CHECK(pacer.r.snapshot().active == 0);
  CHECK(pacer.r.check_invariants(Nanos{pacer.now}) == "");
  pacer.run_to(pacer.now + 20'000);
}

TEST_CASE("eqds pacer: other values hold from the next pull on", "[cc][eqds]") {
  Pacer pacer;
  pacer.request(1, 100'000'000);
  pacer.run_to(pacer.now + 50'000);
  ParamBlock block;
  block.id = AlgorithmId::eqds;
  block.put(eqds_params({{"pull_rate", 0.5}}));
  pacer.r.set_params(block);
  const unsigned before = pacer.senders[1].grants;
  pacer.run_to(pacer.now + 100'000);
  CHECK(pacer.senders[1].grants - before == Approx(100'000 / (4 * 4170 * 8 / 50.0)).margin(2));
}

}  // namespace
}  // namespace paceline::cc
