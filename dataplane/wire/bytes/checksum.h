// The Internet checksum (RFC 1071) and its incremental update (RFC 1624, equation 3). Sums are kept
// in host order of 16-bit words read as big-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/wire/bytes/endian.h"

namespace paceline::wire {

// Folds carries until 16 bits remain. Enough for any sum of 32 bits.
constexpr std::uint16_t fold_sum(std::uint32_t sum) {
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// Unfolded sum over an IPv4 header without options.
inline std::uint32_t ipv4_header_sum(const std::byte* p) {
  // Pairs of words at a time: the carries of the upper halves are folded in at the end.
  const std::uint64_t wide = std::uint64_t{load_be32(p)} + load_be32(p + 4) + load_be32(p + 8) +
                             load_be32(p + 12) + load_be32(p + 16);
  return static_cast<std::uint32_t>((wide & 0xFFFFU) + ((wide >> 16) & 0xFFFFU) + (wide >> 32));
}

inline bool ipv4_checksum_ok(const std::byte* p) { return fold_sum(ipv4_header_sum(p)) == 0xFFFF; }

// The checksum after one of the covered 16-bit words changed.
constexpr std::uint16_t updated_checksum(std::uint16_t checksum, std::uint16_t old_word,
                                         std::uint16_t new_word) {
  const std::uint32_t sum = std::uint32_t{static_cast<std::uint16_t>(~checksum)} +
                            static_cast<std::uint16_t>(~old_word) + new_word;
  return static_cast<std::uint16_t>(~fold_sum(sum));
}

}  // namespace paceline::wire
