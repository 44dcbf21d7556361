#include "dataplane/transport/memory/region.h"

#include <utility>

#include "dataplane/port/packet_pool.h"
#include "dataplane/transport/memory/region_windows.h"

namespace paceline::transport {

const std::byte* MemoryProvider::at(std::uint64_t, std::uint64_t) const { return nullptr; }

MemoryResult MemoryProvider::atomic(const MemoryCaller&, std::uint64_t, const AtomicOperation&,
                                    std::uint64_t&) {
  return MemoryResult::fault;
}

RegionTable::RegionTable() = default;
RegionTable::~RegionTable() = default;

void RegionTable::draw_keys_from(const KeySecret& secret) {
  secret_ = secret;
  size_ = 1;
  mask_ = 0;
}

void RegionTable::end_loans() {
  if (pool_ != nullptr) pool_->end_loans();
}

bool RegionTable::invalidate(std::uint32_t key, std::uint32_t pd, std::uint8_t needed,
                             std::uint32_t qp) {
  if (find(key) == nullptr) return false;
  Region& region = data_[place(key)];
  if (region.pd != pd || (region.access & needed) != needed || region.revoked) return false;
  if (region.qp != 0 && region.qp != qp) return false;
  if ((region.access & access::local_read) == 0) {  // a window
    if (windows_->windows.find(key >> 8)->second.type == WindowType::one) return false;
    unbind(region, key >> 8);
    return true;
  }
  region.revoked = true;
  end_loans();
  return true;
}

Region& RegionTable::slot(std::uint32_t& key) {
  if (secret_) return drawn_slot(key);
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
  std::uint32_t generation = (region.key + 1) & 0xFF;
  if (index == 0 && generation == 0) generation = 1;  // 0 is not a valid key
  key = index << 8 | generation;
  return region;
}

// At most half of the places are taken, so that two draws suffice on average.
Region& RegionTable::drawn_slot(std::uint32_t& key) {
  if (used_ != 0 && 2 * (used_ + 1) > size_) grow();
  for (;;) {
    key = static_cast<std::uint32_t>(sip_hash(*secret_, draws_++));
    Region& region = data_[place(key)];
    // The key that this place had last is not used again either.
    if (key == 0 || region.kind != RegionKind::none || region.key == key) continue;
    ++used_;
    return region;
  }
}

// Twice as many places need no new check for collisions: keys with different places before also
// have different places now, which use more of the same bits.
void RegionTable::grow() {
  const std::uint32_t size = size_ < 4 ? 4 : 2 * size_;
  std::vector<Region> larger(size);
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (data_[i].kind != RegionKind::none) larger[(data_[i].key >> 8) & (size - 1)] = data_[i];
  }
  regions_ = std::move(larger);
  data_ = regions_.data();
  size_ = size;
  mask_ = size - 1;
}

std::uint32_t RegionTable::fill(const Region& content) {
  std::uint32_t key = 0;
  Region& region = slot(key);
  region = content;
  region.key = key;
  if ((content.access & access::window_bind) != 0) windows().bound.emplace(key >> 8, 0);
  return key;
}

std::uint32_t RegionTable::add_plain(std::uint64_t base, std::span<std::byte> memory,
                                     std::uint8_t access, std::uint32_t pd) {
  Region region;
  region.base = base;
  region.length = memory.size();
  region.memory = memory.data();
  region.kind = RegionKind::plain;
  region.access = access | access::local_read;
  region.pd = pd;
  return fill(region);
}

std::uint32_t RegionTable::add_elided(std::uint64_t base, std::uint64_t length, std::uint8_t access,
                                      std::uint32_t pd) {
  Region region;
  region.base = base;
  region.length = length;
  region.kind = RegionKind::elided;
  region.access = access | access::local_read;
  region.pd = pd;
  return fill(region);
}

std::uint32_t RegionTable::add_provided(std::uint64_t base, std::uint64_t length,
                                        MemoryProvider& provider, std::uint8_t access,
                                        std::uint32_t pd) {
  Region region;
  region.base = base;
  region.length = length;
  region.provider = &provider;
  region.kind = RegionKind::provided;
  region.access = access | access::local_read;
  region.pd = pd;
  return fill(region);
}

// Only the key stays, so that the next region here gets another one.
void RegionTable::vacate(std::uint32_t index) {
  end_loans();
  const std::uint32_t kept = data_[index].key;
  data_[index] = Region{};
  data_[index].key = kept;
  if (secret_) {
    --used_;
  } else {
    free_.push_back(index);
  }
}

bool RegionTable::remove(std::uint32_t key) {
  const Region* const region = find(key);
  if (region == nullptr || (region->access & access::local_read) == 0 || has_windows(key)) {
    return false;
  }
  if (windows_ != nullptr) windows_->bound.erase(key >> 8);
  vacate(place(key));
  return true;
}

bool RegionTable::change(std::uint32_t key, std::uint8_t access, std::uint32_t pd) {
  const Region* const found = find(key);
  if (found == nullptr || (found->access & access::local_read) == 0 || has_windows(key)) {
    return false;
  }
  Region& region = data_[place(key)];
  end_loans();
  region.access = access | access::local_read;
  region.pd = pd;
  region.revoked = false;
  if ((access & access::window_bind) != 0) {
    windows().bound.emplace(key >> 8, 0);
  } else if (windows_ != nullptr) {
    windows_->bound.erase(key >> 8);
  }
  return true;
}

// --- memory windows ---

RegionWindows& RegionTable::windows() {
  if (windows_ == nullptr) windows_ = std::make_unique<RegionWindows>();
  return *windows_;
}

bool RegionTable::has_windows(std::uint32_t key) const {
  if (windows_ == nullptr) return false;
  const auto at = windows_->bound.find(key >> 8);
  return at != windows_->bound.end() && at->second != 0;
}

std::uint32_t RegionTable::add_window(WindowType type, std::uint32_t pd) {
  RegionWindows& all = windows();
  Region region;
  region.kind = RegionKind::elided;
  region.revoked = true;
  region.pd = pd;
  const std::uint32_t key = fill(region);
  all.windows[key >> 8].type = type;
  return key;
}

// The window no longer gives access to anything; its key and its domain stay.
void RegionTable::unbind(Region& region, std::uint32_t window) {
  end_loans();
  Window& w = windows_->windows.find(window)->second;
  if (w.parent != 0) --windows_->bound.find(w.parent >> 8)->second;
  w.parent = 0;
  const std::uint32_t key = region.key;
  const std::uint32_t pd = region.pd;
  region = Region{};
  region.key = key;
  region.kind = RegionKind::elided;
  region.revoked = true;
  region.pd = pd;
}

bool RegionTable::remove_window(std::uint32_t key) {
  if (windows_ == nullptr) return false;
  const auto at = windows_->windows.find(key >> 8);
  if (at == windows_->windows.end()) return false;
  const std::uint32_t index = place(key);
  unbind(data_[index], key >> 8);
  windows_->windows.erase(at);
  vacate(index);
  return true;
}

bool RegionTable::bind(const WindowBind& b) {
  if (windows_ == nullptr || b.key == 0) return false;
  const auto at = windows_->windows.find(b.key >> 8);
  if (at == windows_->windows.end()) return false;
  Window& window = at->second;
  Region& region = data_[place(b.key)];
  const bool second = window.type == WindowType::two;
  if (region.pd != b.pd || (b.access & ~access::remote) != 0) return false;
  if (second && (window.parent != 0 || b.length == 0)) return false;
  if (b.length == 0) {
    unbind(region, b.key >> 8);
    region.key = b.key;
    return true;
  }
  const Region* const parent = find(b.region);
  constexpr std::uint8_t kBindable = access::window_bind | access::local_read;
  if (parent == nullptr || !parent->grants(b.pd, kBindable, b.address, b.length)) return false;
  // Remote write access requires local write access.
  constexpr std::uint8_t kWrites = access::remote_write | access::remote_atomic;
  if ((b.access & kWrites) != 0 && (parent->access & access::local_write) == 0) return false;

  unbind(region, b.key >> 8);
  window.parent = b.region;
  ++windows_->bound.find(b.region >> 8)->second;
  const std::uint64_t offset = b.address - parent->base;
  region.base = b.address;
  region.length = b.length;
  region.kind = parent->kind;
  if (parent->kind == RegionKind::plain) region.memory = parent->memory + offset;
  if (parent->kind == RegionKind::provided) {
    window.part.set(parent->provider, offset);
    region.provider = &window.part;
  }
  region.key = b.key;
  region.access = b.access;
  region.revoked = false;
  if (second) {
    region.access |= access::remote_invalidate;
    region.qp = b.qp;
  }
  return true;
}

}  // namespace paceline::transport
