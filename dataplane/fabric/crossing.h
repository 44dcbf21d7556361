// A packet on its way from one part of a fabric to another: a copy, for packets stay in the pool of
// their part.
#pragma once

#include <cstdint>

#include "dataplane/port/packet.h"

namespace paceline::fabric {

struct Crossing {
  Packet packet;  // its time: when it arrives
  std::uint32_t link = 0;
};

}  // namespace paceline::fabric
