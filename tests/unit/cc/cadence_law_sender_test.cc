// The sender's half of docs/algorithms/cadence.md, line by line: the built-in answers as its law in
// C does. The numbers of cases are the law's lines.
#include <catch2/catch.hpp>

#include "tests/unit/cc/cadence_law_context.h"

namespace paceline::cc {
namespace {

using LawGrant = CadenceLawContext::Grant;
constexpr std::uint64_t kLawWorlds = 300;
constexpr std::uint64_t kLawMuch = 1'000'000'000;

std::uint32_t law_rate(Random& random, const CadenceLaw& law) {
  return static_cast<std::uint32_t>(2 + random.below(law.p.eta_mbps - 2));
}

// A channel with much to send and a grant, whose starts have arrived.
CadenceLawContext law_granted(Random& random, const CadenceLaw& law, LawGrant g) {
  CadenceLawContext s(law, 64);
  s.post(kLawMuch);
  while (s.ceiling() >= s.sent + law.p.packet_bytes) s.send(law.p.mtu_bytes);
  s.acknowledge(s.inflight);
  s.pass(law.rtt());
  if (g.rate_mbps == 0 && !g.hold) g.rate_mbps = law_rate(random, law);
  s.grant(1, g);
  return s;
}

}  // namespace

TEST_CASE(
    "cadence law 1: rate is the least of G, S, P; what was sent is within L, what is under "
    "way within W") {
  unsigned by_uplink = 0, by_path = 0;
  for_law_worlds(1, kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {.lease_us = 60'000});
    for (std::uint16_t number = 2; number < 20; ++number) {
      const std::uint32_t rate = law_rate(random, law), share = law_rate(random, law);
      s.grant(number, {.rate_mbps = rate, .lease_us = 60'000, .beyond = random.below(3'000'000)});
      s.share(share, share, false);
      if (random.below(2) == 0) s.lose(Signal::timeout, 0);
      s.send(random.below(20) * law.p.mtu_bytes);
      s.pass(static_cast<std::int64_t>(random.below(10'000)));
      by_uplink += s.rate_mbps() == share ? 1U : 0U;
      by_path += s.rate_mbps() < std::min(rate, share) ? 1U : 0U;
      REQUIRE(s.rate_mbps() <= std::min(rate, share));
    }
    REQUIRE(s.difference() == "");
  });
  CHECK(by_uplink > kLawWorlds);
  CHECK(by_path > kLawWorlds);
}

TEST_CASE("cadence law 2: starts of new work count what has started and is not acknowledged") {
  for_law_worlds(2, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s(law, 1 + static_cast<std::uint32_t>(random.below(2)));
    for (int i = 0; i < 4; ++i) {
      s.post(1 + random.below(law.p.bdp_bytes / 2));
      s.send(random.below(3) == 0 ? s.backlog : random.below(s.ceiling() - s.sent + 1) / 2);
      s.pass(100);
    }
    s.acknowledge(s.inflight);
    s.post(1 + random.below(law.p.bdp_bytes));
    // The built-in's 32 bytes decide whether that is all a start.
    if (within(s.sent + law.wire(s.backlog), s.ceiling(), 64)) return;
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 3: a small message starts at once, of a larger one little") {
  unsigned whole = 0, some = 0, none = 0;
  for_law_worlds(3, 4 * kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    const auto peers = static_cast<std::uint32_t>(random.below(12));
    CadenceLawContext s(law, peers);
    const std::uint64_t bytes = 1 + random.below(4 * std::uint64_t{law.p.small_bytes});
    const std::uint64_t x = law.wire(bytes) + 32;
    // The built-in adds 32 bytes to x: a packet more or less where that decides.
    const std::uint64_t small = law.p.small_bytes;
    const std::uint64_t few = small * small / x * small / x % law.p.packet_bytes;
    if (within(x, small, 64) || few < 100 || few + 200 > law.p.packet_bytes) return;
    s.post(bytes, random.below(4) == 0 ? 1 : 0);  // the only sender, or not known
    REQUIRE(s.difference() == "");
    REQUIRE(within(s.asked(), s.law_asked(), 32));
    whole += s.asked() >= x ? 1U : 0U;
    some += s.asked() > 32 && s.asked() < x ? 1U : 0U;
    none += s.asked() <= 32 ? 1U : 0U;
  });
  CHECK(std::min({whole, some, none}) > kLawWorlds / 10);
}

TEST_CASE("cadence law 4: a known degree divides a start") {
  for_law_worlds(4, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    const std::uint64_t most = law.p.bdp_bytes / law.p.packet_bytes;
    const auto degree = static_cast<std::uint16_t>(2 + random.below(most + 4));
    CadenceLawContext s(law, 2);
    s.post(law.p.bdp_bytes / 2 + random.below(law.p.bdp_bytes), degree);
    REQUIRE(s.difference() == "");
    REQUIRE(s.asked() <= std::max(law.p.bdp_bytes / degree, law.p.packet_bytes));
  });
}

TEST_CASE("cadence law 5: a start leaves at once, at C or a degree's part of it, below P") {
  for_law_worlds(5, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    const Handover before{.rate = rate_from_mbps(law_rate(random, law))};
    CadenceLawContext s(law, 2, random.below(2) == 0 ? &before : nullptr);
    const auto degree = static_cast<std::uint16_t>(random.below(2) * (2 + random.below(2000)));
    s.share(law_rate(random, law), law_rate(random, law), false);
    const std::uint64_t divided =
        std::max(law.p.bdp_bytes / std::max<std::uint32_t>(degree, 1), law.p.packet_bytes);
    if (within(law.wire(law.p.small_bytes / 2), divided, 64)) return;  // the built-in's 32 bytes
    s.post(law.p.small_bytes / 2, degree);
    REQUIRE(s.ceiling() > s.sent);
    REQUIRE(s.window() == kUnlimited);
    REQUIRE(s.difference() == "");
    s.post(law.p.small_bytes / 4);  // beside what has not been sent of the first one
    s.send(s.backlog / 2);
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 6: what cannot start is requested") {
  unsigned requested = 0;
  for_law_worlds(6, kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    CadenceLawContext s(law, static_cast<std::uint32_t>(random.below(9)));
    s.start_room = static_cast<std::uint32_t>(random.below(2) * 2000);
    s.post(2000 + random.below(2 * std::uint64_t{law.p.bdp_bytes}));
    requested += s.requests();
    s.send(std::min(s.backlog / 2, (s.ceiling() - s.sent) / 2));
    s.post(100'000);
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
    REQUIRE(s.requests() > 0);
  });
  CHECK(requested > kLawWorlds / 2);
}

TEST_CASE("cadence law 7, 8: a short message behind others may send beside the grant") {
  unsigned helped = 0, refused = 0;
  for_law_worlds(7, kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {.lease_us = 60'000});
    s.acknowledge(s.inflight);
    for (int i = 0; i < 8; ++i) {
      s.pass(static_cast<std::int64_t>(random.below(10)) * law.rtt());
      const unsigned before = s.requests();
      s.post(1 + random.below(2 * std::uint64_t{law.p.small_bytes}));
      (s.requests() > before ? helped : refused) += 1;
      s.send(random.below(4) * law.p.mtu_bytes);
    }
    REQUIRE(s.difference() == "");
  });
  CHECK(std::min(helped, refused) > kLawWorlds);
}

TEST_CASE("cadence law 9: neither an older GRANT nor one that a give-up has made void") {
  for_law_worlds(9, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {});
    auto number = static_cast<std::uint16_t>(2 + random.below(30'000));
    s.grant(number, {.rate_mbps = law_rate(random, law)});
    s.grant(static_cast<std::uint16_t>(number - 1 - random.below(number / 2U)),
            {.rate_mbps = law_rate(random, law)});
    REQUIRE(s.difference() == "");
    const std::uint32_t stamp = s.request().timestamp_ns;
    s.pass(1000);
    s.send(s.backlog);
    s.acknowledge(s.inflight);
    s.pass(static_cast<std::int64_t>(random.below(3000)));
    s.post(kLawMuch);
    s.pass(100);
    s.grant(++number, {.rate_mbps = law_rate(random, law)}, stamp);
    REQUIRE(s.request().grant_echo == 0);
    s.grant(++number, {.rate_mbps = law_rate(random, law)});
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 10: a GRANT sets G, after its delay, and L and the lease at once") {
  for_law_worlds(10, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    const auto delay = static_cast<std::uint32_t>(1 + random.below(100));
    CadenceLawContext s = law_granted(random, law, {.lease_us = 600, .delay_us = delay});
    REQUIRE(s.rate_mbps() == 0);
    s.send(law.p.mtu_bytes);
    s.pass(delay * 1000 - 1);
    REQUIRE(s.rate_mbps() == 0);
    s.pass(1);
    REQUIRE(s.rate_mbps() > 0);
    s.grant(2, {.rate_mbps = law_rate(random, law),
                .lease_us = 500,
                .delay_us = delay,
                .beyond = random.below(1'000'000)});
    s.pass(delay * 1000);
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 11: a lower G is confirmed at once, a higher one is not") {
  for_law_worlds(11, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {});
    for (std::uint16_t number = 2; number < 12; ++number) {
      const std::uint64_t was = s.rate_mbps();
      const unsigned requests = s.requests();
      const std::uint32_t rate = law_rate(random, law);
      s.grant(number, {.rate_mbps = rate});
      REQUIRE((s.requests() > requests) == (rate < was));
      if (rate < was) REQUIRE(s.request().grant_echo == number);
      REQUIRE(s.difference() == "");
    }
    s.grant(12, {.hold = true});
    REQUIRE(s.request().grant_echo == 12);
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 12: at the end of the backlog G is given up, until that is confirmed") {
  for_law_worlds(12, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {});
    s.pass(static_cast<std::int64_t>(random.below(50'000)));
    s.send(s.backlog);
    REQUIRE((s.request().demand_bytes == 0 && s.request().grant_echo == 0));
    const unsigned requests = s.requests();
    s.pass(3 * law.rtt());
    REQUIRE(s.requests() > requests);
    const unsigned repeated = s.requests();
    s.grant(2, {});
    s.acknowledge(s.inflight);
    s.pass(100 * law.rtt());
    REQUIRE(s.requests() == repeated);
    s.post(1 + random.below(kLawMuch));
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 12: a give-up that nobody confirms is said probe_limit times again") {
  for_law_worlds(112, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {});
    s.send(s.backlog);
    const unsigned requests = s.requests();
    s.pass(30'000'000);
    REQUIRE(s.requests() == requests + law.p.probe_limit);
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 13: a REQUEST is repeated at half the lease, else after 2 T, then rarely") {
  for_law_worlds(13, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s(law, 64);
    s.post(kLawMuch);
    s.pass(10 * law.rtt() + 10);
    if (law.p.probe_limit > 6) REQUIRE(s.requests() == 6);
    s.pass(8'000'000 - 10 * law.rtt());  // at 1 ms in the end
    const unsigned requests = s.requests();
    s.grant(1, {.rate_mbps = law_rate(random, law), .lease_us = 2000});
    const unsigned granted = s.requests();
    s.pass(999'000);
    REQUIRE(s.requests() == granted);
    s.pass(2000);
    REQUIRE(s.requests() == granted + 1);
    REQUIRE(requests > 6);
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 14: a lease that is over: REQUEST, and G is halved every T to R_fb") {
  for_law_worlds(14, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    const auto lease = static_cast<std::uint32_t>(80 + 2 * random.below(200));
    CadenceLawContext s = law_granted(random, law, {.lease_us = lease});
    s.pass(lease * 1000 - 1);
    const std::uint64_t rate = s.rate_mbps();
    const unsigned requests = s.requests();
    s.pass(1);
    REQUIRE(s.requests() == requests + 1);
    REQUIRE(s.rate_mbps() <= std::max<std::uint64_t>(rate / 2, law.p.fallback_mbps));
    for (int i = 0; i < 5; ++i) {
      s.pass(law.rtt() / 2);
      REQUIRE(s.difference() == "");
    }
    s.post(1);  // nothing starts beside a grant that is over
    s.pass(law.rtt());
    s.grant(2, {.rate_mbps = law_rate(random, law)});
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 15: without answers the fallback algorithm decides, until a GRANT comes") {
  for_law_worlds(15, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = random.below(2) == 0 ? law_granted(random, law, {.lease_us = 80})
                                               : CadenceLawContext(law, 64);
    if (s.backlog == 0) s.post(kLawMuch);
    for (int i = 0; i < 200 && !s.fallback(); ++i) s.pass(100'000);
    REQUIRE(s.fallback());
    REQUIRE(s.difference() == "");
    s.pass(20 * law.rtt());
    s.pass(2'000'000);
    REQUIRE(s.difference() == "");
    s.grant(2, {.rate_mbps = law_rate(random, law)});
    REQUIRE(!s.fallback());
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 15: in the fallback new work is asked for, too") {
  for_law_worlds(115, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s(law, 64);
    s.post(kLawMuch);
    for (int i = 0; i < 200 && !s.fallback(); ++i) s.pass(100'000);
    REQUIRE(s.fallback());
    s.send(s.backlog);
    s.acknowledge(s.inflight);
    s.grant(1, {}, static_cast<std::uint32_t>(s.now));
    const unsigned requests = s.requests(), law_requests = s.law_requests();
    s.post(1 + random.below(kLawMuch));
    s.pass(20'000'000);
    // The law says at once that there is work, and that there is none; the built-in at its time.
    REQUIRE(s.requests() > requests);
    REQUIRE(s.law_requests() > law_requests);
  });
}

TEST_CASE("cadence law 16, 17, 18: a long round trip lowers P, once for what was sent before") {
  unsigned lowered = 0;
  for_law_worlds(16, kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {.lease_us = 60'000});
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t rate = s.rate_mbps();
      const auto most = static_cast<std::uint64_t>(3 * (law.p.path_target_ns + law.rtt()));
      s.acknowledge(1, static_cast<std::uint32_t>(1 + random.below(most)));
      lowered += s.rate_mbps() < rate ? 1U : 0U;
      s.pass(static_cast<std::int64_t>(random.below(most)));
      REQUIRE(s.difference() == "");
    }
  });
  CHECK(lowered > kLawWorlds);
}

TEST_CASE("cadence law 16, 17, 18: NAKs and timeouts lower P, once per T") {
  for_law_worlds(18, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s =
        law_granted(random, law, {.rate_mbps = law.p.eta_mbps, .lease_us = 60'000});
    s.send(100 * std::uint64_t{law.p.mtu_bytes});
    for (int i = 0; i < 20; ++i) {
      s.lose(random.below(4) == 0 ? Signal::timeout : Signal::nack, law.p.mtu_bytes);
      s.pass(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(law.rtt()) * 2)));
      REQUIRE(s.difference() == "");
    }
    REQUIRE(s.rate_mbps() < law.p.eta_mbps);
  });
}

TEST_CASE("cadence law 2: what is lost after the grant was given up is new work") {
  for_law_worlds(118, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s(law, 64);
    s.post(1 + random.below(law.p.small_bytes / 2));
    s.send(s.backlog);
    s.lose(random.below(2) == 0 ? Signal::timeout : Signal::nack, law.p.mtu_bytes);
    s.pass(law.rtt());
    REQUIRE(s.difference() == "");
    s.send(s.backlog);
    s.pass(20 * law.rtt());
    REQUIRE(s.difference() == "");
  });
}

TEST_CASE("cadence law 19: P comes back by a twentieth of G per T, and is C from 1.25 G on") {
  for_law_worlds(19, kLawWorlds, [](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {.lease_us = 60'000});
    const std::uint64_t rate = s.rate_mbps();
    s.acknowledge(1, static_cast<std::uint32_t>(law.p.path_target_ns + 3 * law.rtt()));
    for (int i = 0; i < 4; ++i) {
      s.pass(law.rtt());
      s.lose(Signal::timeout, 0);
    }
    const std::uint64_t low = s.rate_mbps();
    for (int i = 0; i < 40; ++i) {
      s.pass(law.rtt());
      if (random.below(8) == 0) s.acknowledge(1, static_cast<std::uint32_t>(law.rtt() + 100));
      REQUIRE(s.difference() == "");
    }
    REQUIRE((s.rate_mbps() > low || low == rate));
  });
}

TEST_CASE("cadence law 20: T' is the smoothed round trip of REQUEST and GRANT, T at least") {
  unsigned longer = 0;
  for_law_worlds(20, kLawWorlds, [&](Random& random, const CadenceLaw& law) {
    CadenceLawContext s = law_granted(random, law, {.lease_us = 60'000});
    for (std::uint16_t number = 2; number < 12; ++number) {
      s.pass(100'000);
      s.control_ns = static_cast<std::uint32_t>(1 + random.below(80'000));
      s.grant(number, {.rate_mbps = law_rate(random, law), .lease_us = 60'000});
      s.acknowledge(1, static_cast<std::uint32_t>(1 + random.below(200'000)));
      longer += s.window() > bytes_at(s.rate_mbps(), law.rtt()) + 2 * law.p.packet_bytes ? 1U : 0U;
      REQUIRE(s.difference() == "");
    }
  });
  CHECK(longer > kLawWorlds);
}

}  // namespace paceline::cc
