#include "tests/wire/checks/parse_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::test {
namespace {

using namespace wire;

using Buffer = std::array<std::byte, kHeaderBufferBytes>;
// With what an XACK with telemetry has beyond that.
using LongBuffer = std::array<std::byte, kHeaderBufferBytes + kXackSpillBytes>;

template <class Message>
std::size_t rebuild_control(const HeaderTemplate& header, HeaderBuffer out, const ParsedPacket& p,
                            std::span<const std::byte> body) {
  Message message;
  if (parse_control(body, message) != ParseError::ok) return 0;
  return build_control(header, out, p.psn, message);
}

// Header bytes written, or 0 for a control message whose body is refused.
std::size_t rebuild(const ParsedPacket& p, std::span<const std::byte> bytes, HeaderBuffer out) {
  const HeaderTemplate header = make_header_template(addressing_of(p));
  const bool xack = p.properties.operation == Operation::xack;
  const auto body = xack || p.properties.is_control() ? control_body(bytes, p) : bytes;
  if (xack) {
    Xack message;
    if (parse_xack(body, message) != ParseError::ok) return 0;
    return build_xack(header, out, p.dest_qpn, p.psn, message);
  }
  switch (p.properties.operation) {
    case Operation::hello:
      return rebuild_control<HelloMessage>(header, out, p, body);
    case Operation::request:
      return rebuild_control<RequestMessage>(header, out, p, body);
    case Operation::grant:
      return rebuild_control<GrantMessage>(header, out, p, body);
    case Operation::notice:
      return rebuild_control<NoticeMessage>(header, out, p, body);
    default:
      break;
  }
  const TransportFields fields{p.opcode,      p.dest_qpn,  p.psn,  p.payload_bytes,
                               p.ack_request, p.solicited, p.fecn, p.becn};
  return build_packet(header, out, fields, p.ext);
}

std::string check_rebuilt(const ParsedPacket& p, std::span<const std::byte> bytes) {
  LongBuffer out;
  const std::size_t n = rebuild(p, bytes, HeaderBuffer{out.data(), kHeaderBufferBytes});
  if (n == 0) return {};
  ParsedPacket again;
  const ParseError e = parse_headers(std::span(out).first(n), p.padded_bytes(), again);
  if (e != ParseError::ok) {
    return "rebuilt headers are refused: " + std::string(parse_error_name(e));
  }
  // A control message, or an XACK, is rebuilt in the form of our version: canonical flags, no
  // appended bytes, and without the transport fields it has no use for.
  if (p.properties.is_control() || p.properties.operation == Operation::xack) return {};
  return same_packet(p, again) ? std::string{} : "rebuilt headers parse to another packet";
}

std::string check_offsets(const ParsedPacket& p, std::size_t size) {
  const std::size_t l3 = p.has_vlan ? kEthernetBytes + kVlanBytes : kEthernetBytes;
  const std::size_t bth = l3 + (p.ipv6 ? kIpv6Bytes : kIpv4Bytes) + kUdpBytes;
  if (p.l3_offset != l3 || p.bth_offset != bth) return "offsets of IP or BTH are wrong";
  if (p.header_bytes < bth + kBthBytes + p.properties.extension_bytes) return "headers too short";
  if (p.header_bytes > size) return "headers go beyond the input";
  if (p.pad > 3 || p.padded_bytes() % 4 != 0) return "payload and pad do not add up";
  if (!p.properties.carries_payload() && p.padded_bytes() != 0) return "payload that may not be";
  return p.properties.known() ? std::string{} : "accepted an unknown opcode";
}

template <class Message>
bool rewrite_differs(std::span<const std::byte> body) {
  Message message;
  if (parse_control(body, message) != ParseError::ok) return false;
  FlowAddressing flow;
  flow.source = IpAddress::v4(1);
  flow.destination = IpAddress::v4(2);
  Buffer first;
  Buffer second;
  first.fill(std::byte{0});
  second.fill(std::byte{0});
  const HeaderTemplate header = make_header_template(flow);
  const std::size_t n = build_control(header, first, Psn{}, message);
  Message again;
  const auto rewritten = std::span<const std::byte>(first).first(n).subspan(header.header_bytes);
  if (parse_control(rewritten, again) != ParseError::ok) return true;
  build_control(header, second, Psn{}, again);
  return first != second;
}

// The same of an XACK: everything in it, and where its records are.
bool rewritten_xack_differs(std::span<const std::byte> body) {
  Xack message;
  if (parse_xack(body, message) != ParseError::ok) return false;
  if (message.records.size() % kIntRecordBytes != 0 ||
      message.records.size() > kIntHops * kIntRecordBytes) {
    return true;
  }
  FlowAddressing flow;
  flow.source = IpAddress::v4(1);
  flow.destination = IpAddress::v4(2);
  const HeaderTemplate header = make_header_template(flow);
  LongBuffer out;
  const std::size_t n =
      build_xack(header, HeaderBuffer{out.data(), kHeaderBufferBytes}, 17, Psn{}, message);
  Xack again;
  const auto rewritten = std::span<const std::byte>(out).first(n).subspan(header.header_bytes);
  if (parse_xack(rewritten, again) != ParseError::ok) return true;
  return again.trigger != message.trigger || again.bitmap != message.bitmap ||
         again.path != message.path ||
         !std::equal(again.records.begin(), again.records.end(), message.records.begin(),
                     message.records.end());
}

}  // namespace

FlowAddressing addressing_of(const ParsedPacket& p) {
  FlowAddressing flow;
  flow.source_mac = p.source_mac;
  flow.destination_mac = p.destination_mac;
  flow.source = p.source;
  flow.destination = p.destination;
  flow.udp_source_port = p.udp_source_port;
  flow.dscp = p.dscp;
  flow.ecn = p.ecn;
  flow.ttl = p.ttl;
  flow.pkey = p.pkey;
  flow.migrated = p.migrated;
  flow.ip_identification = p.ip_identification;
  flow.dont_fragment = p.dont_fragment;
  flow.flow_label = p.flow_label;
  if (p.has_vlan) flow.vlan_tci = p.vlan_tci;
  return flow;
}

bool same_packet(const ParsedPacket& a, const ParsedPacket& b) {
  const auto rest = [](const ParsedPacket& p) {
    return std::tuple(p.properties, p.payload_bytes, p.header_bytes, p.l3_offset, p.bth_offset,
                      p.ipv6, p.ecn, p.dscp, p.udp_source_port, p.ip_identification,
                      p.dont_fragment, p.ttl, p.flow_label, p.has_vlan, p.vlan_tci);
  };
  return a.bth() == b.bth() && rest(a) == rest(b) && a.source_mac == b.source_mac &&
         a.destination_mac == b.destination_mac && a.source == b.source &&
         a.destination == b.destination && a.ext == b.ext;
}

std::string check_frame(std::span<const std::byte> bytes) {
  ParsedPacket strict;
  ParsedPacket p;
  const ParseError verdict = parse_frame(bytes, strict);
  const ParseError lenient = parse_frame(bytes, {false, false}, p);
  if (verdict == ParseError::ok && lenient != ParseError::ok) return "stricter accepts more";
  if (lenient != ParseError::ok) return {};
  if (verdict == ParseError::ok && !same_packet(strict, p)) return "options change the result";
  if (std::string wrong = check_offsets(p, bytes.size()); !wrong.empty()) return wrong;
  if (std::size_t{p.header_bytes} + p.padded_bytes() + kIcrcBytes > bytes.size()) {
    return "payload goes beyond the frame";
  }
  ParsedPacket separate;
  const auto headers = bytes.first(p.header_bytes);
  const ParseError e = parse_headers(headers, p.padded_bytes(), {false, false}, separate);
  if (e != ParseError::ok || !same_packet(p, separate)) return "the two forms disagree";
  return check_rebuilt(p, bytes);
}

std::string check_headers(std::span<const std::byte> bytes, std::uint32_t padded_payload_bytes) {
  ParsedPacket p;
  if (parse_headers(bytes, padded_payload_bytes, {false, false}, p) != ParseError::ok) return {};
  if (std::string wrong = check_offsets(p, bytes.size()); !wrong.empty()) return wrong;
  if (p.header_bytes != bytes.size()) return "headers do not end where the input does";
  if (p.padded_bytes() != padded_payload_bytes) return "payload length is not the one given";
  return check_rebuilt(p, bytes);
}

std::string check_control(std::span<const std::byte> bytes) {
  if (rewrite_differs<HelloMessage>(bytes)) return "HELLO changes when written again";
  if (rewrite_differs<RequestMessage>(bytes)) return "REQUEST changes when written again";
  if (rewrite_differs<GrantMessage>(bytes)) return "GRANT changes when written again";
  if (rewrite_differs<NoticeMessage>(bytes)) return "NOTICE changes when written again";
  if (rewritten_xack_differs(bytes)) return "XACK changes when written again";
  return {};
}

}  // namespace paceline::test
