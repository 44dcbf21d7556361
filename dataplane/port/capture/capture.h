// The interface by which a fabric shows the packets of a link to a capture. A tap must not change
// anything: it gets packets read-only and returns nothing.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"

namespace paceline {

enum class Fate : std::uint8_t {
  delivered,   // to the far end
  lost,        // by the link itself: it never arrived
  refused,     // it arrived, and was dropped by the switch there
  never_sent,  // dropped from the queue in front of this link
};

class LinkTap {
 public:
  LinkTap() = default;
  LinkTap(const LinkTap&) = delete;
  LinkTap& operator=(const LinkTap&) = delete;
  virtual ~LinkTap() = default;

  // The packet's last bit arrives at the far end of the link, or would have arrived (lost), or the
  // packet is dropped before it was sent. `forward`: from the first end of the link to the second.
  // Times never go back. Called before the far end touches the packet; settle() follows and tells
  // its fate. A pause frame of the link (packet_flag::pfc) has no header bytes: traffic_class is
  // the paused class, entropy 1 means pause and 0 resume.
  virtual void show(Picos now, bool forward, const Packet& packet) = 0;
  // `reason`: a word for a drop, else "". Follows each show().
  virtual void settle(Fate fate, const char* reason) = 0;
};

}  // namespace paceline
