#include "dataplane/transport/region.h"

namespace paceline::transport {

MemoryResult MemoryProvider::atomic(const MemoryCaller&, std::uint64_t, const AtomicOperation&,
                                    std::uint64_t&) {
  return MemoryResult::fault;
}

bool RegionTable::invalidate(std::uint32_t key, std::uint32_t pd, std::uint8_t needed) {
  if (find(key) == nullptr) return false;
  Region& region = data_[key >> 8];
  if (region.pd != pd || (region.access & needed) != needed || region.revoked) return false;
  region.revoked = true;
  return true;
}

Region& RegionTable::slot(std::uint32_t& key) {
  std::uint32_t index;
  if (free_.empty()) {
    index = size_++;
    if (index != 0) {
      if (index == 1) regions_.push_back(first_);
      regions_.emplace_back();
      data_ = regions_.data();
    }
    data_[index].key = index << 8;
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Region& region = data_[index];
  const std::uint32_t generation = (region.key + 1) & 0xFF;
  key = index << 8 | generation;
  region = Region{};
  region.key = key;
  return region;
}

std::uint32_t RegionTable::add_plain(std::uint64_t base, std::span<std::byte> memory,
                                     std::uint8_t access, std::uint32_t pd) {
  std::uint32_t key = 0;
  Region& region = slot(key);
  region.base = base;
  region.length = memory.size();
  region.memory = memory.data();
  region.kind = RegionKind::plain;
  region.access = access;
  region.pd = pd;
  return key;
}

std::uint32_t RegionTable::add_elided(std::uint64_t base, std::uint64_t length, std::uint8_t access,
                                      std::uint32_t pd) {
  std::uint32_t key = 0;
  Region& region = slot(key);
  region.base = base;
  region.length = length;
  region.kind = RegionKind::elided;
  region.access = access;
  region.pd = pd;
  return key;
}

std::uint32_t RegionTable::add_provided(std::uint64_t base, std::uint64_t length,
                                        MemoryProvider& provider, std::uint8_t access,
                                        std::uint32_t pd) {
  std::uint32_t key = 0;
  Region& region = slot(key);
  region.base = base;
  region.length = length;
  region.provider = &provider;
  region.kind = RegionKind::provided;
  region.access = access;
  region.pd = pd;
  return key;
}

bool RegionTable::remove(std::uint32_t key) {
  if (find(key) == nullptr) return false;
  Region& region = data_[key >> 8];
  const std::uint32_t kept = region.key;
  region = Region{};
  region.key = kept;
  free_.push_back(key >> 8);
  return true;
}

}  // namespace paceline::transport
