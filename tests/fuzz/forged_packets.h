// Packets as a peer, a switch or somebody else might send them to a corner of the pair: right in
// their form, anything in their meaning.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/extensions/xack.h"
#include "tests/fuzz/script_input.h"

namespace paceline::fuzz {

class ForgedPackets {
 public:
  explicit ForgedPackets(Corner& corner) : at_(corner), in_(corner.in) {}

  // A transport packet: any opcode, with numbers near the expected ones.
  Packet* data() {
    Packet* packet = at_.pair.pool.alloc();
    const std::uint8_t flags = in_.byte();
    const auto opcode = static_cast<wire::Opcode>(opcode_byte());
    const wire::OpcodeProperties& row = wire::properties(opcode);
    const bool known = row.known() && !row.is_control();
    wire::TransportFields f;
    f.opcode = known ? opcode : wire::Opcode::rc_send_only;
    f.dest_qpn = (flags & 4U) != 0 && in_.byte() == 0 ? in_.word() & 0xFF'FFFFU : at_.qp();
    const auto attributes = at_.end().engine.query_qp(at_.qp());
    const bool response = row.is_response();
    const Psn near = !attributes ? Psn(0) : response ? attributes->sq_psn : attributes->rq_psn;
    f.psn = Psn((near.value() + static_cast<std::uint32_t>(static_cast<std::int8_t>(in_.byte()))) &
                0xFF'FFFFU);
    f.ack_request = (flags & 8U) != 0;
    f.solicited = (flags & 16U) != 0;
    f.becn = in_.byte() == 1;
    const bool payload = !known || row.carries_payload();
    f.payload_bytes =
        payload
            ? static_cast<std::uint32_t>(std::min<std::uint64_t>(at_.length(), Corner::kMtu + 60))
            : 0;
    if (f.opcode == wire::Opcode::xack) {
      finish(*packet, xack_packet(header_to_here(flags & 0xE3U), *packet, near, f));
      return packet;
    }
    wire::Extensions ext{};
    ext.reth = {at_.address(), at_.key(at_.end()), reth_length()};
    ext.atomic = {at_.address(), at_.key(at_.end()), in_.byte(), in_.byte()};
    ext.aeth = {static_cast<std::uint8_t>(in_.byte()), in_.byte()};
    ext.immediate = 5;
    ext.xrc_srq = at_.end().srq + (flags & 2U);
    ext.invalidate_rkey = at_.key(at_.end());
    ext.deth = {in_.byte() % 8 == 0 ? 1 : EnginePair::kQkey, at_.other().qp[3]};
    const wire::HeaderTemplate header = header_to_here(flags & 0xE3U);
    packet->header_bytes = static_cast<std::uint16_t>(
        wire::build_packet(header, wire::HeaderBuffer{packet->header}, f, ext));
    packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    if (!known) packet->header[header.bth_offset()] = static_cast<std::byte>(opcode);
    const std::uint32_t padded = (f.payload_bytes + 3U) & ~3U;
    packet->payload_kind = padded == 0 ? PayloadKind::none : PayloadKind::owned;
    packet->payload_bytes = static_cast<std::uint16_t>(padded);
    std::memset(packet->payload, 0x5C, padded);
    packet->ecn = (flags & 2U) != 0 ? Ecn::ce : Ecn::ect0;
    packet->icrc = wire::icrc(packet->header_view(), header.l3_offset, packet->payload_view());
    return packet;
  }

  // As a packet arrives that has passed switches which trim it, record, or both.
  Packet* after_switches(Packet* packet) {
    const std::uint8_t how = in_.byte();
    if ((how & 1U) != 0 && at_.pair.telemetry() && packet->header_bytes <= kMaxHeaderBytes) {
      packet->flags |= packet_flag::telemetry;
      packet->records = any_records(tail_of(*packet)) & 7U;
      packet->path = (how >> 4U) & 0xFU;
    }
    if ((how & 2U) != 0 && packet->payload_bytes != 0) {
      trim(*packet, at_.end().port.info().wire);
      at_.end().last_switch.count_trimmed();
    } else if ((how & 4U) != 0) {
      // The trim mark can be forged too: the packet then has no payload to lose, or keeps it.
      packet->flags |= packet_flag::trimmed;
      at_.end().last_switch.count_trimmed();
    }
    return packet;
  }

  // A congestion-control packet.
  Packet* control() {
    Packet* packet = at_.pair.pool.alloc();
    const std::uint8_t kind = in_.byte();
    const wire::HeaderTemplate header = header_to_here(kind & 0xE0U);
    const wire::HeaderBuffer out{packet->header};
    const Psn sequence(in_.byte());
    const auto traffic_class =
        static_cast<std::uint8_t>(in_.byte() % 2 == 0 ? kDefaultDataClass : 1);
    std::size_t bytes = 0;
    if ((kind & 0x1CU) == 0x1CU) {
      NoticeMessage m;
      m.traffic_class = traffic_class;
      m.feedback = static_cast<std::uint8_t>(1 + in_.byte() % kMostFeedback);
      m.dest_qpn =
          in_.byte() < 200 ? at_.other().qp[in_.byte() % End::kSlots] : in_.word() & wire::kMaxQpn;
      bytes = wire::build_control(header, out, sequence, m);
      finish(*packet, bytes);
      return packet;
    }
    switch (kind % 3) {
      case 0: {
        HelloMessage m;
        m.reply = in_.byte() % 2 != 0;
        m.traffic_class = traffic_class;
        m.features = in_.byte();
        m.version_max = in_.byte();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
      case 1: {
        RequestMessage m;
        m.traffic_class = traffic_class;
        m.close = in_.byte() % 4 == 0;
        m.echo_wanted = static_cast<EcnEcho>(in_.byte() % 3);
        m.channel = in_.byte() % 3;
        m.req_seq = in_.byte();
        m.grant_echo = in_.byte();
        m.sent_total = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.unscheduled_total = in_.word();
        m.demand_bytes = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.tx_cap_mbps = in_.word();
        m.timestamp_ns = in_.word();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
      default: {
        GrantMessage m;
        m.traffic_class = traffic_class;
        const std::uint8_t flags = in_.byte();
        m.hold = (flags & 1U) != 0;
        m.revoke = (flags & 2U) != 0;
        m.queue_us = flags;
        m.channel = in_.byte() % 3;
        m.grant_seq = in_.byte();
        m.rate_mbps = in_.word();
        m.limit_total = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.lease_us = in_.byte() < 250 ? in_.byte() : in_.word();
        m.effective_delay_us = in_.byte() < 250 ? 0 : in_.word();
        m.unscheduled_budget = in_.word();
        m.active_senders = in_.byte();
        m.priority = m.active_senders % 8;
        m.timestamp_echo_ns = in_.word();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
    }
    finish(*packet, bytes);
    return packet;
  }

 private:
  wire::HeaderTemplate header_to_here(std::uint8_t flags) {
    wire::FlowAddressing flow;
    flow.source = EnginePair::ip_of((flags & 1U) != 0 ? 7 : 1 - at_.side);
    flow.destination = EnginePair::ip_of(at_.side);
    flow.source_mac = wire::MacAddress::local(2 - at_.side);
    flow.destination_mac = wire::MacAddress::local(1 + at_.side);
    flow.dscp = wire::kDefaultDscpMap.dscp(static_cast<std::uint8_t>(flags >> 5));
    flow.ecn = (flags & 2U) != 0 ? Ecn::ce : Ecn::ect0;
    return wire::make_header_template(flow);
  }

  // An extended acknowledgement, of what may be under way or not.
  std::size_t xack_packet(const wire::HeaderTemplate& header, Packet& packet, Psn near,
                          const wire::TransportFields& f) {
    wire::Xack x;
    x.aeth = {in_.byte(), in_.byte()};
    x.trigger = near + in_.byte();
    x.trigger_port = 0xC123;
    x.bitmap_offset = in_.byte() < 200 ? 0 : in_.byte();
    for (std::uint64_t& word : x.bitmap) word = std::uint64_t{in_.word()} << 32 | in_.word();
    x.trimmed = f.solicited;
    std::array<std::byte, kIntHops * wire::kIntRecordBytes> records;
    if (at_.pair.telemetry()) {
      x.records = std::span(records).first(any_records(records.data()) * wire::kIntRecordBytes);
      x.path = in_.byte() % 4;
    }
    return wire::build_xack(header, wire::HeaderBuffer{packet.header}, f.dest_qpn, f.psn, x);
  }

  // What a switch may have put into a packet, or anybody into an XACK: how many records there are.
  std::uint16_t any_records(std::byte* out) {
    const auto count = static_cast<std::uint16_t>(in_.byte() % (kIntHops + 1));
    for (std::uint16_t i = 0; i < count; ++i) {
      IntHop hop;
      const std::uint32_t rates[] = {TrimmingSwitch::kRateMbps, 1, 0, 0xFF'FFFF};
      hop.rate_mbps = in_.pick(rates);
      hop.queue_bytes = in_.byte() % 2 == 0 ? in_.byte() * 1024U : ~0U;
      hop.sent_bytes = in_.word();
      hop.time_ns = in_.word();
      wire::store_int_record(out + i * wire::kIntRecordBytes, hop);
    }
    return count;
  }

  // A packet of headers alone.
  static void finish(Packet& packet, std::size_t header_bytes) {
    packet.header_bytes = static_cast<std::uint16_t>(header_bytes);
    packet.bth_offset = wire::kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes;
    packet.payload_kind = PayloadKind::none;
    packet.payload_bytes = 0;
    packet.icrc = wire::icrc(packet.header_view(), wire::kEthernetBytes);
  }

  // Most opcodes mean nothing: those that do come up more often.
  std::uint8_t opcode_byte() {
    const std::uint8_t b = in_.byte();
    if (b >= 0xE8 && b < 0xF0) return static_cast<std::uint8_t>(wire::Opcode::xack);
    if (b >= 0xF0) return in_.byte();
    if (b < 0x80) return b & 0x1F;  // RC
    return b < 0xA0 ? b & 0x3F : b < 0xC0 ? 0x20 + (b & 0x0F) : b < 0xD8 ? 0x64 + b % 2 : 0x81;
  }

  std::uint32_t reth_length() {
    const std::uint32_t list[] = {0,
                                  1,
                                  8,
                                  Corner::kMtu,
                                  Corner::kMtu + 1,
                                  3 * Corner::kMtu,
                                  End::kBytes,
                                  0x8000'0001U,
                                  0xFFFF'FFFFU,
                                  in_.byte()};
    return in_.pick(list);
  }

  Corner& at_;
  Input& in_;
};

}  // namespace paceline::fuzz
