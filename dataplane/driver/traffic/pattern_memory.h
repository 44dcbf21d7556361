// The memory of emulated hosts where packets carry real bytes (captures): the byte at an address
// follows from the address and the seed alone, so nothing is stored. Arriving bytes are compared
// with what belongs there; a difference is a fault, which fails the run.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/transport/memory/region.h"

namespace paceline {

class PatternMemory final : public transport::MemoryProvider {
 public:
  explicit PatternMemory(std::uint64_t seed) : seed_(seed) {}

  transport::MemoryResult read(const transport::MemoryCaller& caller, std::uint64_t offset,
                               std::span<std::byte> out) override;
  transport::MemoryResult write(const transport::MemoryCaller& caller, std::uint64_t offset,
                                std::span<const std::byte> in) override;

 private:
  std::uint64_t word_at(std::uint64_t index) const;

  std::uint64_t seed_;
};

}  // namespace paceline
