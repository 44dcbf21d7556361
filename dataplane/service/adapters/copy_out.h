// Reading memory that a program may change at any time: copy, check the copy, use the copy.
#pragma once

#include <cstddef>
#include <cstring>

namespace paceline::service {

inline void copy_out(void* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  // Prevents the compiler from reading `from` again afterwards.
  asm volatile("" ::: "memory");
}

}  // namespace paceline::service
