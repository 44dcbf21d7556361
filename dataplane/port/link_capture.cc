#include "dataplane/port/link_capture.h"

#include <array>
#include <cassert>
#include <cstring>

#include "dataplane/wire/endian.h"
#include "dataplane/wire/headers.h"
#include "dataplane/wire/pause_frame.h"

namespace paceline {

namespace {

constexpr std::int64_t kEpochSecond = 1'000'000'000;

const char* place_of(Fate fate) {
  switch (fate) {
    case Fate::lost:
      return "lost on this link: ";
    case Fate::refused:
      return "dropped at the end of this link: ";
    case Fate::never_sent:
      return "dropped in front of this link: ";
    case Fate::delivered:
      break;
  }
  return "";
}

// Pause frames have no sender's address in the model: each direction of a link has one.
wire::MacAddress pausing(bool forward) {
  return wire::MacAddress::local(forward ? 0xFFFE : 0xFFFF);
}

}  // namespace

LinkCapture::LinkCapture(std::ostream& out, const LinkCaptureConfig& config)
    : writer_(out, config.application),
      fraction_(picos_from_nanos(config.epoch.count % kEpochSecond)),
      most_bytes_(config.most_bytes),
      most_packets_(config.most_packets) {
  writer_.add_interface(config.name, config.description, config.rate.bps,
                        config.epoch.count / kEpochSecond);
}

void LinkCapture::note(std::string_view text) {
  if (!comment_.empty()) comment_ += "; ";
  comment_ += text;
}

void LinkCapture::show(Picos now, bool forward, const Packet& packet) {
  ++seen_;
  shown_ = {};
  shown_.at = now + fraction_;
  shown_.direction = forward ? CaptureDirection::outbound : CaptureDirection::inbound;
  comment_.clear();
  bytes_.clear();
  const auto add = [this](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes.size());
    std::memcpy(bytes_.data() + at, bytes.data(), bytes.size());
  };
  if ((packet.flags & packet_flag::pfc) != 0) {
    add(wire::build_pause_frame(pausing(forward), packet.traffic_class, packet.entropy != 0));
    return;
  }
  assert(packet.payload_kind != PayloadKind::elided);
  add(packet.header_view());
  if (packet.has_bytes()) add(packet.payload_view());
  if (packet.bth_offset != 0) {
    std::array<std::byte, wire::kIcrcBytes> trailer;
    wire::store_le32(trailer.data(), packet.icrc);
    add(trailer);
  }
  if ((packet.flags & packet_flag::trimmed) != 0) note("trimmed on the way");
  if ((packet.flags & packet_flag::duplicate) != 0) note("a copy made on the way");
  if ((packet.flags & packet_flag::corrupt) != 0) {
    // The model says only that a bit is wrong. Here it is the last.
    bytes_.back() ^= std::byte{1};
    shown_.crc_error = true;
    note("bit error on the way");
  }
}

void LinkCapture::settle(Fate fate, const char* reason) {
  if (fate != Fate::delivered) {
    ++dropped_;
    note(std::string(place_of(fate)) + reason);
  }
  if (full_at_ != kNever) return;
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
