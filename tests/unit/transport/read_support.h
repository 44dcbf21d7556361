// READs in the lab.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {

// `length` bytes at `from` of b's memory to `to` of a's.
inline WorkRequest read_of(Lab& lab, std::uint64_t id, std::uint64_t from, std::uint64_t to,
                           std::uint64_t length) {
  return lab.request(WorkOpcode::read, id, to, from, length);
}

inline bool same(Lab& lab, std::uint64_t from, std::uint64_t to, std::uint64_t length) {
  return std::memcmp(lab.b().memory.data() + from, lab.a().memory.data() + to, length) == 0;
}

}  // namespace paceline::transport::test
