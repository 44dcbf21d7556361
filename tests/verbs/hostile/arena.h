// The hostile program's memory: what it registers lies in a reserved piece of its address space, so
// that whatever it says of it, the service can write nowhere else of it that matters to itself.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/verbs/hostile/odd_values.h"

namespace paceline::test {

class Arena {
 public:
  static constexpr std::size_t kReserved = std::size_t{256} << 20U;
  static constexpr std::size_t kBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kPage = 4096;
  // Longer than the quota of registered bytes allows any region to be.
  static constexpr std::uint64_t kReach = std::uint64_t{64} << 20U;

  Arena() {
    void* const at =
        ::mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin_ = at == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(at);
    if (begin_ != 0) map(0, kBytes, PROT_READ | PROT_WRITE);
    std::fill_n(untouched_, sizeof(untouched_), kPattern);
  }
  ~Arena() { ::munmap(reinterpret_cast<void*>(begin_), kReserved); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::uint64_t data() const { return begin_ + kReserved / 2; }
  // May it be called the address of a region?
  bool harmless(std::uint64_t address) const {
    return address < 65536 || address >= std::uint64_t{1} << 47U ||
           (address >= begin_ && address + kReach <= begin_ + kReserved);
  }
  // Takes pages away, or brings them back empty.
  void flip(OddValues& odd) {
    const std::size_t page = odd.below(kBytes / kPage);
    const std::size_t pages = 1 + odd.below(std::min<std::size_t>(8, kBytes / kPage - page));
    map(page * kPage, pages * kPage, odd.one_in(2) ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
  // Memory next to nothing registered, which nobody may have written.
  bool untouched() const {
    return std::all_of(std::begin(untouched_), std::end(untouched_),
                       [](char c) { return c == kPattern; });
  }

 private:
  static constexpr char kPattern = 0x5A;

  void map(std::size_t offset, std::size_t bytes, int rights) const {
    ::mmap(reinterpret_cast<void*>(data() + offset), bytes, rights,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  std::uint64_t begin_ = 0;
  char untouched_[65536];
};

}  // namespace paceline::test
