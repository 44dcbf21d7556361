// Pages and addresses of this process.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace paceline::verbs {

inline std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }
inline std::uint64_t page_floor(std::uint64_t address) {
  return address / page_bytes() * page_bytes();
}
inline std::uint64_t page_ceil(std::uint64_t address) {
  return page_floor(address + page_bytes() - 1);
}
inline void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace paceline::verbs
