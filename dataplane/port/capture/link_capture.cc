#include "dataplane/port/capture/link_capture.h"

#include <cassert>

#include "dataplane/port/capture/shown_frame.h"

namespace paceline {

namespace {

constexpr std::int64_t kEpochSecond = 1'000'000'000;

}  // namespace

LinkCapture::LinkCapture(std::ostream& out, const LinkCaptureConfig& config)
    : writer_(out, config.application),
      fraction_(picos_from_nanos(config.epoch.count % kEpochSecond)),
      most_bytes_(config.most_bytes),
      most_packets_(config.most_packets) {
  writer_.add_interface(config.name, config.description, config.rate.bps,
                        config.epoch.count / kEpochSecond);
}

void LinkCapture::show(Picos now, bool forward, const Packet& packet) {
  ++seen_;
  shown_ = {};
  shown_.at = now + fraction_;
  shown_.direction = forward ? CaptureDirection::outbound : CaptureDirection::inbound;
  shown_flags_ = packet.flags;
  assert(packet.payload_kind != PayloadKind::elided);
  const ShownFrame frame(packet, forward);
  bytes_.clear();
  for (const auto piece : frame.pieces()) bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  if ((packet.flags & packet_flag::corrupt) != 0) {
    // The model says only that a bit is wrong. Here it is the last.
    bytes_.back() ^= std::byte{1};
    shown_.crc_error = true;
  }
}

void LinkCapture::settle(Fate fate, const char* reason) {
  if (fate != Fate::delivered) ++dropped_;
  if (full_at_ != kNever) return;
  comment_ = capture_comment(shown_flags_, fate, reason);
  shown_.bytes = bytes_;
  shown_.comment = comment_;
  if (written_ == most_packets_ ||
      writer_.bytes() + PcapngWriter::frame_bytes(shown_) > most_bytes_) {
    full_at_ = shown_.at - fraction_;
    return;
  }
  writer_.frame(shown_);
  ++written_;
}

void LinkCapture::finish(Picos end) {
  CaptureTotals totals;
  totals.begin = fraction_;
  totals.end = end + fraction_;
  totals.seen = seen_;
  totals.dropped = dropped_;
  if (full_at_ != kNever) totals.comment = "limit reached: later packets are counted only";
  writer_.totals(totals);
}

}  // namespace paceline
