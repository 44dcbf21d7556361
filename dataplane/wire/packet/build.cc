#include "dataplane/wire/packet/build.h"

#include <cassert>
#include <cstring>

#include "dataplane/wire/bytes/checksum.h"

namespace paceline::wire {
namespace {

// Where an untagged IPv4 packet has its headers. Nearly every packet is one, and only its template
// is as short as HeaderTemplate::kPlainBytes.
constexpr std::size_t kPlainIp = kEthernetBytes;
constexpr std::size_t kPlainUdp = kPlainIp + kIpv4Bytes;
constexpr std::size_t kPlainBth = kPlainUdp + kUdpBytes;
static_assert(kPlainBth + kBthBytes <= HeaderTemplate::kPlainBytes);
static_assert(kPlainBth + kBthBytes + kVlanBytes > HeaderTemplate::kPlainBytes);
static_assert(kPlainBth + kBthBytes + kXrcEthBytes > HeaderTemplate::kPlainBytes);

[[gnu::always_inline]] inline void store_ipv4_lengths(std::byte* ip, std::uint32_t template_sum,
                                                      std::size_t udp_length) {
  assert(udp_length + kIpv4Bytes <= 0xFFFF);
  const auto total = static_cast<std::uint16_t>(kIpv4Bytes + udp_length);
  store_be16(ip + 2, total);
  store_be16(ip + 10, static_cast<std::uint16_t>(~fold_sum(template_sum + total)));
}

// Stores the three words of the BTH. The migration state, the P_Key and the bits of XRC come from
// the template's BTH at `from`.
[[gnu::always_inline]] inline void store_bth(const std::byte* from, std::byte* bth,
                                             const TransportFields& f, unsigned pad) {
  assert(f.dest_qpn <= kMaxQpn);
  const unsigned migrated = load_u8(from + 1) & 0x40U;
  store_u8(bth, static_cast<std::uint8_t>(static_cast<unsigned>(f.opcode) | load_u8(from)));
  store_u8(bth + 1, static_cast<std::uint8_t>((f.solicited ? 0x80U : 0U) | migrated | (pad << 4)));
  store_be32(bth + 4, (f.fecn ? 0x8000'0000U : 0U) | (f.becn ? 0x4000'0000U : 0U) | f.dest_qpn);
  store_be32(bth + 8, (f.ack_request ? 0x8000'0000U : 0U) | f.psn.value());
}

// begin() for all other packets: with a tag, an XRCETH, or IPv6.
[[gnu::noinline]] std::byte* begin_long(const HeaderTemplate& header, HeaderBuffer out,
                                        const TransportFields& f, std::size_t after_headers) {
  std::byte* const p = out.data();
  std::memcpy(p, header.bytes.data(), HeaderTemplate::kMaxBytes);
  const std::size_t udp_length =
      std::size_t{header.header_bytes} - header.udp_offset + after_headers + kIcrcBytes;
  if (header.ipv6) {
    store_be16(p + header.l3_offset + 4, static_cast<std::uint16_t>(udp_length));
  } else {
    store_ipv4_lengths(p + header.l3_offset, header.ip_sum, udp_length);
  }
  store_be16(p + header.udp_offset + 4, static_cast<std::uint16_t>(udp_length));
  store_bth(header.bytes.data() + header.bth_offset(), p + header.bth_offset(), f,
            pad_bytes(f.payload_bytes));
  return p + header.header_bytes;
}

// Copies the template and fills in lengths, IPv4 checksum and BTH. Returns where the first
// extension header behind those of the template goes.
[[gnu::always_inline]] inline std::byte* begin(const HeaderTemplate& header, HeaderBuffer out,
                                               const TransportFields& f,
                                               std::size_t extension_bytes) {
  const unsigned pad = pad_bytes(f.payload_bytes);
  const std::size_t after_headers = extension_bytes + f.payload_bytes + pad;
  if (header.header_bytes > HeaderTemplate::kPlainBytes) [[unlikely]]
    return begin_long(header, out, f, after_headers);
  std::byte* const p = out.data();
  const std::byte* const from = header.bytes.data();
  // Four vector moves that overlap so that the fields of an IPv4 header lie within one each: the
  // port reads the addresses before the moves have reached the cache.
  for (const std::size_t at : {0U, 14U, 30U, 40U}) std::memcpy(p + at, from + at, 16);
  const std::size_t udp_length = kUdpBytes + kBthBytes + after_headers + kIcrcBytes;
  store_ipv4_lengths(p + kPlainIp, header.ip_sum, udp_length);
  store_be16(p + kPlainUdp + 4, static_cast<std::uint16_t>(udp_length));
  store_bth(from + kPlainBth, p + kPlainBth, f, pad);
  return p + kPlainBth + kBthBytes;
}

TransportFields fields_of(Opcode opcode, std::uint32_t dest_qpn, Psn psn, bool ack_request,
                          bool becn = false) {
  TransportFields f;
  f.opcode = opcode;
  f.dest_qpn = dest_qpn;
  f.psn = psn;
  f.ack_request = ack_request;
  f.becn = becn;
  return f;
}

}  // namespace

std::size_t build_packet(const HeaderTemplate& header, HeaderBuffer out,
                         const TransportFields& fields, const Extensions& ext) {
  const OpcodeProperties& row = properties(fields.opcode);
  assert(row.known() && !row.is_control());
  assert(row.carries_payload() || fields.payload_bytes == 0);
  std::byte* p = begin(header, out, fields, row.extension_bytes);
  if (row.has_xrc_eth()) {
    store_be32(p, ext.xrc_srq & 0xFF'FFFFU);
    p += kXrcEthBytes;
  }
  if (row.has_deth()) {
    ext.deth.store(p);
    p += Deth::kBytes;
  }
  if (row.has_reth()) {
    ext.reth.store(p);
    p += Reth::kBytes;
  }
  if (row.has_atomic_eth()) ext.atomic.store(p);
  if (row.has_aeth()) {
    ext.aeth.store(p);
    p += Aeth::kBytes;
  }
  if (row.has_atomic_ack_eth()) store_be64(p, ext.atomic_original);
  if (row.has_immediate()) store_be32(p, ext.immediate);
  if (row.has_ieth()) store_be32(p, ext.invalidate_rkey);
  if (row.has(opcode_flag::reserved16)) std::memset(p, 0, kCnpReservedBytes);
  return std::size_t{header.header_bytes} + row.extension_bytes;
}

std::size_t build_data(const HeaderTemplate& header, HeaderBuffer out,
                       const TransportFields& fields, const Reth* reth, std::uint32_t immediate) {
  const OpcodeProperties& row = properties(fields.opcode);
  assert(row.operation == Operation::send || row.operation == Operation::write);
  assert(!row.has_deth() && !row.has_xrc_eth() && (!row.has_reth() || reth != nullptr));
  std::byte* p = begin(header, out, fields, row.extension_bytes);
  if (row.has_reth()) {
    reth->store(p);
    p += Reth::kBytes;
  }
  if (row.has(opcode_flag::immediate | opcode_flag::ieth)) store_be32(p, immediate);
  return std::size_t{header.header_bytes} + row.extension_bytes;
}

std::size_t build_read_request(const HeaderTemplate& header, HeaderBuffer out,
                               std::uint32_t dest_qpn, Psn psn, const Reth& reth, bool ack_request,
                               bool solicited) {
  auto f = fields_of(Opcode::rc_read_request, dest_qpn, psn, ack_request);
  f.solicited = solicited;
  reth.store(begin(header, out, f, Reth::kBytes));
  return header.header_bytes + Reth::kBytes;
}

std::size_t build_read_response(const HeaderTemplate& header, HeaderBuffer out,
                                const TransportFields& fields, Aeth aeth) {
  const OpcodeProperties& row = properties(fields.opcode);
  assert(row.operation == Operation::read_response);
  std::byte* const p = begin(header, out, fields, row.extension_bytes);
  if (row.has_aeth()) aeth.store(p);
  return std::size_t{header.header_bytes} + row.extension_bytes;
}

std::size_t build_acknowledge(const HeaderTemplate& header, HeaderBuffer out,
                              std::uint32_t dest_qpn, Psn psn, Aeth aeth, bool becn) {
  const auto f = fields_of(Opcode::rc_acknowledge, dest_qpn, psn, false, becn);
  aeth.store(begin(header, out, f, Aeth::kBytes));
  return header.header_bytes + Aeth::kBytes;
}

std::size_t build_atomic(const HeaderTemplate& header, HeaderBuffer out, Opcode opcode,
                         std::uint32_t dest_qpn, Psn psn, const AtomicEth& atomic,
                         bool ack_request) {
  assert(opcode == Opcode::rc_compare_swap || opcode == Opcode::rc_fetch_add);
  const auto f = fields_of(opcode, dest_qpn, psn, ack_request);
  atomic.store(begin(header, out, f, AtomicEth::kBytes));
  return header.header_bytes + AtomicEth::kBytes;
}

std::size_t build_atomic_acknowledge(const HeaderTemplate& header, HeaderBuffer out,
                                     std::uint32_t dest_qpn, Psn psn, Aeth aeth,
                                     std::uint64_t original) {
  const auto f = fields_of(Opcode::rc_atomic_acknowledge, dest_qpn, psn, false);
  std::byte* const p = begin(header, out, f, Aeth::kBytes + kAtomicAckBytes);
  aeth.store(p);
  store_be64(p + Aeth::kBytes, original);
  return header.header_bytes + Aeth::kBytes + kAtomicAckBytes;
}

std::size_t build_datagram(const HeaderTemplate& header, HeaderBuffer out,
                           const TransportFields& fields, const Deth& deth,
                           const std::uint32_t* immediate) {
  TransportFields f = fields;
  f.opcode = immediate != nullptr ? Opcode::ud_send_only_imm : Opcode::ud_send_only;
  const std::size_t extension = Deth::kBytes + (immediate != nullptr ? kImmediateBytes : 0);
  std::byte* const p = begin(header, out, f, extension);
  deth.store(p);
  if (immediate != nullptr) store_be32(p + Deth::kBytes, *immediate);
  return header.header_bytes + extension;
}

std::size_t build_cnp(const HeaderTemplate& header, HeaderBuffer out, std::uint32_t dest_qpn) {
  const auto f = fields_of(Opcode::cnp, dest_qpn, Psn{}, false, true);
  std::byte* const p = begin(header, out, f, kCnpReservedBytes);
  store_u8(p - kBthBytes + 1, 0);  // the annex wants the migration bit clear
  std::memset(p, 0, kCnpReservedBytes);
  return header.header_bytes + kCnpReservedBytes;
}

std::size_t build_control_prefix(const HeaderTemplate& header, HeaderBuffer out, Opcode opcode,
                                 Psn sequence, std::size_t body_bytes) {
  assert(properties(opcode).is_control() && body_bytes % 4 == 0);
  assert(header.header_bytes + body_bytes <= out.size());
  begin(header, out, fields_of(opcode, kControlQpn, sequence, false), body_bytes);
  return header.header_bytes;
}

std::size_t build_body(const HeaderTemplate& header, HeaderBuffer out,
                       const TransportFields& fields, std::size_t body_bytes) {
  assert(fields.payload_bytes == 0 && body_bytes % 4 == 0);
  begin(header, out, fields, body_bytes);
  return header.header_bytes + body_bytes;
}

}  // namespace paceline::wire
