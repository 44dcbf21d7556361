#include "dataplane/port/capture/pcapng_writer.h"

#include <array>
#include <cstring>
#include <ostream>

#include "dataplane/wire/bytes/endian.h"

namespace paceline {

namespace {

// Block types (draft, 4.1, 4.2, 4.3, 4.6).
constexpr std::uint32_t kSectionHeader = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kInterfaceStatistics = 5;
constexpr std::uint32_t kEnhancedPacket = 6;

constexpr std::uint32_t kByteOrderMagic = 0x1A2B'3C4D;
constexpr std::uint32_t kVersion = 1;  // major 1, minor 0
constexpr std::uint32_t kLinkTypeEthernet = 1;

// Options that every block may have, then options by block.
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kSectionApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceText = 3;
constexpr std::uint16_t kInterfaceSpeed = 8;
constexpr std::uint16_t kInterfaceResolution = 9;
constexpr std::uint16_t kInterfaceTimeOffset = 14;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::uint16_t kStatisticsBegin = 2;
constexpr std::uint16_t kStatisticsEnd = 3;
constexpr std::uint16_t kStatisticsReceived = 4;
constexpr std::uint16_t kStatisticsDropped = 5;

constexpr std::uint32_t kCrcErrorFlag = 1U << 24;
constexpr std::size_t kMostOptionBytes = 0xFFFF;

// Block type, length twice, interface, time, two lengths.
constexpr std::uint64_t kPacketBlockBytes = 32;

constexpr std::uint64_t nanos_of(Picos at) { return static_cast<std::uint64_t>(at.count / 1000); }
constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; }

}  // namespace

PcapngWriter::PcapngWriter(std::ostream& out, std::string_view application) : out_(out) {
  begin(kSectionHeader);
  put32(kByteOrderMagic);
  put32(kVersion);
  put64(~std::uint64_t{0});  // the section's length is not known
  text_option(kSectionApplication, application);
  option(kEndOfOptions, 0);
  end_block();
}

std::uint32_t PcapngWriter::add_interface(std::string_view name, std::string_view description,
                                          std::uint64_t bits_per_second,
                                          std::int64_t offset_seconds, std::uint32_t snap) {
  begin(kInterfaceDescription);
  put32(kLinkTypeEthernet);
  put32(snap);
  text_option(kInterfaceName, name);
  text_option(kInterfaceText, description);
  option(kInterfaceSpeed, 8);
  put64(bits_per_second);
  option(kInterfaceResolution, 1);
  put_bytes(std::array{std::byte{9}});
  pad();
  if (offset_seconds != 0) {
    option(kInterfaceTimeOffset, 8);
    put64(static_cast<std::uint64_t>(offset_seconds));
  }
  option(kEndOfOptions, 0);
  end_block();
  return interfaces_++;
}

std::uint64_t PcapngWriter::frame_bytes(const CapturedFrame& f) {
  const std::uint64_t comment = f.comment.empty() ? 0 : 4 + padded(f.comment.size());
  return kPacketBlockBytes + padded(f.bytes.size()) + 8 + comment + 4;
}

void PcapngWriter::frame(const CapturedFrame& f) {
  const auto length = static_cast<std::uint32_t>(f.bytes.size());
  begin(kEnhancedPacket);
  put32(f.interface);
  put64_halves(nanos_of(f.at));
  put32(length);
  put32(f.original_bytes == 0 ? length : f.original_bytes);
  put_bytes(f.bytes);
  pad();
  option(kPacketFlags, 4);
  put32(static_cast<std::uint32_t>(f.direction) | (f.crc_error ? kCrcErrorFlag : 0));
  text_option(kComment, f.comment);
  option(kEndOfOptions, 0);
  end_block();
}

void PcapngWriter::totals(const CaptureTotals& t) {
  begin(kInterfaceStatistics);
  put32(t.interface);
  put64_halves(nanos_of(t.end));
  text_option(kComment, t.comment);
  option(kStatisticsBegin, 8);
  put64_halves(nanos_of(t.begin));
  option(kStatisticsEnd, 8);
  put64_halves(nanos_of(t.end));
  option(kStatisticsReceived, 8);
  put64(t.seen);
  option(kStatisticsDropped, 8);
  put64(t.dropped);
  option(kEndOfOptions, 0);
  end_block();
}

void PcapngWriter::begin(std::uint32_t type) {
  block_.clear();
  put32(type);
  put32(0);  // the length, once it is known
}

void PcapngWriter::put32(std::uint32_t value) {
  std::array<std::byte, 4> bytes;
  wire::store_le32(bytes.data(), value);
  put_bytes(bytes);
}

// Timestamps: the upper half first.
void PcapngWriter::put64_halves(std::uint64_t value) {
  put32(static_cast<std::uint32_t>(value >> 32));
  put32(static_cast<std::uint32_t>(value));
}

void PcapngWriter::put64(std::uint64_t value) {
  put32(static_cast<std::uint32_t>(value));
  put32(static_cast<std::uint32_t>(value >> 32));
}

void PcapngWriter::put_bytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t at = block_.size();
  block_.resize(at + bytes.size());
  std::memcpy(block_.data() + at, bytes.data(), bytes.size());
}

void PcapngWriter::pad() { block_.resize(padded(block_.size())); }

void PcapngWriter::option(std::uint16_t code, std::uint16_t length) {
  put32(std::uint32_t{length} << 16 | code);
}

// None when there is no text; a longer one than fits is cut.
void PcapngWriter::text_option(std::uint16_t code, std::string_view text) {
  if (text.empty()) return;
  text = text.substr(0, kMostOptionBytes);
  option(code, static_cast<std::uint16_t>(text.size()));
  put_bytes(std::as_bytes(std::span(text)));
  pad();
}

void PcapngWriter::end_block() {
  const auto length = static_cast<std::uint32_t>(block_.size() + 4);
  put32(length);
  wire::store_le32(block_.data() + 4, length);
  out_.write(reinterpret_cast<const char*>(block_.data()),
             static_cast<std::streamsize>(block_.size()));
  bytes_ += block_.size();
}

}  // namespace paceline
