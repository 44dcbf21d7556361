// Writes a capture file in the pcapng format (IETF draft-ietf-opsawg-pcapng, sections 3 and 4),
// block after block: after every call the stream holds a complete file. One section, Ethernet,
// timestamps in nanoseconds (if_tsresol 9). Nothing in the file depends on the machine: its byte
// order is little-endian everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline {

enum class CaptureDirection : std::uint8_t { unknown = 0, inbound = 1, outbound = 2 };

struct CapturedFrame {
  std::uint32_t interface = 0;         // number from add_interface
  Picos at{0};                         // rounded down to a nanosecond; not negative
  std::span<const std::byte> bytes{};  // without frame check sequence
  std::uint32_t original_bytes = 0;    // of a frame that was cut: how long it was; 0: it was not
  CaptureDirection direction = CaptureDirection::unknown;
  bool crc_error = false;    // "CRC error" of the link-layer flags
  std::string_view comment;  // none: ""
};

struct CaptureTotals {
  std::uint32_t interface = 0;
  Picos begin{0};
  Picos end{0};
  std::uint64_t seen = 0;     // packets that crossed, written or not
  std::uint64_t dropped = 0;  // packets among these that were not delivered
  std::string_view comment;
};

class PcapngWriter {
 public:
  // Writes the section header. `out` must outlive the writer; its state says whether all went well.
  PcapngWriter(std::ostream& out, std::string_view application);

  // Returns the number of the interface: 0, 1, ... `offset_seconds`, since 1970, is added to its
  // times. `snap`: frames are cut to this length; 0: they are not.
  std::uint32_t add_interface(std::string_view name, std::string_view description,
                              std::uint64_t bits_per_second, std::int64_t offset_seconds = 0,
                              std::uint32_t snap = 0);
  void frame(const CapturedFrame& frame);
  // Interface statistics: at the end, once per interface.
  void totals(const CaptureTotals& totals);

  std::uint64_t bytes() const { return bytes_; }  // of the file so far
  // Bytes that frame() adds to the file.
  static std::uint64_t frame_bytes(const CapturedFrame& frame);

 private:
  void begin(std::uint32_t type);
  void put32(std::uint32_t value);
  void put64_halves(std::uint64_t value);
  void put64(std::uint64_t value);
  void put_bytes(std::span<const std::byte> bytes);
  void pad();
  void option(std::uint16_t code, std::uint16_t length);
  void text_option(std::uint16_t code, std::string_view text);
  void end_block();

  std::ostream& out_;
  std::vector<std::byte> block_;  // the one being put together
  std::uint64_t bytes_ = 0;
  std::uint32_t interfaces_ = 0;
};

}  // namespace paceline
