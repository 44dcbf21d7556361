// A memory region as the program has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/memory/registration_map.h"

namespace paceline::verbs {

struct MemoryRegion {
  ibv_mr mr{};  // first: programs hold its address
  std::uint64_t iova = 0;
  unsigned access = 0;
  RegistrationMap::Held held;
  std::atomic<int>* users = nullptr;  // of the device memory that it is a part of; counted down

  static MemoryRegion& of(ibv_mr* mr) { return *reinterpret_cast<MemoryRegion*>(mr); }
};

// Null with errno. A region of no bytes has no key.
MemoryRegion* register_memory(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                              unsigned access) noexcept;

}  // namespace paceline::verbs
