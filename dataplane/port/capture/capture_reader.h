// Reads capture files frame by frame: classic pcap (pcap-savefile(5) of libpcap) and pcapng (IETF
// draft-ietf-opsawg-pcapng, sections 3 and 4), either byte order, microseconds or finer. Nothing in
// a file is trusted: errors are reported with their offset, and memory is bounded whatever a length
// claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline {

struct FrameRead {
  std::uint64_t number = 0;  // in the file, from 1, as capture tools count
  Nanos at{0};               // since the file's epoch
  std::uint32_t interface = 0;
  std::uint32_t original_bytes = 0;    // more than `bytes` has: cut short when captured
  std::span<const std::byte> bytes{};  // until the next call
};

class CaptureReader {
 public:
  // Blocks and frames beyond it are refused.
  static constexpr std::uint32_t kMostBytes = 16U << 20;

  // `in` must outlive the reader.
  explicit CaptureReader(std::istream& in);

  // The next frame of an Ethernet interface. False: no more, or error().
  bool next(FrameRead& frame);
  // Empty if all is well so far. Else "byte N: " and what is wrong.
  const std::string& error() const { return error_; }
  std::uint64_t frames() const { return frames_; }

 private:
  enum class Format : std::uint8_t { unknown, pcap, pcapng };
  struct Interface {
    std::uint16_t link_type = 0;
    std::uint64_t ticks_per_second = 1'000'000;
    std::int64_t offset_seconds = 0;
    std::uint32_t snap = 0;
  };

  bool begin();
  bool next_of_pcap(FrameRead& frame);
  bool next_of_pcapng(FrameRead& frame);
  bool read_block(std::uint32_t& type, bool& over);
  bool take_section();
  bool take_interface();
  bool take_packet(FrameRead& frame, bool simple);
  bool stamp(const Interface& interface, std::uint64_t ticks, Nanos& at);
  // False at the end of the file; `partly`: the end came within the bytes.
  bool read(std::size_t bytes, bool& partly);
  bool fail(std::uint64_t offset, const std::string& what);
  std::uint16_t load16(std::size_t at) const;
  std::uint32_t load32(std::size_t at) const;

  std::istream& in_;
  Format format_ = Format::unknown;
  bool big_endian_ = false;
  std::string error_;
  std::uint64_t offset_ = 0;  // of what comes next in the stream
  std::uint64_t start_ = 0;   // of buffer_
  std::uint64_t frames_ = 0;
  std::vector<std::byte> buffer_;  // the current header, record or block
  std::vector<Interface> interfaces_;
};

}  // namespace paceline
