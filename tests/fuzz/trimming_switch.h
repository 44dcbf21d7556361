// The last switch before an engine of the state-machine fuzzer.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/port/port.h"
#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/extensions/trim.h"
#include "dataplane/wire/extensions/xack.h"
#include "tests/fuzz/promise.h"

namespace paceline::fuzz {

// What is left of a packet that a switch trims; it has a payload.
inline void trim(Packet& packet, const WireAccounting& wire) {
  wire::ParsedPacket whole;
  const auto parsed = wire::parse_headers(packet.header_view(), packet.payload_bytes, whole);
  promise(wire::patch_trimmed(packet.header_view(), 7), "a packet of data cannot be trimmed");
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  packet.flags |= packet_flag::trimmed;
  packet.traffic_class = 7;
  packet.wire_bytes = wire.wire_bytes(packet.frame_bytes(), 0);
  if (parsed != wire::ParseError::ok) return;
  wire::ParsedPacket left;
  promise(wire::parse_trimmed(packet.header_view(), left) == wire::ParseError::ok &&
              left.dest_qpn == whole.dest_qpn && left.psn == whole.psn &&
              left.payload_bytes == whole.payload_bytes,
          "a trimmed packet does not say which one it was");
}

// The last switch before an engine: cuts off the payload of every so manieth packet, and puts
// records into those that collect them.
class TrimmingSwitch final : public Port {
 public:
  // The rate in every record, so that the test recognizes a record that comes back.
  static constexpr std::uint32_t kRateMbps = 100'000;

  explicit TrimmingSwitch(Port& behind) : behind_(behind), wire_(behind.info().wire) {}

  std::uint32_t trim_every = 0;  // 0: never
  std::uint16_t hops = 1;        // switches on the way, at most kIntHops
  std::uint16_t path = 1;
  std::uint32_t queue_bytes = 0;
  bool honest_peers = true;  // whatever records come back are ours

  std::uint64_t trimmed() const { return trimmed_; }
  void count_trimmed() { ++trimmed_; }

  std::size_t rx(std::span<Packet*> burst) override {
    const std::size_t n = behind_.rx(burst);
    for (Packet* packet : burst.first(n)) pass(*packet);
    return n;
  }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    return behind_.tx(now, traffic_class, burst);
  }
  Picos rx_ready_at() const override { return behind_.rx_ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return behind_.packets(); }
  PortInfo info() const override { return behind_.info(); }

 private:
  void pass(Packet& packet) {
    if ((packet.flags & packet_flag::telemetry) != 0) record(packet);
    if (honest_peers) check_answer(packet);
    sent_bytes_ += packet.wire_bytes;
    if (packet.payload_bytes == 0 || packet.bth_offset == 0 || trim_every == 0) return;
    if (++data_ % trim_every != 0) return;
    trim(packet, wire_);
    ++trimmed_;
  }

  void record(Packet& packet) {
    while (packet.records < hops) {
      IntHop hop;
      hop.rate_mbps = kRateMbps;
      hop.queue_bytes = queue_bytes;
      hop.sent_bytes = static_cast<std::uint32_t>(sent_bytes_);
      hop.time_ns = static_cast<std::uint32_t>(to_nanos(packet.time).count);
      wire::store_int_record(tail_of(packet) + packet.records * wire::kIntRecordBytes, hop);
      packet.records = (packet.records + 1U) & 7U;
    }
    packet.path = path & 0x1FFFU;
  }

  // Records that come back are as many as switches there can be, and theirs.
  static void check_answer(const Packet& packet) {
    wire::ParsedPacket parsed;
    if (packet.payload_bytes != 0 ||
        wire::parse_headers(packet.header_view(), 0, parsed) != wire::ParseError::ok ||
        parsed.opcode != wire::Opcode::xack) {
      return;
    }
    wire::Xack xack;
    promise(wire::parse_xack(wire::xack_body(packet.header_view(), parsed), xack) ==
                wire::ParseError::ok,
            "an engine has sent an XACK that does not parse");
    for (std::size_t at = 0; at < xack.records.size(); at += wire::kIntRecordBytes) {
      promise(wire::load_int_record(xack.records.data() + at).rate_mbps == kRateMbps,
              "a record has come back that no switch has written");
    }
  }

  Port& behind_;
  WireAccounting wire_;
  std::uint64_t data_ = 0;
  std::uint64_t trimmed_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace paceline::fuzz
