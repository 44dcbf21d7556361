// Who looks at which link. A packet is shown when it arrives, which happens in the order of time
// over the whole fabric (departures are decided lazily, and are not), and before anybody at the far
// end touches it.
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

  // Of the spec's link. Throws std::invalid_argument when there is no such link, or it has one.
  void add(std::uint32_t link, LinkTap& tap);
  // False: there was none.
  bool remove(std::uint32_t link);

  // All of the following for a directed link that is tapped. A packet arrives: shown by show();
  // dropped() tells of every drop until settle() says what became of the packet.
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
