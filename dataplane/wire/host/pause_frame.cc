#include "dataplane/wire/host/pause_frame.h"

#include <algorithm>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::wire {

std::array<std::byte, kPauseFrameBytes> build_pause_frame(const MacAddress& source,
                                                          std::uint8_t traffic_class, bool pause) {
  // The address of all pause frames: no bridge passes it on.
  constexpr std::array<std::uint8_t, 6> kPauseGroup{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};
  std::array<std::byte, kPauseFrameBytes> frame{};
  std::byte* at = frame.data();
  for (const std::uint8_t byte : kPauseGroup) *at++ = std::byte{byte};
  at = std::copy(source.bytes.begin(), source.bytes.end(), at);
  store_be16(at, kEtherTypeMacControl);
  store_be16(at + 2, kPfcOpcode);
  store_be16(at + 4, static_cast<std::uint16_t>(1U << traffic_class));
  store_be16(at + 6 + 2 * std::size_t{traffic_class}, pause ? 0xFFFF : 0);
  return frame;
}

}  // namespace paceline::wire
