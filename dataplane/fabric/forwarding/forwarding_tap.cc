// Links that somebody captures. A packet is shown when it arrives, which happens in the order of
// time over the whole fabric (departures are decided lazily, and are not), and before anybody at
// the far end touches it.
#include <stdexcept>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

void Forwarding::tap(std::uint32_t link, LinkTap& tap) {
  if (link >= spec_.links.size()) throw std::invalid_argument("fabric: no such link to capture");
  taps_.resize(spec_.links.size());
  if (taps_[link] != nullptr) throw std::invalid_argument("fabric: the link is captured already");
  taps_[link] = &tap;
  for (const std::uint32_t id : {2 * link, 2 * link + 1}) {
    links_[id].notable = static_cast<std::uint8_t>(links_[id].notable | Link::kTapped);
  }
}

void Forwarding::untap(std::uint32_t link) {
  if (link >= taps_.size() || taps_[link] == nullptr) return;
  taps_[link] = nullptr;
  for (const std::uint32_t id : {2 * link, 2 * link + 1}) {
    links_[id].notable = static_cast<std::uint8_t>(links_[id].notable & ~Link::kTapped);
  }
}

void Forwarding::arrive_tapped(const Link& link, Packet* packet, Picos now) {
  LinkTap& tap = *taps_[link.id / 2];
  tap.show(now, (link.id & 1U) == 0, *packet);
  const bool lost = packet->route == kRouteLost;
  // Whatever else is dropped meanwhile is another packet; it may be shown to another tap.
  observed_ = packet;
  observed_drop_ = nullptr;
  arrive(link, packet, now);
  observed_ = nullptr;
  const Fate fate = observed_drop_ == nullptr ? Fate::delivered : lost ? Fate::lost : Fate::refused;
  tap.settle(fate, observed_drop_ == nullptr ? "" : observed_drop_);
}

void Forwarding::show_drop(const Link& link, const Packet& packet, Fate fate, DropReason reason,
                           Picos now) {
  LinkTap& tap = *taps_[link.id / 2];
  tap.show(now, (link.id & 1U) == 0, packet);
  tap.settle(fate, to_string(reason));
}

}  // namespace paceline::fabric
