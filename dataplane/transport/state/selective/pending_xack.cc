#include "dataplane/transport/state/selective/pending_xack.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace paceline::transport {

void PendingXack::on_packet(const wire::ParsedPacket& parsed, const Packet& packet, Picos at) {
  trigger_ = parsed.psn;
  trigger_port_ = parsed.udp_source_port;
  arrival_ = at;
  record_count_ = 0;
  if ((packet.flags & packet_flag::telemetry) != 0) [[unlikely]] {
    record_count_ = std::min<std::uint16_t>(packet.records, kIntHops);
    path_ = packet.path;
    std::memcpy(records_.data(), tail_of(packet), record_count_ * wire::kIntRecordBytes);
  }
  if (parsed.ecn != Ecn::ce) return;
  marked_ = true;
  marked_port_ = parsed.udp_source_port;
  marked_bytes_ += packet.wire_bytes;
}

wire::Xack PendingXack::take(Picos now, bool records) {
  wire::Xack xack;
  xack.trigger = trigger_;
  xack.trigger_port = trigger_port_;
  xack.duplicate = std::exchange(duplicate_, false);
  xack.marked = std::exchange(marked_, false);
  xack.trimmed = std::exchange(trimmed_, false);
  xack.marked_port = marked_port_;
  xack.marked_bytes = marked_bytes_;
  xack.arrival_ns = static_cast<std::uint32_t>(to_nanos(arrival_).count);
  const std::int64_t hold = (now - arrival_).count / 1000;
  xack.hold_ns = static_cast<std::uint16_t>(std::min<std::int64_t>(hold, 0xFFFF));
  const std::uint16_t count = std::exchange(record_count_, std::uint16_t{0});
  if (count != 0 && records) [[unlikely]] {
    xack.path = path_;
    xack.records = std::span(records_).first(count * wire::kIntRecordBytes);
  }
  return xack;
}

}  // namespace paceline::transport
