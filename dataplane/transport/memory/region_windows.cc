#include "dataplane/transport/memory/region_windows.h"

namespace paceline::transport {

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

// Nothing can be reached by it any more; its key and its domain stay.
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
  // What peers may write to, its owner may, too.
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
