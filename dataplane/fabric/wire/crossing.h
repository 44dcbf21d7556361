// A packet on its way from one part of a fabric to another: a copy, because packets stay in the
// pool of their part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/port/packet.h"

namespace paceline::fabric {

struct Crossing {
  // The code that finds the tail in use copies it; otherwise it is not written.
  Crossing(const Packet& of, std::uint32_t on) : packet(of), link(on) {}

  Packet packet;                                 // its time: when it arrives
  std::array<std::byte, kPacketTailBytes> tail;  // as that of a LongPacket
  std::uint32_t link;
};
// The tail costs nothing: it lies where the packet's alignment leaves room.
static_assert(offsetof(Crossing, tail) == offsetof(LongPacket, tail) && sizeof(Crossing) == 256);

}  // namespace paceline::fabric
