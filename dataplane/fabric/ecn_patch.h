// Sets the ECN bits of a serialised header in place. Replaced by wire::patch_ecn once that exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/ecn.h"

namespace paceline::wire {

inline bool patch_ecn(std::span<std::byte> h, Ecn ecn) {
  if (h.size() < 34 || h[12] != std::byte{8} || h[13] != std::byte{0}) return false;
  const auto load = [&](std::size_t at) {
    return std::to_integer<std::uint32_t>(h[at]) << 8 | std::to_integer<std::uint32_t>(h[at + 1]);
  };
  const std::uint32_t before = load(14);
  h[15] = (h[15] & std::byte{0xFC}) | std::byte{static_cast<std::uint8_t>(ecn)};
  // RFC 1624, equation 3.
  std::uint32_t sum = (~load(24) & 0xFFFFU) + (~before & 0xFFFFU) + load(14);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = ~((sum & 0xFFFFU) + (sum >> 16)) & 0xFFFFU;
  h[24] = static_cast<std::byte>(sum >> 8);
  h[25] = static_cast<std::byte>(sum & 0xFF);
  return true;
}

}  // namespace paceline::wire
