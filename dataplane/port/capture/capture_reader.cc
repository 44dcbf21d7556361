#include "dataplane/port/capture/capture_reader.h"

#include <algorithm>
#include <istream>
#include <limits>

namespace paceline {

namespace {

constexpr std::uint32_t kPcapMicros = 0xA1B2'C3D4;
constexpr std::uint32_t kPcapNanos = 0xA1B2'3C4D;
constexpr std::size_t kPcapHeaderBytes = 24;
constexpr std::size_t kPcapRecordBytes = 16;

// Block types and options (draft, 3.5, 4.1 to 4.4).
constexpr std::uint32_t kSectionBlock = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kSimplePacketBlock = 3;
constexpr std::uint32_t kEnhancedPacketBlock = 6;
constexpr std::uint32_t kByteOrder = 0x1A2B'3C4D;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kTimeOffset = 14;
constexpr std::size_t kBlockHeadBytes = 8;  // type and length
constexpr std::size_t kBlockLeastBytes = 12;

constexpr std::uint16_t kEthernet = 1;
constexpr std::size_t kMostInterfaces = 4096;
constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

std::uint32_t swapped(std::uint32_t v) {
  return v >> 24 | (v >> 8 & 0xFF00U) | (v << 8 & 0xFF'0000U) | v << 24;
}

}  // namespace

CaptureReader::CaptureReader(std::istream& in) : in_(in) {}

bool CaptureReader::fail(std::uint64_t offset, const std::string& what) {
  error_ = "byte " + std::to_string(offset) + ": " + what;
  return false;
}

std::uint16_t CaptureReader::load16(std::size_t at) const {
  const auto low = std::to_integer<unsigned>(buffer_[at]);
  const auto high = std::to_integer<unsigned>(buffer_[at + 1]);
  return static_cast<std::uint16_t>(big_endian_ ? low << 8 | high : high << 8 | low);
}

std::uint32_t CaptureReader::load32(std::size_t at) const {
  const std::uint32_t first = load16(at);
  const std::uint32_t second = load16(at + 2);
  return big_endian_ ? first << 16 | second : second << 16 | first;
}

// Appends to buffer_, piece by piece: a claimed length beyond the file's end is never allocated.
bool CaptureReader::read(std::size_t bytes, bool& partly) {
  constexpr std::size_t kPiece = 64 << 10;
  const std::size_t before = buffer_.size();
  std::size_t got = 0;
  while (got < bytes) {
    const std::size_t piece = std::min(bytes - got, kPiece);
    buffer_.resize(before + got + piece);
    in_.read(reinterpret_cast<char*>(buffer_.data() + before + got),
             static_cast<std::streamsize>(piece));
    const auto n = static_cast<std::size_t>(in_.gcount());
    got += n;
    if (n < piece) break;
  }
  buffer_.resize(before + got);
  offset_ += got;
  partly = got != 0 && got < bytes;
  return got == bytes;
}

// Determines the format from the first four bytes.
bool CaptureReader::begin() {
  bool partly = false;
  buffer_.clear();
  if (!read(4, partly)) return fail(0, "not a capture file: it is shorter than four bytes");
  const std::uint32_t magic = load32(0);
  if (magic == kSectionBlock) {
    format_ = Format::pcapng;
    return true;
  }
  if (swapped(magic) == kPcapMicros || swapped(magic) == kPcapNanos) {
    big_endian_ = true;
  } else if (magic != kPcapMicros && magic != kPcapNanos) {
    return fail(0, "not a capture file: it begins neither like pcap nor like pcapng");
  }
  if (!read(kPcapHeaderBytes - 4, partly)) return fail(offset_, "ends inside the header of a pcap");
  // The upper bits say whether frames end with a check sequence, and how long it is.
  const std::uint32_t link = load32(20);
  if ((link & 0xFFFFU) != kEthernet) {
    return fail(20, "link type " + std::to_string(link & 0xFFFFU) + "; allowed is Ethernet, 1");
  }
  if ((link & 0x0400'0000U) != 0 && link >> 28 != 0) {
    return fail(20, "frames with their check sequence cannot be taken");
  }
  format_ = Format::pcap;
  Interface interface;
  interface.link_type = kEthernet;
  interface.ticks_per_second = load32(0) == kPcapNanos ? kNanosPerSecond : 1'000'000;
  interfaces_.push_back(interface);
  return true;
}

bool CaptureReader::next(FrameRead& frame) {
  if (!error_.empty()) return false;
  if (format_ == Format::unknown && !begin()) return false;
  return format_ == Format::pcap ? next_of_pcap(frame) : next_of_pcapng(frame);
}

bool CaptureReader::next_of_pcap(FrameRead& frame) {
  bool partly = false;
  buffer_.clear();
  start_ = offset_;
  if (!read(kPcapRecordBytes, partly)) {
    return partly ? fail(offset_, "ends inside the header of a frame") : false;
  }
  const std::uint64_t seconds = load32(0);
  const std::uint64_t fraction = load32(4);
  const std::uint64_t ticks = interfaces_[0].ticks_per_second;
  const std::uint32_t bytes = load32(8);
  if (bytes > kMostBytes) {
    return fail(start_ + 8, "a frame of " + std::to_string(bytes) + " bytes; allowed are " +
                                std::to_string(kMostBytes));
  }
  if (fraction >= ticks) return fail(start_ + 4, "a fraction of a second that is more than one");
  frame.original_bytes = load32(12);
  if (!read(bytes, partly)) return fail(offset_, "ends inside a frame");
  frame.number = ++frames_;
  frame.at = Nanos{
      static_cast<std::int64_t>(seconds * kNanosPerSecond + fraction * (kNanosPerSecond / ticks))};
  frame.interface = 0;
  frame.bytes = std::span(buffer_).subspan(kPcapRecordBytes);
  return true;
}

// A whole block is in buffer_, its lengths agree and it has at least its head and tail.
bool CaptureReader::read_block(std::uint32_t& type, bool& over) {
  bool partly = false;
  over = false;
  const bool first = offset_ == 4;
  start_ = first ? 0 : offset_;
  if (!first) buffer_.clear();  // else its type is there
  if (!read(kBlockHeadBytes - buffer_.size(), partly)) {
    over = !partly && !first;
    return over ? false : fail(offset_, "ends inside the head of a block");
  }
  type = load32(0);
  if (type == kSectionBlock) {  // the same in either byte order
    if (!read(4, partly)) return fail(offset_, "ends inside a section header");
    big_endian_ = false;
    if (load32(8) != kByteOrder) {
      if (swapped(load32(8)) != kByteOrder) {
        return fail(start_ + 8, "a section header without its byte-order magic");
      }
      big_endian_ = true;
    }
  }
  const std::uint32_t length = load32(4);
  if (length < kBlockLeastBytes + (type == kSectionBlock ? 16U : 0U) || length % 4 != 0 ||
      length > kMostBytes) {
    return fail(start_ + 4, "a block of " + std::to_string(length) +
                                " bytes; allowed are multiples of 4 from " +
                                std::to_string(kBlockLeastBytes) + " to " +
                                std::to_string(kMostBytes));
  }
  if (!read(length - buffer_.size(), partly)) {
    return fail(offset_, "ends inside a block of " + std::to_string(length) + " bytes");
  }
  if (load32(length - 4) != length) {
    return fail(start_ + length - 4, "a block that ends with the length " +
                                         std::to_string(load32(length - 4)) + " and began with " +
                                         std::to_string(length));
  }
  return true;
}

bool CaptureReader::take_section() {
  interfaces_.clear();
  const std::uint16_t major = load16(12);
  if (major == 1) return true;
  return fail(start_ + 12, "pcapng version " + std::to_string(major) + "; allowed is 1");
}

bool CaptureReader::take_interface() {
  const std::size_t end = buffer_.size() - 4;
  if (end < 16) return fail(start_, "an interface block that is too short");
  if (interfaces_.size() == kMostInterfaces) return fail(start_, "more than 4096 interfaces");
  Interface interface;
  interface.link_type = load16(8);
  interface.snap = load32(12);
  std::size_t at = 16;
  while (at + 4 <= end) {
    const std::uint16_t code = load16(at);
    const std::uint16_t length = load16(at + 2);
    if (code == 0) break;
    if (at + 4 + length > end) return fail(start_ + at, "an option that leaves its block");
    if (code == kTimeResolution && length == 1) {
      const auto value = std::to_integer<unsigned>(buffer_[at + 4]);
      const unsigned power = value & 0x7FU;
      const bool binary = (value & 0x80U) != 0;
      if (power > (binary ? 63U : 19U)) return fail(start_ + at, "a time resolution out of range");
      interface.ticks_per_second = 1;
      for (unsigned i = 0; i < power; ++i) interface.ticks_per_second *= binary ? 2 : 10;
    }
    if (code == kTimeOffset && length == 8) {
      const std::uint64_t low = load32(at + (big_endian_ ? 8 : 4));
      const std::uint64_t high = load32(at + (big_endian_ ? 4 : 8));
      interface.offset_seconds = static_cast<std::int64_t>(high << 32 | low);
    }
    at += 4 + ((std::size_t{length} + 3) & ~std::size_t{3});
  }
  interfaces_.push_back(interface);
  return true;
}

bool CaptureReader::stamp(const Interface& interface, std::uint64_t ticks, Nanos& at) {
  __extension__ using Wide = __int128;
  const Wide nanos = Wide{ticks} * static_cast<Wide>(kNanosPerSecond) /
                         static_cast<Wide>(interface.ticks_per_second) +
                     Wide{interface.offset_seconds} * static_cast<Wide>(kNanosPerSecond);
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  if (nanos < 0 || nanos > kMost) return fail(start_, "a time that is out of range");
  at = Nanos{static_cast<std::int64_t>(nanos)};
  return true;
}

bool CaptureReader::take_packet(FrameRead& frame, bool simple) {
  const std::size_t end = buffer_.size() - 4;
  const std::size_t head = simple ? 12 : 28;
  if (end < head) return fail(start_, "a packet block that is too short");
  frame.interface = simple ? 0 : load32(8);
  if (frame.interface >= interfaces_.size()) {
    return fail(start_ + 8, "interface " + std::to_string(frame.interface) + " of " +
                                std::to_string(interfaces_.size()));
  }
  const Interface& interface = interfaces_[frame.interface];
  std::uint32_t bytes = 0;
  if (simple) {
    frame.original_bytes = load32(8);
    bytes = frame.original_bytes;
    if (interface.snap != 0) bytes = std::min(bytes, interface.snap);
    frame.at = Nanos{0};
  } else {
    bytes = load32(20);
    frame.original_bytes = load32(24);
    const std::uint64_t ticks = std::uint64_t{load32(12)} << 32 | load32(16);
    if (!stamp(interface, ticks, frame.at)) return false;
  }
  if (bytes > end - head) {
    return fail(start_ + (simple ? 8 : 20), "a frame of " + std::to_string(bytes) +
                                                " bytes in a block with room for " +
                                                std::to_string(end - head));
  }
  if (interface.link_type != kEthernet) {
    return fail(start_, "a frame of interface " + std::to_string(frame.interface) +
                            ", whose link type is " + std::to_string(interface.link_type) +
                            "; allowed is Ethernet, 1");
  }
  frame.number = ++frames_;
  frame.bytes = std::span(buffer_).subspan(head, bytes);
  return true;
}

bool CaptureReader::next_of_pcapng(FrameRead& frame) {
  for (;;) {
    std::uint32_t type = 0;
    bool over = false;
    if (!read_block(type, over)) return false;
    switch (type) {
      case kSectionBlock:
        if (!take_section()) return false;
        break;
      case kInterfaceBlock:
        if (!take_interface()) return false;
        break;
      case kEnhancedPacketBlock:
        return take_packet(frame, false);
      case kSimplePacketBlock:
        return take_packet(frame, true);
      default:  // statistics, names, what others have invented
        break;
    }
  }
}

}  // namespace paceline
