// What the unit tests of algorithms share.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"

namespace paceline::cc::test {

inline PortFacts facts_at(std::uint64_t gbps) {
  PortFacts facts;
  facts.link_rate = rate_from_gbps(gbps);
  return facts;
}

// Values that must resolve; fails the test with the messages otherwise.
inline std::vector<double> values_of(std::string_view algorithm, std::string_view profile,
                                     const std::vector<ParamOverride>& overrides,
                                     const PortFacts& facts) {
  const AlgorithmInfo* info = find(algorithm);
  REQUIRE(info != nullptr);
  ResolvedParams resolved = resolve_params(*info, profile, overrides, facts);
  if (const auto* errors = std::get_if<std::vector<ParamError>>(&resolved)) {
    std::string all;
    for (const ParamError& error : *errors) all += error.message + "\n";
    FAIL(all);
  }
  return std::get<std::vector<double>>(resolved);
}

}  // namespace paceline::cc::test
