// Parameters of an algorithm as its contexts read them.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

// The derived parameters of one algorithm. Copy it, publish it, never change it in place.
struct alignas(64) ParamBlock {
  static constexpr std::size_t kBytes = 448;

  alignas(64) std::byte storage[kBytes] = {};
  AlgorithmId id = AlgorithmId::fixed;

  template <class Params>
  const Params& as() const {
    static_assert(fits<Params>);
    return *reinterpret_cast<const Params*>(storage);
  }

  template <class Params>
  void put(const Params& params) {
    static_assert(fits<Params>);
    std::memcpy(storage, &params, sizeof params);
  }

  template <class Params>
  static constexpr bool fits = std::is_trivially_copyable_v<Params> && sizeof(Params) <= kBytes &&
                               alignof(Params) <= 64;
};
static_assert(std::is_trivially_copyable_v<ParamBlock> && sizeof(ParamBlock) == 512);

}  // namespace paceline::cc
