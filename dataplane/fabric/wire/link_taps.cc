#include "dataplane/fabric/wire/link_taps.h"

#include <stdexcept>

namespace paceline::fabric {

void LinkTaps::add(std::uint32_t link, LinkTap& tap) {
  if (link >= taps_.size()) throw std::invalid_argument("fabric: no such link to capture");
  if (taps_[link] != nullptr) throw std::invalid_argument("fabric: the link is captured already");
  taps_[link] = &tap;
}

bool LinkTaps::remove(std::uint32_t link) {
  if (link >= taps_.size() || taps_[link] == nullptr) return false;
  taps_[link] = nullptr;
  return true;
}

void LinkTaps::show(std::uint32_t link, const Packet& packet, Picos now) {
  taps_[link / 2]->show(now, (link & 1U) == 0, packet);
  // Any other packet dropped meanwhile may be shown to another tap.
  shown_ = &packet;
  reason_ = nullptr;
}

void LinkTaps::settle(std::uint32_t link, bool lost) {
  shown_ = nullptr;
  const Fate fate = reason_ == nullptr ? Fate::delivered : lost ? Fate::lost : Fate::refused;
  taps_[link / 2]->settle(fate, reason_ == nullptr ? "" : reason_);
}

void LinkTaps::show_drop(std::uint32_t link, const Packet& packet, Fate fate, DropReason reason,
                         Picos now) {
  LinkTap& tap = *taps_[link / 2];
  tap.show(now, (link & 1U) == 0, packet);
  tap.settle(fate, to_string(reason));
}

}  // namespace paceline::fabric
