#include "dataplane/wire/packet/parse.h"

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::wire {
namespace {

constexpr std::size_t kEtherTypeOffset = 12;
constexpr std::uint8_t kIpProtocolHopByHop = 0;
constexpr std::uint8_t kIpProtocolRouting = 43;
constexpr std::uint8_t kIpProtocolFragment = 44;
constexpr std::uint8_t kIpProtocolDestinationOptions = 60;

// Where the UDP header begins and how many bytes follow, by the IP header.
struct NetworkLayer {
  std::size_t udp_offset;
  std::size_t payload_bytes;  // UDP header included
};

// Precondition: size >= kEthernetBytes. Sets l3_offset, ipv6 and the tag.
template <bool kBrief>
[[gnu::always_inline]] inline ParseError parse_ethernet(const std::byte* p, std::size_t size,
                                                        ParsedPacket& out) {
  if constexpr (!kBrief) {
    out.destination_mac = MacAddress::load(p);
    out.source_mac = MacAddress::load(p + 6);
  }
  std::uint16_t ether_type = load_be16(p + kEtherTypeOffset);
  out.l3_offset = kEthernetBytes;
  out.has_vlan = false;
  out.vlan_tci = 0;
  if (ether_type == kEtherTypeServiceVlan) return ParseError::vlan_too_deep;
  if (ether_type == kEtherTypeVlan) {
    if (size < kEthernetBytes + kVlanBytes) return ParseError::too_short;
    out.has_vlan = true;
    out.vlan_tci = load_be16(p + kEthernetBytes);
    ether_type = load_be16(p + kEthernetBytes + 2);
    out.l3_offset = kEthernetBytes + kVlanBytes;
    if (ether_type == kEtherTypeVlan || ether_type == kEtherTypeServiceVlan) {
      return ParseError::vlan_too_deep;
    }
  }
  out.ipv6 = ether_type == kEtherTypeIpv6;
  return out.ipv6 || ether_type == kEtherTypeIpv4 ? ParseError::ok : ParseError::not_ip;
}

// `p` points at the IP header, `size` counts from there.
template <bool kBrief>
[[gnu::always_inline]] inline ParseError parse_ipv4(const std::byte* p, std::size_t size,
                                                    bool verify_checksum, ParsedPacket& out,
                                                    NetworkLayer& net) {
  if (size < kIpv4Bytes) return ParseError::too_short;
  const std::uint8_t version_and_length = load_u8(p);
  if (version_and_length != 0x45) {
    if (version_and_length >> 4 != 4) return ParseError::ip_version;
    return (version_and_length & 15U) > 5 ? ParseError::ip_options : ParseError::ip_length;
  }
  if (verify_checksum && !ipv4_checksum_ok(p)) return ParseError::ip_checksum;
  const std::uint16_t total = load_be16(p + 2);
  if (total < kIpv4Bytes) return ParseError::ip_length;
  const std::uint16_t fragment = load_be16(p + 6);
  if ((fragment & 0x3FFFU) != 0) return ParseError::fragment;  // more fragments, or an offset
  if (load_u8(p + 9) != kIpProtocolUdp) return ParseError::not_udp;

  const std::uint8_t tos = load_u8(p + 1);
  out.dscp = static_cast<std::uint8_t>(tos >> 2);
  out.ecn = static_cast<Ecn>(tos & 3U);
  out.source = IpAddress::load_v4(p + 12);
  if constexpr (!kBrief) {
    out.ip_identification = load_be16(p + 4);
    out.dont_fragment = (fragment & 0x4000U) != 0;
    out.ttl = load_u8(p + 8);
    out.flow_label = 0;
    out.destination = IpAddress::load_v4(p + 16);
  }
  net = {out.l3_offset + kIpv4Bytes, total - kIpv4Bytes};
  return ParseError::ok;
}

ParseError parse_ipv6(const std::byte* p, std::size_t size, ParsedPacket& out, NetworkLayer& net) {
  if (size < kIpv6Bytes) return ParseError::too_short;
  const std::uint32_t first_word = load_be32(p);
  if (first_word >> 28 != 6) return ParseError::ip_version;
  switch (load_u8(p + 6)) {
    case kIpProtocolUdp:
      break;
    case kIpProtocolFragment:
      return ParseError::fragment;
    case kIpProtocolHopByHop:
    case kIpProtocolRouting:
    case kIpProtocolDestinationOptions:
      return ParseError::ip_options;
    default:
      return ParseError::not_udp;
  }
  const auto traffic_class = static_cast<std::uint8_t>(first_word >> 20);
  out.dscp = static_cast<std::uint8_t>(traffic_class >> 2);
  out.ecn = static_cast<Ecn>(traffic_class & 3U);
  out.ip_identification = 0;
  out.dont_fragment = true;
  out.ttl = load_u8(p + 7);
  out.flow_label = first_word & 0xF'FFFFU;
  out.source = IpAddress::load_v6(p + 8);
  out.destination = IpAddress::load_v6(p + 24);
  // Both families share one address type, and a connection is found by address: a packet must not
  // be able to claim the other family's.
  if (out.source.is_v4() || out.destination.is_v4()) return ParseError::mapped_address;
  net = {out.l3_offset + kIpv6Bytes, load_be16(p + 4)};
  return ParseError::ok;
}

// A syndrome that means something, and is positive where only data or a result can follow.
bool aeth_fits(const Aeth& aeth, Operation operation) {
  return operation == Operation::acknowledge ? aeth.is_valid() : aeth.is_ack();
}

// `p` points behind the BTH; the opcode's extension_bytes are there. Reads the extensions in the
// order in which they follow on the wire.
ParseError load_extensions(const std::byte* p, const OpcodeProperties& properties,
                           Extensions& ext) {
  if (properties.has(opcode_flag::deth | opcode_flag::xrc_eth)) {  // at most one of them
    if (properties.has_deth()) {
      ext.deth = Deth::load(p);
      p += Deth::kBytes;
    } else {
      ext.xrc_srq = load_be32(p) & 0xFF'FFFFU;
      p += kXrcEthBytes;
    }
  }
  if (properties.has_reth()) {
    ext.reth = Reth::load(p);
    p += Reth::kBytes;
  }
  if (properties.has_atomic_eth()) ext.atomic = AtomicEth::load(p);
  if (properties.has_aeth()) {
    ext.aeth = Aeth::load(p);
    if (!aeth_fits(ext.aeth, properties.operation)) return ParseError::bad_aeth;
    p += Aeth::kBytes;
  }
  if (properties.has_atomic_ack_eth()) ext.atomic_original = load_be64(p);
  if (properties.has_immediate()) ext.immediate = load_be32(p);
  if (properties.has_ieth()) ext.invalidate_rkey = load_be32(p);
  return ParseError::ok;
}

// Whether everything below the BTH is as in nearly every packet: no tag, IPv4, lengths that agree
// with one another. A packet that is not plain need not be wrong.
inline bool is_plain_ipv4(const std::byte* p, std::size_t size, std::uint32_t separate_payload) {
  constexpr std::size_t kIp = kEthernetBytes;
  constexpr std::size_t kUdp = kIp + kIpv4Bytes;
  if (size < kUdp + kUdpBytes + kBthBytes) return false;
  const std::uint32_t total = load_be16(p + kIp + 2);
  const std::uint32_t expected =
      static_cast<std::uint32_t>(size + separate_payload + kIcrcBytes - kEthernetBytes);
  const std::uint32_t type_and_version = load_be32(p + kEtherTypeOffset) >> 8;
  const std::uint32_t ports_and_length = load_be32(p + kUdp + 2);
  return ((type_and_version ^ (std::uint32_t{kEtherTypeIpv4} << 8 | 0x45U)) |
          (load_be16(p + kIp + 6) & 0x3FFFU) |
          (load_u8(p + kIp + 9) ^ std::uint32_t{kIpProtocolUdp}) | (total ^ expected) |
          (ports_and_length ^ (std::uint32_t{kRoceUdpPort} << 16 | (total - kIpv4Bytes)))) == 0;
}

// From the BTH at `bth` on. The lengths below agree, and the bytes of the BTH are there.
// headers_end: where the headers must have ended at the latest; kFrame: the ICRC is there.
template <bool kFrame, bool kBrief>
[[gnu::always_inline]] inline ParseError parse_transport(const std::byte* p, std::size_t size,
                                                         std::size_t bth, std::size_t headers_end,
                                                         std::uint32_t separate_payload,
                                                         const ParseOptions& options,
                                                         ParsedPacket& out) {
  const Bth h = Bth::load(p + bth);
  if (h.version != 0) return ParseError::transport_version;
  const OpcodeProperties& row = properties(h.opcode);
  if (!row.known()) return ParseError::unknown_opcode;
  out.bth_offset = static_cast<std::uint16_t>(bth);
  out.properties = row;
  out.opcode = h.opcode;
  out.pad = h.pad;
  out.dest_qpn = h.dest_qpn;
  out.psn = h.psn;
  out.ack_request = h.ack_request;
  out.solicited = h.solicited;
  out.becn = h.becn;
  if constexpr (!kBrief) {
    out.pkey = h.pkey;
    out.migrated = h.migrated;
    out.fecn = h.fecn;
    out.ext = Extensions{};
  }

  // How much lies between the end of the headers and the ICRC.
  std::size_t header_bytes = bth + kBthBytes + row.extension_bytes;
  if (header_bytes > headers_end) return ParseError::truncated_extension;
  if (row.has(opcode_flag::body | opcode_flag::xack)) {  // may be longer than we know
    if (!kFrame && separate_payload != 0) return ParseError::unexpected_payload;
    if (h.pad != 0 || (headers_end - header_bytes) % 4 != 0) return ParseError::bad_pad;
    header_bytes = headers_end;
  }
  if ((h.dest_qpn == kControlQpn) != row.is_control()) return ParseError::control_destination;
  std::size_t padded;
  if constexpr (kFrame) {
    padded = headers_end - header_bytes;
  } else {
    if (header_bytes != size) return ParseError::header_length;
    padded = separate_payload;
  }
  if (!row.carries_payload() && padded != 0) return ParseError::unexpected_payload;
  if (padded % 4 != 0 || h.pad > padded) return ParseError::bad_pad;
  out.header_bytes = static_cast<std::uint16_t>(header_bytes);
  out.payload_bytes = static_cast<std::uint32_t>(padded) - h.pad;

  if (row.has(opcode_flag::any_extension)) {
    const ParseError e = load_extensions(p + bth + kBthBytes, row, out.ext);
    if (e != ParseError::ok) return e;
  }

  if constexpr (!kBrief) out.icrc = 0;
  if constexpr (kFrame) {
    out.icrc = load_le32(p + headers_end);
    if (options.verify_icrc && icrc_of_frame({p, size}, out.l3_offset, headers_end) != out.icrc) {
      return ParseError::bad_icrc;
    }
  }
  return ParseError::ok;
}

// kFrame: bytes are a frame, payload and ICRC behind the headers; else headers only, exactly.
// kBrief: the same checks, but only what a transport acts upon is filled in.
template <bool kFrame, bool kBrief>
[[gnu::always_inline]] inline ParseError parse(const std::byte* p, std::size_t size,
                                               std::uint32_t separate_payload,
                                               const ParseOptions& options, ParsedPacket& out) {
  if constexpr (!kFrame && kBrief) {
    if (!options.verify_ip_checksum && is_plain_ipv4(p, size, separate_payload)) [[likely]] {
      const std::byte* const ip = p + kEthernetBytes;
      const std::uint8_t tos = load_u8(ip + 1);
      out.l3_offset = kEthernetBytes;
      out.ipv6 = false;
      out.dscp = static_cast<std::uint8_t>(tos >> 2);
      out.ecn = static_cast<Ecn>(tos & 3U);
      out.source = IpAddress::load_v4(ip + 12);
      out.udp_source_port = load_be16(ip + kIpv4Bytes);
      return parse_transport<false, true>(p, size, kEthernetBytes + kIpv4Bytes + kUdpBytes, size,
                                          separate_payload, options, out);
    }
  }
  if (size < kEthernetBytes) return ParseError::too_short;
  if (const auto e = parse_ethernet<kBrief>(p, size, out); e != ParseError::ok) return e;

  NetworkLayer net;
  const std::byte* const ip = p + out.l3_offset;
  const std::size_t ip_size = size - out.l3_offset;
  const ParseError network =
      out.ipv6 ? parse_ipv6(ip, ip_size, out, net)
               : parse_ipv4<kBrief>(ip, ip_size, options.verify_ip_checksum, out, net);
  if (network != ParseError::ok) return network;

  // UDP. From here on everything that the lengths promise must be there: in the frame, or in the
  // headers and the separate payload plus the ICRC that is not there yet.
  const std::size_t bth = net.udp_offset + kUdpBytes;
  if (size < bth + kBthBytes) return ParseError::too_short;
  const std::byte* const udp = p + net.udp_offset;
  if (load_be16(udp + 2) != kRoceUdpPort) return ParseError::udp_port;
  const std::size_t end = net.udp_offset + net.payload_bytes;  // of the datagram
  if constexpr (kFrame) {
    if (end > size) return ParseError::ip_length;
  } else {
    if (end != size + separate_payload + kIcrcBytes) return ParseError::ip_length;
  }
  if (load_be16(udp + 4) != net.payload_bytes) return ParseError::udp_length;
  if (end < bth + kBthBytes + kIcrcBytes) return ParseError::too_short;
  out.udp_source_port = load_be16(udp);
  if constexpr (!kBrief) out.udp_checksum = load_be16(udp + 6);

  return parse_transport<kFrame, kBrief>(p, size, bth, kFrame ? end - kIcrcBytes : size,
                                         separate_payload, options, out);
}

}  // namespace

ParseError parse_frame(std::span<const std::byte> frame, const ParseOptions& options,
                       ParsedPacket& out) {
  return parse<true, false>(frame.data(), frame.size(), 0, options, out);
}

ParseError parse_headers(std::span<const std::byte> headers, std::uint32_t padded_payload_bytes,
                         const ParseOptions& options, ParsedPacket& out) {
  return parse<false, false>(headers.data(), headers.size(), padded_payload_bytes, options, out);
}

ParseError parse_brief(std::span<const std::byte> headers, std::uint32_t padded_payload_bytes,
                       const ParseOptions& options, ParsedPacket& out) {
  return parse<false, true>(headers.data(), headers.size(), padded_payload_bytes, options, out);
}

std::string_view parse_error_name(ParseError error) {
  static constexpr std::string_view kNames[] = {
      "ok",
      "too_short",
      "vlan_too_deep",
      "not_ip",
      "ip_version",
      "ip_options",
      "mapped_address",
      "ip_length",
      "ip_checksum",
      "fragment",
      "not_udp",
      "udp_port",
      "udp_length",
      "transport_version",
      "unknown_opcode",
      "truncated_extension",
      "bad_pad",
      "unexpected_payload",
      "header_length",
      "bad_aeth",
      "bad_icrc",
      "corrupt",
      "control_destination",
      "control_version",
      "control_length",
      "control_field",
  };
  static_assert(std::size(kNames) == kParseErrors);
  static_assert(static_cast<std::size_t>(ParseError::control_field) + 1 == kParseErrors);
  const auto i = static_cast<std::size_t>(error);
  return i < kParseErrors ? kNames[i] : std::string_view("unknown");
}

}  // namespace paceline::wire
