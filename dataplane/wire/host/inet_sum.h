// The Internet checksum (RFC 1071) over bytes in several pieces, with the pseudo-header of IPv6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::wire {

class InetSum {
 public:
  // Pieces follow one another without a gap; any but the last may have an odd length, too.
  void add(std::span<const std::byte> bytes) {
    std::size_t i = 0;
    if (odd_ && !bytes.empty()) {
      sum_ += load_u8(bytes.data());
      odd_ = false;
      i = 1;
    }
    for (; i + 2 <= bytes.size(); i += 2) sum_ += load_be16(bytes.data() + i);
    if (i < bytes.size()) {
      sum_ += std::uint32_t{load_u8(bytes.data() + i)} << 8;
      odd_ = true;
    }
  }

  // RFC 8200, 8.1.
  void add_pseudo_header(const IpAddress& source, const IpAddress& destination,
                         std::uint32_t length, std::uint8_t next_header) {
    for (std::size_t i = 0; i < 16; i += 2) {
      sum_ += load_be16(source.bytes.data() + i);
      sum_ += load_be16(destination.bytes.data() + i);
    }
    sum_ += (length >> 16) + (length & 0xFFFFU) + next_header;
  }

  // 0xFFFF over bytes that hold their right checksum.
  std::uint16_t folded() const {
    std::uint64_t sum = sum_;
    while (sum >> 16 != 0) sum = (sum & 0xFFFFU) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
  }
  // The value of the checksum field, which was summed as 0.
  std::uint16_t checksum() const { return static_cast<std::uint16_t>(~folded()); }

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;  // the next byte is the lower half of a word
};

}  // namespace paceline::wire
