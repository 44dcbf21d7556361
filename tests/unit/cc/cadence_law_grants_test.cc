// Lines 28 to 31, 35 to 37, 39 and 40 of docs/algorithms/cadence.md, the receiver's: the built-in's
// allocator sends the GRANTs that the law in C sends. The numbers of cases are the law's lines.
#include <catch2/catch.hpp>

#include "tests/unit/cc/cadence_law_port.h"

namespace paceline::cc {
namespace {

// Rounds of the law are 100 ns behind, each again, and a quarter of T after a round that repeats a
// GRANT; the built-in's scans are not rounds.
std::int64_t law_late(const CadenceLaw& law) { return law.rtt() / 4 + 2000; }

std::uint64_t law_random_left(Random& random, const CadenceLaw& law) {
  return 1 + random.below((random.below(2) == 0 ? 4U : 40U) * std::uint64_t{law.p.bdp_bytes});
}

// Channel `one` has its newest GRANT in force, and another cap.
void law_change_cap(CadenceLawPort& port, std::size_t one, std::uint32_t cap) {
  auto& c = port.channels[one];
  c.request.grant_echo = c.grant.grant_seq;
  c.law_request.grant_echo = c.law_grant.number;
  port.request(one, c.request.demand_bytes, cap);
}

}  // namespace

TEST_CASE("cadence law 28: a grant falls to a share below 1 - h of it") {
  unsigned fell = 0;
  for_law_worlds(
      28, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::size_t count = law_few(random, law);
        CadenceLawPort port = law_sharing(law, count, count);
        for (int i = 0; i < 8; ++i) {
          const std::size_t one = random.below(count);
          const std::uint32_t even = law.p.eta_mbps / static_cast<std::uint32_t>(count);
          law_change_cap(port, one, even / 20 * (10 + law_part(random, 20)));
          port.run(law.rtt() / 2);
          for (std::size_t k = 0; k < count; ++k) {
            const auto& said = port.channels[k].said;
            if (k == one || said.size() < 2 || said.back().at + law.rtt() < port.now) continue;
            fell += said.back().rate < said[said.size() - 2].rate ? 1U : 0U;
          }
          for (std::size_t k = 0; k < count; ++k) port.echo(k);
          port.run(3 * law.rtt());
          REQUIRE(port.difference(law_late(law)) == "");
        }
      },
      kLongLease);
  CHECK(fell > kPortWorlds / 4);
}

TEST_CASE("cadence law 29: every grant falls to its share if somebody has less than half of its") {
  unsigned little = 0;
  for_law_worlds(
      29, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::size_t count = law.p.max_active;
        CadenceLawPort port = law_sharing(law, count, count - 1);
        port.request(count - 1, 8 * std::uint64_t{law.p.bdp_bytes},
                     law_part(random, law.p.eta_mbps / count + 100));
        port.run(law.rtt() / 2);
        REQUIRE(port.difference(law_late(law)) == "");
        const auto& said = port.channels[0].said;
        const std::uint32_t before = said.front().rate, after = said.back().rate;
        little += after < before && after > (1 - law.p.hysteresis) * before ? 1U : 0U;
      },
      kLongLease);
  CHECK(little > kPortWorlds / 10);
}

TEST_CASE("cadence law 30: what is not committed goes to the smallest cap by weight first") {
  unsigned shortage = 0;
  for_law_worlds(
      30, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::size_t count = 2 + random.below(law.p.max_active - 1);
        const std::size_t begin = 1 + random.below(count - 1);
        CadenceLawPort port = law_sharing(law, count, begin);
        for (std::size_t i = begin; i < count; ++i) {
          port.request(i, law_random_left(random, law), law_part(random, law.p.link_mbps));
        }
        port.run(law.rtt() / 4);
        REQUIRE(port.difference(law_late(law)) == "");
        // In two parts, each with a round of its own, before a decrease is repeated.
        const std::size_t half = random.below(begin + 1);
        for (std::size_t part = 0; part < 2; ++part) {
          for (std::size_t i = part * half; i < (part == 0 ? half : begin); ++i) port.echo(i);
          port.run(law.rtt() * 2 / 5);
          REQUIRE(port.difference(law_late(law)) == "");
          std::size_t granted = 0;
          for (std::size_t k = begin; k < count; ++k) granted += port.channels[k].grants > 0;
          shortage += granted > 0 && granted < count - begin ? 1U : 0U;
        }
        REQUIRE(port.committed() <= law.p.eta_mbps);
      },
      kLongLease);
  CHECK(shortage > kPortWorlds / 10);
}

TEST_CASE("cadence law 31: a newcomer begins with half of its share at least, or asks after T") {
  unsigned halves = 0, waited = 0;
  for_law_worlds(
      31, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        CadenceLawPort port(law, 2);
        port.request(0, 8 * std::uint64_t{law.p.bdp_bytes}, law_part(random, law.p.eta_mbps));
        port.run(law.rtt());
        law_change_cap(port, 0, kCapUnlimited);
        port.request(1, 8 * std::uint64_t{law.p.bdp_bytes});
        port.run(law.rtt() / 2);
        REQUIRE(port.difference(law_late(law)) == "");
        (port.channels[1].grants == 0 ? waited : halves) += 1;
        port.echo(0);
        port.run(law.rtt() * 6 / 5);
        REQUIRE(port.difference(law_late(law)) == "");
      },
      kLongLease);
  CHECK(std::min(halves, waited) > kPortWorlds / 10);
}

// Its share is less when the other has less than 16 B left, of which no REQUEST tells.
TEST_CASE("cadence law 31: a newcomer that waits is looked at again after T") {
  unsigned waited = 0;
  for_law_worlds(
      31, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::uint64_t bdp = law.p.bdp_bytes;
        CadenceLawPort port(law, 2);
        port.request(0, 17 * bdp, law.p.eta_mbps / 2 + law_part(random, law.p.eta_mbps / 4));
        port.run(law.rtt());
        law_change_cap(port, 0, kCapUnlimited);
        port.request(1, 2 * bdp);
        port.run(law.rtt() / 2);
        REQUIRE(port.difference(law_late(law)) == "");
        const bool waits = port.channels[1].grants == 0;
        port.arrive(0, 2 * bdp);
        port.run(law.rtt() * 6 / 5);
        REQUIRE(port.difference(law_late(law)) == "");
        waited += waits && port.channels[1].grants > 0;
      },
      kLongLease);
  CHECK(waited > kPortWorlds / 10);
}

TEST_CASE("cadence law 31: who comes back, and waits, is looked at every T") {
  for_law_worlds(
      131, kPortWorlds,
      [&](Random&, const CadenceLaw& law) {
        CadenceLawPort port = law_sharing(law, 2, 1);
        port.request(1, 8 * std::uint64_t{law.p.bdp_bytes});
        port.run(law.rtt());
        port.give_up(1);
        port.run(10 * law.rtt());
        port.request(0, 8 * std::uint64_t{law.p.bdp_bytes});
        port.request(1, 8 * std::uint64_t{law.p.bdp_bytes});  // the other has not obeyed yet
        const unsigned rounds = port.law_rounds;
        port.run(4 * law.rtt());
        REQUIRE(port.law_rounds - rounds <= 32);  // every T / 4 shares, and as many GRANTs again
      },
      10);
}

TEST_CASE("cadence law 35: a decrease is capacity when its number is echoed, or nothing is left") {
  unsigned raised = 0;
  for_law_worlds(
      35, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::size_t count = 2 + random.below(law.p.max_active - 1);
        const std::size_t newcomer = count - 1;
        CadenceLawPort port = law_sharing(law, count, newcomer);
        port.request(newcomer, 8 * std::uint64_t{law.p.bdp_bytes});
        // Before the GRANTs of the decrease arrive, what senders say has the number before.
        for (std::size_t i = 0; i < newcomer; ++i) {
          auto& c = port.channels[i];
          c.request.grant_echo = c.grant.grant_seq;
          c.law_request.grant_echo = c.law_grant.number;
        }
        port.run(law.rtt() / 8);
        for (std::size_t i = 0; i < newcomer; ++i) {
          port.request(i, port.channels[i].request.demand_bytes - 1);
        }
        port.run(law.rtt() / 3);
        REQUIRE(port.difference(law_late(law)) == "");
        REQUIRE(port.channels[newcomer].grants == 0);
        REQUIRE(port.granted() < port.committed());
        const std::size_t half = random.below(newcomer + 1);
        for (std::size_t part = 0; part < 2; ++part) {
          for (std::size_t i = part * half; i < (part == 0 ? half : newcomer); ++i) {
            if (random.below(4) == 0) {
              port.give_up(i);
            } else {
              port.echo(i);
            }
          }
          port.run(law.rtt() * 2 / 5);
          REQUIRE(port.difference(law_late(law)) == "");
        }
        port.run(3 * law.rtt());
        REQUIRE(port.difference(law_late(law)) == "");
        REQUIRE(port.channels[newcomer].grant.rate_mbps > 0);
        for (const auto& c : port.channels) raised += c.said.size() > 2 && c.said.back().rate > 0;
      },
      kLongLease);
  CHECK(raised > kPortWorlds / 10);
}

TEST_CASE("cadence law 36: the limit is what is known to be sent, and what a lease allows") {
  for_law_worlds(36, kPortWorlds, [](Random& random, const CadenceLaw& law) {
    const std::size_t count = law_few(random, law);
    CadenceLawPort port(law, count);
    for (std::size_t i = 0; i < count; ++i) {
      port.send(i, random.below(1'000'000));
      port.request(i, 8 * std::uint64_t{law.p.bdp_bytes}, law_part(random, law.p.link_mbps),
                   random.below(2) * random.below(law.p.bdp_bytes));
    }
    port.run(200);
    REQUIRE(port.difference(law_late(law)) == "");
    // More than was announced, of one that is heard of only by that.
    const std::size_t one = random.below(count);
    const auto& c = port.channels[one];
    const std::int64_t half = std::int64_t{c.grant.lease_us} * 500;
    port.run(half / 2);
    port.arrive(one, law.p.bdp_bytes + random.below(law.p.bdp_bytes));
    port.run(half / 2 + 5 * law.rtt() / 2);
    REQUIRE(c.grants == 2);
    REQUIRE(c.law_grants == 2);
    const std::uint64_t slack = c.grant.lease_us / 8 + c.grant.rate_mbps / 8 + 100;
    REQUIRE(within(c.grant.limit_total, c.law_grant.limit_total, slack));
    REQUIRE(c.grant.limit_total > c.said[0].limit);
  });
}

TEST_CASE("cadence law 37: a lease is as long as many channels or a low rate need") {
  unsigned low = 0, many = 0;
  for_law_worlds(37, kPortWorlds, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = 1 + random.below(law.p.max_active);
    CadenceLawPort port(law, count);
    for (std::size_t i = 0; i < count; ++i) {
      port.request(i, 8 * std::uint64_t{law.p.bdp_bytes},
                   law_part(random, law.p.link_mbps / (random.below(2) == 0 ? 1 : 200)));
    }
    port.run(200);
    REQUIRE(port.difference(law_late(law)) == "");
    const std::int64_t least = std::max(law.p.lease_min_ns, 8 * law.rtt()) / 1000 + 1;
    const auto [a, b] = std::minmax_element(
        port.channels.begin(), port.channels.end(),
        [](const auto& x, const auto& y) { return x.grant.lease_us < y.grant.lease_us; });
    many += a->grant.lease_us > least ? 1U : 0U;
    low += b->grant.lease_us > a->grant.lease_us ? 1U : 0U;
  });
  CHECK(std::min(low, many) > kPortWorlds / 10);
}

TEST_CASE("cadence law 39: who is silent loses its grant after two leases; com follows by halves") {
  unsigned steps = 0, law_steps = 0;
  for_law_worlds(
      39, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        const std::size_t count = 2 + random.below(law.p.max_active - 1);
        CadenceLawPort port = law_sharing(law, count, 1);
        const std::int64_t lease = std::int64_t{port.channels[0].grant.lease_us} * 1000;
        const auto percent = [&](std::uint64_t from, std::uint64_t to) {
          const auto part = static_cast<std::int64_t>(from + random.below(to - from));
          return port.channels[0].said[0].at + lease / 100 * part - port.now;
        };
        port.run(percent(5, 30));
        port.request(0, port.channels[0].request.demand_bytes - 1);  // its last
        // Others come before or after its GRANT is repeated.
        port.run(random.below(2) == 0 ? percent(35, 45) : percent(55, 85));
        for (int i = 0; i < 24; ++i) {
          for (std::size_t k = 1; k < count; ++k) {
            if (i == 0) port.request(k, 8 * std::uint64_t{law.p.bdp_bytes});
            if (i > 0 && port.channels[k].grants > 0) port.echo(k);
          }
          port.run(lease / 6);
        }
        // The built-in looks every 2 T: when a GRANT is repeated, when a lease is over, and whether
        // com has fallen, by two halves together. Of what is left then, some get more.
        const std::int64_t late = 8 * law.rtt();
        REQUIRE(port.channels[0].difference(port.now, late) == "");
        REQUIRE(port.channels[0].grant.revoke);
        for (std::size_t k = 1; k < count; ++k) {
          const auto& c = port.channels[k];
          REQUIRE(within_ns(c.said.front().at, c.law_said.front().at, late));
          REQUIRE(c.agree(1 + static_cast<std::uint64_t>(law.p.hysteresis * c.grant.rate_mbps)));
        }
        const auto& last = port.channels.back();
        steps += last.said.front().at > port.channels[1].said.front().at;
        law_steps += last.law_said.front().at > port.channels[1].law_said.front().at;
      },
      4000);
  CHECK(std::min(steps, law_steps) > kPortWorlds / 10);
}

TEST_CASE("cadence law 40: beyond a_max channels wait, and half of the active set makes room") {
  for_law_worlds(40, kPortWorlds, [](Random& random, const CadenceLaw& law) {
    const std::size_t seats = law.p.max_active, count = seats + 1 + random.below(seats);
    CadenceLawPort port(law, count);
    for (std::size_t i = 0; i < count; ++i) port.request(i, 8 * std::uint64_t{law.p.bdp_bytes});
    const auto require_seats_taken = [&] {
      const auto held = std::count_if(port.channels.begin(), port.channels.end(),
                                      [](const auto& c) { return c.grant.hold; });
      REQUIRE(held == static_cast<std::int64_t>(count - seats));
    };
    const auto echo_all = [&] {
      for (std::size_t k = 0; k < count; ++k) port.echo(k);
    };
    const std::int64_t turn_end = port.now + law.p.rotation_ns;
    while (port.now + 4 * law.rtt() < turn_end) {
      port.run(2 * law.rtt());
      REQUIRE(port.difference(law_late(law)) == "");
      require_seats_taken();
      echo_all();
    }
    port.run(turn_end + 2 * law.rtt() - port.now);
    REQUIRE(port.difference(law_late(law)) == "");
    echo_all();
    port.run(2 * law.rtt());
    REQUIRE(port.difference(law_late(law)) == "");
    require_seats_taken();
    // The channels that waited longest took the places of active ones.
    const std::size_t turns = std::min(count - seats, std::max<std::size_t>(1, seats / 2));
    for (std::size_t i = 0; i < turns; ++i) REQUIRE(port.channels[seats + i].grant.rate_mbps > 0);
  });
}

}  // namespace paceline::cc
