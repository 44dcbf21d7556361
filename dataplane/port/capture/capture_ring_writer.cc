#include "dataplane/port/capture/capture_ring_writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>
#include <string_view>

#include "dataplane/port/capture/shown_frame.h"

namespace paceline {

CaptureRingWriter::CaptureRingWriter(std::span<std::byte> ring, const CaptureReaderPage& reader,
                                     const Settings& settings)
    : header_(*new (ring.data()) CaptureRingHeader),
      reader_(reader),
      records_(ring.data() + kCaptureRecordsAt),
      size_(ring.size() - kCaptureRecordsAt),
      snap_(settings.snap) {
  assert(ring.size() >= kCaptureRecordsAt + kLeastCaptureBytes && std::has_single_bit(size_));
  assert(snap_ >= kLeastCaptureSnap && snap_ <= kMostCaptureSnap);
  header_.snap = snap_;
  header_.bytes = size_;
  header_.rate_bps = settings.rate.bps;
}

void CaptureRingWriter::begin(Picos now, std::int64_t unix_ns) {
  header_.epoch_unix_ns = unix_ns - to_nanos(now).count;
  header_.begin_picos = now.count;
}

bool CaptureRingWriter::has_room(std::uint64_t bytes) {
  const std::uint64_t end = staged_.end + bytes;
  if (end - read_ <= size_) [[likely]]
    return true;
  const std::uint64_t read = reader_.read.load(std::memory_order_acquire);
  // The reader claims more than was published, or less than the ring still has: that is impossible.
  if (published_.end - read > size_) return false;
  read_ = read;
  return end - read_ <= size_;
}

void CaptureRingWriter::put(std::uint64_t at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::uint64_t offset = at & (size_ - 1);
  const std::size_t first = std::min<std::size_t>(bytes.size(), size_ - offset);
  std::memcpy(records_ + offset, bytes.data(), first);
  std::memcpy(records_, bytes.data() + first, bytes.size() - first);
}

void CaptureRingWriter::stage(Picos now, CaptureDirection direction, const Packet& packet) {
  stage(now, direction, packet, direction == forward_);
}

void CaptureRingWriter::stage(Picos now, CaptureDirection direction, const Packet& packet,
                              bool forward) {
  ++staged_.frames;
  const ShownFrame frame(packet, forward);
  CaptureRecord record;
  record.original = static_cast<std::uint32_t>(frame.bytes());
  record.kept = std::min(record.original, snap_);
  record.bytes = static_cast<std::uint32_t>(capture_record_bytes(record.kept));
  shown_written_ = has_room(record.bytes);
  if (!shown_written_) {
    ++staged_.missed;
    return;
  }
  record.direction = static_cast<std::uint8_t>(direction);
  record.flags = packet.flags;
  if (without_icrc_ && packet.bth_offset != 0) record.flags |= kCaptureWithoutIcrc;
  record.at_picos = now.count;
  put(staged_.end, std::as_bytes(std::span(&record, 1)));
  std::uint64_t at = staged_.end + kCaptureRecordBytes;
  std::size_t left = record.kept;
  for (const auto piece : frame.pieces()) {
    const std::size_t n = std::min(left, piece.size());
    put(at, piece.first(n));
    at += n;
    left -= n;
  }
  shown_ = record;
  shown_at_ = staged_.end;
  staged_.end += record.bytes;
}

void CaptureRingWriter::publish(const Mark& mark) {
  staged_ = mark;
  published_ = mark;
  header_.frames.store(mark.frames, std::memory_order_relaxed);
  header_.missed.store(mark.missed, std::memory_order_relaxed);
  header_.written.store(mark.end, std::memory_order_release);
}

void CaptureRingWriter::show(Picos now, bool forward, const Packet& packet) {
  const CaptureDirection backward = forward_ == CaptureDirection::outbound
                                        ? CaptureDirection::inbound
                                        : CaptureDirection::outbound;
  stage(now, forward ? forward_ : backward, packet, forward);
}

void CaptureRingWriter::settle(Fate fate, const char* reason) {
  if (shown_written_ && fate != Fate::delivered) {
    shown_.fate = static_cast<std::uint8_t>(fate);
    shown_.reason = number_of(reason);
    put(shown_at_, std::as_bytes(std::span(&shown_, 1)));
  }
  publish();
}

// Reasons are literals: the same one is usually the same pointer. 0 when there are too many.
std::uint8_t CaptureRingWriter::number_of(const char* reason) {
  for (std::size_t i = 0; i < reason_count_; ++i) {
    if (reasons_[i] == reason || std::string_view(reasons_[i]) == reason) {
      return static_cast<std::uint8_t>(i + 1);
    }
  }
  if (reason_count_ == kCaptureReasons || *reason == '\0') return 0;
  const std::string_view text(reason);
  auto& place = header_.reasons[reason_count_];
  std::copy_n(text.data(), std::min(text.size(), place.size() - 1), place.data());
  reasons_[reason_count_++] = reason;
  return static_cast<std::uint8_t>(reason_count_);
}

}  // namespace paceline
