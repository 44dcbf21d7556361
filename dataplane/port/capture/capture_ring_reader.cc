#include "dataplane/port/capture/capture_ring_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "dataplane/port/capture/capture.h"
#include "dataplane/port/capture/shown_frame.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline {

std::string CaptureRingReader::open(std::span<const std::byte> ring, CaptureReaderPage& page) {
  if (ring.size() < kCaptureRecordsAt + kLeastCaptureBytes) return "too short for a capture ring";
  const auto* const header = reinterpret_cast<const CaptureRingHeader*>(ring.data());
  if (header->magic != kCaptureRingMagic) return "not a capture ring";
  if (header->version != kCaptureRingVersion) {
    return "a capture ring of version " + std::to_string(header->version) + "; known is " +
           std::to_string(kCaptureRingVersion);
  }
  const std::uint64_t size = header->bytes;
  if (size > ring.size() - kCaptureRecordsAt || size < kLeastCaptureBytes ||
      !std::has_single_bit(size)) {
    return "its size makes no sense";
  }
  header_ = header;
  records_ = ring.data() + kCaptureRecordsAt;
  page_ = &page;
  size_ = size;
  snap_ = header->snap;
  rate_ = Rate{header->rate_bps};
  epoch_unix_ns_ = header->epoch_unix_ns;
  begin_ = Picos{header->begin_picos};
  return {};
}

std::uint64_t CaptureRingReader::written() const {
  return header_->written.load(std::memory_order_acquire);
}
std::uint64_t CaptureRingReader::frames() const {
  return header_->frames.load(std::memory_order_relaxed);
}
std::uint64_t CaptureRingReader::missed() const {
  return header_->missed.load(std::memory_order_relaxed);
}

void CaptureRingReader::copy(std::uint64_t at, void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  const std::uint64_t offset = at & (size_ - 1);
  const std::size_t first = std::min<std::size_t>(bytes, size_ - offset);
  std::memcpy(to, records_ + offset, first);
  std::memcpy(static_cast<std::byte*>(to) + first, records_, bytes - first);
}

bool CaptureRingReader::fail(const char* what) {
  error_ = "byte " + std::to_string(read_) + " of the capture ring: " + what;
  return false;
}

bool CaptureRingReader::next(CapturedFrame& frame) {
  if (!error_.empty()) return false;
  const std::uint64_t there = written() - read_;
  if (there == 0) return false;
  if (there > size_ || there < kCaptureRecordBytes) return fail("more or less than fits");
  CaptureRecord record;
  copy(read_, &record, sizeof(record));
  if (record.kept > snap_ || record.kept > record.original ||
      record.bytes != capture_record_bytes(record.kept) || record.bytes > there) {
    return fail("a record whose lengths do not agree");
  }
  if (record.direction > static_cast<std::uint8_t>(CaptureDirection::outbound) ||
      record.fate > static_cast<std::uint8_t>(Fate::never_sent) ||
      record.reason > kCaptureReasons || record.at_picos < 0) {
    return fail("a record that says what there is not");
  }
  bytes_.resize(record.kept);
  copy(read_ + kCaptureRecordBytes, bytes_.data(), record.kept);
  std::string_view reason;
  if (record.reason != 0) {
    const auto& text = header_->reasons[record.reason - 1U];
    reason = std::string_view(text.data(), ::strnlen(text.data(), text.size()));
  }
  read_ += record.bytes;
  page_->read.store(read_, std::memory_order_release);

  finish_bytes(record);
  comment_ = capture_comment(record.flags, static_cast<Fate>(record.fate), reason);
  frame = {};
  frame.at = Picos{record.at_picos};
  frame.bytes = bytes_;
  frame.original_bytes = record.original;
  frame.direction = static_cast<CaptureDirection>(record.direction);
  frame.crc_error = (record.flags & packet_flag::corrupt) != 0;
  frame.comment = comment_;
  return true;
}

void CaptureRingReader::finish_bytes(const CaptureRecord& record) {
  if (record.kept != record.original) return;  // the end is not there
  if ((record.flags & kCaptureWithoutIcrc) != 0 && bytes_.size() > wire::kEthernetBytes) {
    std::size_t l3 = wire::kEthernetBytes;
    if (wire::load_be16(bytes_.data() + l3 - 2) == wire::kEtherTypeVlan) l3 += wire::kVlanBytes;
    if (bytes_.size() >=
            l3 + wire::kIpv6Bytes + wire::kUdpBytes + wire::kBthBytes + wire::kIcrcBytes ||
        (bytes_.size() >=
             l3 + wire::kIpv4Bytes + wire::kUdpBytes + wire::kBthBytes + wire::kIcrcBytes &&
         wire::load_be16(bytes_.data() + l3 - 2) == wire::kEtherTypeIpv4)) {
      const std::size_t at = bytes_.size() - wire::kIcrcBytes;
      wire::store_le32(bytes_.data() + at, wire::icrc_of_frame(bytes_, l3, at));
    }
  }
  if ((record.flags & packet_flag::corrupt) != 0 && !bytes_.empty()) {
    bytes_.back() ^= std::byte{1};
  }
}

}  // namespace paceline
