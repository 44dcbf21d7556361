// Priority flow control on the wire: a MAC control frame with the class-enable vector (IEEE
// 802.1Qbb; 802.3 annex 31D). No IP, no ICRC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/wire/headers/addresses.h"

namespace paceline::wire {

inline constexpr std::uint16_t kEtherTypeMacControl = 0x8808;
inline constexpr std::uint16_t kPfcOpcode = 0x0101;
inline constexpr std::size_t kPauseFrameBytes = 60;  // the shortest frame, without check sequence

// X-OFF until further notice (the longest pause there is: 65535 quanta), or X-ON, of one class
// (0..7).
std::array<std::byte, kPauseFrameBytes> build_pause_frame(const MacAddress& source,
                                                          std::uint8_t traffic_class, bool pause);

}  // namespace paceline::wire
