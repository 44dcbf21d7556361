// A port and parameters for Cadence built in (C++) and for its law in C (tests/plugin/cadence):
// what both are derived from is the same.
#pragma once

#include <paceline/cc.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/cadence/cadence.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::cc {

struct CadenceLaw {
  const paceline_cc_algorithm* c = nullptr;  // the law in C
  CadenceParams p{};                         // the built-in's
  std::array<std::byte, PACELINE_CC_DERIVED_BYTES> derived{};

  std::int64_t rtt() const { return p.rtt_ns; }
  std::uint64_t wire(std::uint64_t payload) const { return message_wire_bytes(p, payload); }

  static CadenceLaw of(const std::vector<double>& values, const PortFacts& facts) {
    CadenceLaw law;
    law.c = paceline_cc_plugin(PACELINE_CC_ABI_MAJOR << 16 | PACELINE_CC_ABI_MINOR);
    law.p = make_cadence_params(values, facts);
    paceline_cc_port port{};
    port.size = sizeof port;
    port.mtu_bytes = facts.mtu_bytes;
    port.link_bps = facts.link_rate.bps;
    port.full_packet_bytes = facts.full_packet_bytes;
    port.base_rtt_ns = facts.base_rtt_ns;
    law.c->derive(values.data(), &port, law.derived.data());
    return law;
  }
  // Order of the table: eta, small_message, a_max, little_weight, hysteresis, lease_min,
  // path_target, r_fallback, probe_limit. Not every value of a range: a parameter that reaches its
  // end (small_message > 1) has limits of the built-in's own there.
  static CadenceLaw random(Random& random, std::uint64_t lease_us) {
    constexpr std::array<std::uint64_t, 5> kGbps{10, 25, 100, 200, 400};
    const auto whole = [&random](std::uint64_t least, std::uint64_t most) {
      return static_cast<double>(least + random.below(most - least + 1));
    };
    std::vector<double> values{whole(900, 1000) / 1000,
                               whole(20, 100) / 100,
                               whole(2, 12),
                               whole(1, 8),
                               whole(0, 20) / 100,
                               whole(20, 400),
                               whole(1, 8),
                               whole(1, 40) / 1000,
                               whole(2, 12)};
    if (lease_us != 0) values[5] = static_cast<double>(lease_us);
    const std::uint32_t mtu = random.below(2) == 0 ? 1024 : 4096;
    const Rate link = rate_from_gbps(kGbps[random.below(kGbps.size())]);
    // Five packets in a round trip at least: s is not less than a packet then.
    const std::uint64_t least = std::uint64_t{mtu + 78} * 5 * 8'000'000'000 / link.bps;
    const auto rtt_ns =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(least, 4000) + random.below(20'000));
    return of(values, PortFacts{link, mtu, mtu + 78, rtt_ns});
  }
};

// As many ports as worlds, each with numbers of its own: body(random, law). A world that fails can
// be run alone, Random(seed, world). Leases last `lease_us` at least, unless 0.
template <class Body>
void for_law_worlds(std::uint64_t seed, std::uint64_t worlds, Body&& body,
                    std::uint64_t lease_us = 0) {
  for (std::uint64_t world = 0; world < worlds; ++world) {
    CAPTURE(seed, world);
    Random random(seed, world);
    const CadenceLaw law = CadenceLaw::random(random, lease_us);
    body(random, law);
  }
}

// Whether two numbers differ by no more than `slack`.
constexpr bool within(std::uint64_t a, std::uint64_t b, std::uint64_t slack) {
  return (a > b ? a - b : b - a) <= slack;
}

}  // namespace paceline::cc
