// Random streams of the generators: one per purpose and host, so that no draw depends on how often
// another purpose or host drew. Part of every published result: do not renumber.
#pragma once

#include <cstdint>

#include "dataplane/base/numbers/random.h"

namespace paceline::workload {

enum class Purpose : std::uint64_t {
  start = 1,
  weight = 2,
  shuffle = 3,
  arrival = 4,
  incast = 5,
  placement = 6,
  computing = 7,
};

inline Random stream(std::uint64_t seed, Purpose purpose, std::uint32_t host) {
  return Random(seed, (static_cast<std::uint64_t>(purpose) << 32) | host);
}

}  // namespace paceline::workload
