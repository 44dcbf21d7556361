// Algorithms as the reader's tests know them: small tables, one of them proactive.
#pragma once

#include <array>
#include <span>

#include "cc/interface/algorithm.h"

namespace paceline::config {

inline std::span<const cc::AlgorithmInfo> test_algorithms() {
  static constexpr std::array<cc::ParamSpec, 4> kSpecs{{
      {"gain", "1", 0.5, 0, 1, true, "", ""},
      {"period", "us", 55, 1, 1000, true, "", ""},
      {"on", "flag", 0, 0, 1, true, "", ""},
      {"stages", "count", 5, 0, 31, true, "", ""},
  }};
  static constexpr std::array<cc::Profile, 1> kReact{{{"paper", "", {}}}};
  static constexpr std::array<cc::Profile, 1> kPace{{{"fast", "", {}}}};
  static const std::array<cc::AlgorithmInfo, 2> kAll = [] {
    std::array<cc::AlgorithmInfo, 2> all;
    all[0].name = "react";
    all[0].params = kSpecs;
    all[0].profiles = kReact;
    all[1].name = "pace";
    all[1].proactive = true;
    all[1].params = kSpecs;
    all[1].profiles = kPace;
    return all;
  }();
  return kAll;
}

}  // namespace paceline::config
