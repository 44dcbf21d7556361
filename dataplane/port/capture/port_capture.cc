#include "dataplane/port/capture/port_capture.h"

#include <cstring>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

constexpr std::int64_t kNanosOfASecond = 1'000'000'000;

}  // namespace

void frame_of(const Packet& packet, std::vector<std::byte>& out) {
  const std::size_t payload = packet.has_bytes() ? packet.payload_bytes : 0;
  const std::size_t icrc = packet.bth_offset != 0 ? wire::kIcrcBytes : 0;
  out.resize(packet.header_bytes + payload + icrc);
  std::memcpy(out.data(), packet.header.data(), packet.header_bytes);
  if (payload != 0) std::memcpy(out.data() + packet.header_bytes, packet.bytes(), payload);
  if (icrc != 0) wire::store_le32(out.data() + packet.header_bytes + payload, packet.icrc);
}

PortCapture::PortCapture(std::ostream& out, const PortCaptureConfig& config)
    : writer_(out, config.application),
      fraction_(picos_from_nanos(config.epoch.count % kNanosOfASecond)),
      begin_(config.begin),
      most_bytes_(config.most_bytes),
      most_packets_(config.most_packets) {
  writer_.add_interface(config.name, config.description, config.rate.bps,
                        config.epoch.count / kNanosOfASecond, config.snap);
}

void PortCapture::frame(Picos now, CaptureDirection direction, const Packet& packet) {
  frame_of(packet, bytes_);
  frame(now, direction, bytes_);
}

void PortCapture::frame(Picos now, CaptureDirection direction, std::span<const std::byte> bytes) {
  CapturedFrame captured;
  captured.at = now;
  captured.bytes = bytes;
  captured.direction = direction;
  frame(captured);
}

void PortCapture::frame(CapturedFrame frame) {
  ++seen_;
  if (full_) return;
  frame.at = frame.at + fraction_;
  if (written_ == most_packets_ ||
      writer_.bytes() + PcapngWriter::frame_bytes(frame) > most_bytes_) {
    full_ = true;
    return;
  }
  writer_.frame(frame);
  ++written_;
}

void PortCapture::finish(Picos end, std::uint64_t lost) {
  CaptureTotals totals;
  totals.begin = begin_ + fraction_;
  totals.end = end + fraction_;
  totals.seen = seen_ + lost;
  totals.dropped = lost;
  if (full_) totals.comment = "limit reached: later packets are counted only";
  writer_.totals(totals);
}

std::size_t CapturedPort::rx(std::span<Packet*> burst) {
  const std::size_t n = behind_.rx(burst);
  for (std::size_t i = 0; i < n; ++i) capture_.frame(now_, CaptureDirection::inbound, *burst[i]);
  return n;
}

std::size_t CapturedPort::tx(Picos now, std::uint8_t traffic_class,
                             std::span<Packet* const> burst) {
  if (offered_.size() < burst.size()) offered_.resize(burst.size());
  for (std::size_t i = 0; i < burst.size(); ++i) frame_of(*burst[i], offered_[i]);
  const std::size_t n = behind_.tx(now, traffic_class, burst);
  for (std::size_t i = 0; i < n; ++i) {
    capture_.frame(now, CaptureDirection::outbound, std::span<const std::byte>(offered_[i]));
  }
  return n;
}

}  // namespace paceline
