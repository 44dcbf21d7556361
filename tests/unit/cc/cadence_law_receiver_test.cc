// Lines 25 to 27, 32 to 34 and 38 of docs/algorithms/cadence.md, the receiver's: the built-in's
// allocator answers as the law in C does. The numbers of cases are the law's lines.
#include <catch2/catch.hpp>

#include "tests/unit/cc/cadence_law_port.h"

namespace paceline::cc {

TEST_CASE("cadence law 25: shares are max-min by weight, bounded by caps") {
  unsigned weighted = 0, bound = 0;
  for_law_worlds(25, kPortWorlds, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = law_few(random, law);
    CadenceLawPort port(law, count);
    bool much = false, little = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t left =
          1 + random.below((random.below(2) == 0 ? 4U : 40U) * std::uint64_t{law.p.bdp_bytes});
      const std::uint32_t cap =
          random.below(2) == 0 ? kCapUnlimited : law_part(random, law.p.link_mbps);
      port.request(i, left, cap);
      much = much || left >= bulk_bytes(law.p);
      little = little || left < 4 * std::uint64_t{law.p.bdp_bytes};
    }
    port.run(200);
    REQUIRE(port.agree());
    weighted += much && little ? 1U : 0U;
    for (const auto& c : port.channels) {
      REQUIRE(c.grants == 1);
      bound += c.grant.rate_mbps + 1 >= c.request.tx_cap_mbps ? 1U : 0U;
    }
  });
  CHECK(weighted > kPortWorlds / 10);
  CHECK(bound > kPortWorlds / 4);
}

TEST_CASE("cadence law 26, 27: nothing is taken back while all that is wanted is free") {
  unsigned took = 0, kept = 0;
  for_law_worlds(26, kPortWorlds, [&](Random& random, const CadenceLaw& law) {
    if (law.p.max_active < 3) return;
    CadenceLawPort port(law, 3);
    const std::uint32_t eta = law.p.eta_mbps;
    port.request(0, 1000, law_part(random, eta));
    port.request(1, 1000, law_part(random, eta));
    port.run(200);
    port.echo(0);
    port.echo(1);
    port.run(law.rtt());
    const std::uint64_t before = port.granted();
    port.request(2, 1000, law_part(random, eta));
    port.run(law.rtt() / 2);
    REQUIRE(port.agree());
    (port.channels[0].grant.rate_mbps + std::uint64_t{port.channels[1].grant.rate_mbps} < before
         ? took
         : kept) += 1;
  });
  CHECK(std::min(took, kept) > kPortWorlds / 10);
}

TEST_CASE("cadence law 32: newcomers begin a packet time after each other") {
  unsigned delayed = 0;
  for_law_worlds(32, kPortWorlds, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = law_few(random, law);
    CadenceLawPort port(law, count);
    for (std::size_t i = 0; i < count; ++i) port.request(i, 8 * std::uint64_t{law.p.bdp_bytes});
    port.run(200);
    for (const auto& c : port.channels) {
      REQUIRE(within(c.grant.effective_delay_us, c.law_grant.delay_us, 1));
      delayed += c.grant.effective_delay_us > 0 ? 1U : 0U;
    }
  });
  CHECK(delayed > kPortWorlds / 4);
}

TEST_CASE("cadence law 33, 34: a grant rises by more than 4 %, not twice within 2 T if by little") {
  unsigned rose = 0, stayed = 0;
  for_law_worlds(
      33, kPortWorlds,
      [&](Random& random, const CadenceLaw& law) {
        CadenceLawPort port(law, 1);
        std::uint32_t cap = law_part(random, law.p.eta_mbps / 2);
        port.request(0, 100'000'000, cap);
        port.run(200);
        for (int i = 0; i < 12; ++i) {
          const std::uint64_t before = port.channels[0].grant.rate_mbps;
          cap += law_part(random, 2 + cap / (random.below(2) == 0 ? 4 : 20));
          port.channels[0].request.grant_echo = port.channels[0].grant.grant_seq;
          port.channels[0].law_request.grant_echo = port.channels[0].law_grant.number;
          port.request(0, 100'000'000, cap);
          port.run(law.rtt() * static_cast<std::int64_t>(1 + random.below(6)) / 2);
          REQUIRE(port.agree());
          (port.channels[0].grant.rate_mbps > before ? rose : stayed) += 1;
        }
      },
      kLongLease);
  CHECK(std::min(rose, stayed) > kPortWorlds);
}

TEST_CASE("cadence law 38: a GRANT comes again at half lease, a decrease until it is echoed") {
  for_law_worlds(38, kPortWorlds, [](Random& random, const CadenceLaw& law) {
    if (law.p.max_active < 2) return;
    CadenceLawPort port = law_sharing(law, 2, 1);
    const auto alive = [&](std::int64_t ns) {
      for (std::int64_t past = 0; past < ns; past += law.rtt()) {
        port.arrive(0, 1 + random.below(1000));
        port.run(law.rtt());
      }
    };
    auto& c = port.channels[0];
    unsigned grants = c.grants, law_grants = c.law_grants;
    alive(std::int64_t{c.grant.lease_us} * 1000 * 2);
    REQUIRE(c.grants > grants + 1);  // each scan is up to 2 T late
    REQUIRE(within(c.grants - grants, c.law_grants - law_grants, 2));
    REQUIRE(c.agree());
    port.request(1, 8 * std::uint64_t{law.p.bdp_bytes});
    port.run(law.rtt() / 2);
    grants = c.grants;
    law_grants = c.law_grants;
    alive(10 * law.rtt());
    REQUIRE(c.grants >= grants + 2);
    REQUIRE(c.law_grants >= law_grants + 2);
    REQUIRE(within(c.grants - grants, c.law_grants - law_grants, 5));
    port.echo(0);
    port.run(law.rtt() / 2);
    grants = c.grants;
    port.run(2 * law.rtt());
    REQUIRE(port.agree());
    REQUIRE(within(c.grants, grants, 1));
  });
}

}  // namespace paceline::cc
