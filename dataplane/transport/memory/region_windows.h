// Memory windows (vol. 1, 10.6.7): a key of its own for a part of a region, bound and unbound in
// the order of a send queue. A window has its place among the regions. This file holds what only
// windows have, so that a table without them pays nothing.
#pragma once

#include <cstdint>
#include <map>

#include "dataplane/transport/memory/region.h"

namespace paceline::transport {

// The memory of a region from `offset_` on.
class RegionPart final : public MemoryProvider {
 public:
  void set(MemoryProvider* whole, std::uint64_t offset) {
    whole_ = whole;
    offset_ = offset;
  }
  MemoryResult read(const MemoryCaller& caller, std::uint64_t offset,
                    std::span<std::byte> out) override {
    return whole_->read(caller, offset_ + offset, out);
  }
  MemoryResult write(const MemoryCaller& caller, std::uint64_t offset,
                     std::span<const std::byte> in) override {
    return whole_->write(caller, offset_ + offset, in);
  }
  MemoryResult atomic(const MemoryCaller& caller, std::uint64_t offset,
                      const AtomicOperation& operation, std::uint64_t& original) override {
    return whole_->atomic(caller, offset_ + offset, operation, original);
  }

 private:
  MemoryProvider* whole_ = nullptr;
  std::uint64_t offset_ = 0;
};

struct Window {
  WindowType type = WindowType::one;
  std::uint32_t parent = 0;  // key of the region that it is bound to; 0: to none
  RegionPart part;
};

// Both maps are by the upper 24 bits of a key, which stay the same while the program changes the
// others. Binding and revoking happen in turns and allocate nothing.
struct RegionWindows {
  std::map<std::uint32_t, Window> windows;
  std::map<std::uint32_t, std::uint32_t> bound;  // to each region that allows it: how many
};

}  // namespace paceline::transport
