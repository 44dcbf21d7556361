#include "dataplane/fabric/switching/shared_buffer.h"

#include <bit>
#include <stdexcept>
#include <utility>

namespace paceline::fabric {

SharedBuffer::SharedBuffer(std::uint64_t total_bytes, std::vector<PortLimits> ports,
                           std::uint8_t lossless, std::uint32_t reserve_bytes,
                           std::uint32_t xon_offset_bytes)
    : reserve_(reserve_bytes),
      xon_offset_(xon_offset_bytes),
      lossless_(lossless),
      limits_(std::move(ports)),
      counters_(limits_.size()) {
  const auto classes = static_cast<std::uint64_t>(std::popcount(lossless));
  const std::uint64_t reserve = reserve_bytes == kGranted ? 0 : reserve_bytes;
  std::uint64_t set_aside = 0;
  for (const PortLimits& port : limits_) {
    set_aside += classes * (port.headroom_bytes + reserve);
  }
  if (set_aside >= total_bytes) {
    throw std::invalid_argument("SharedBuffer: reserves and headrooms leave nothing to share");
  }
  capacity_ = total_bytes - set_aside;
}

}  // namespace paceline::fabric
