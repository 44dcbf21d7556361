// Which links are captured. A packet is shown when it arrives, before the far end changes it:
// arrivals happen in the order of time over the whole fabric, but departures are decided lazily.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/port/capture/capture.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

class LinkTaps {
 public:
  explicit LinkTaps(std::size_t links) : taps_(links) {}

  // Sets the tap of a link. Throws std::invalid_argument if there is no such link, or if it has a
  // tap.
  void add(std::uint32_t link, LinkTap& tap);
  // False: the link had no tap.
  bool remove(std::uint32_t link);

  // The rest is for tapped directed links only. show() shows a packet that arrives; dropped()
  // reports every drop until settle() reports the packet's fate.
  void show(std::uint32_t link, const Packet& packet, Picos now);
  void dropped(const Packet& packet, DropReason reason) {
    if (&packet == shown_) reason_ = to_string(reason);
  }
  // `lost`: it was lost on the wire.
  void settle(std::uint32_t link, bool lost);
  // A packet that does not arrive at all.
  void show_drop(std::uint32_t link, const Packet& packet, Fate fate, DropReason reason, Picos now);

 private:
  std::vector<LinkTap*> taps_;
  const Packet* shown_ = nullptr;  // between show() and settle()
  const char* reason_ = nullptr;   // why that one was dropped
};

}  // namespace paceline::fabric
