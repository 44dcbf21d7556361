// Writing headers. Every builder fills a caller's 128-byte buffer from a HeaderTemplate and returns
// the number of header bytes; payload, pad and ICRC follow elsewhere, but every length field counts
// them. The pad count is computed from the payload length: a caller that owns a payload buffer adds
// pad_bytes(payload_bytes) bytes of zeros.
//
// IPv4: header checksum from the template's partial sum; UDP checksum 0, as RoCEv2 requires (annex
// A17.4.5; for IPv6 it relies on RFC 6935). Bytes of the buffer past the returned length are
// unspecified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/headers/opcodes.h"
#include "dataplane/wire/packet/header_template.h"

namespace paceline::wire {

inline constexpr std::size_t kHeaderBufferBytes = 128;
using HeaderBuffer = std::span<std::byte, kHeaderBufferBytes>;

// Fields that change from packet to packet and are not in an extension header.
struct TransportFields {
  Opcode opcode = Opcode::rc_send_only;
  std::uint32_t dest_qpn = 0;
  Psn psn{};
  std::uint32_t payload_bytes = 0;  // without pad; at most 65,000
  bool ack_request = false;
  bool solicited = false;
  bool fecn = false;
  bool becn = false;
};

// Any opcode of the table but the control messages (control.h). Uses the fields of `ext` that the
// opcode has.
std::size_t build_packet(const HeaderTemplate& header, HeaderBuffer out,
                         const TransportFields& fields, const Extensions& ext);

// SEND and WRITE without the cost of a full Extensions: `reth` where the opcode has a RETH,
// `immediate` (or the rkey to invalidate) where it has one; else ignored and may be null and 0.
std::size_t build_data(const HeaderTemplate& header, HeaderBuffer out,
                       const TransportFields& fields, const Reth* reth = nullptr,
                       std::uint32_t immediate = 0);

std::size_t build_read_request(const HeaderTemplate& header, HeaderBuffer out,
                               std::uint32_t dest_qpn, Psn psn, const Reth& reth,
                               bool ack_request = true, bool solicited = false);
// `fields.opcode` is one of the four READ responses; `aeth` is used on all but Middle.
std::size_t build_read_response(const HeaderTemplate& header, HeaderBuffer out,
                                const TransportFields& fields, Aeth aeth);

// ACK, NAK and RNR NAK alike: Aeth::ack, Aeth::nak, Aeth::rnr_nak. `becn` puts the congestion mark
// into the acknowledgement (used for calibration only; a CNP is a packet of its own).
std::size_t build_acknowledge(const HeaderTemplate& header, HeaderBuffer out,
                              std::uint32_t dest_qpn, Psn psn, Aeth aeth, bool becn = false);

// `opcode`: rc_compare_swap or rc_fetch_add.
std::size_t build_atomic(const HeaderTemplate& header, HeaderBuffer out, Opcode opcode,
                         std::uint32_t dest_qpn, Psn psn, const AtomicEth& atomic,
                         bool ack_request = true);
std::size_t build_atomic_acknowledge(const HeaderTemplate& header, HeaderBuffer out,
                                     std::uint32_t dest_qpn, Psn psn, Aeth aeth,
                                     std::uint64_t original);

// UD SEND Only, with immediate when `immediate` is given.
std::size_t build_datagram(const HeaderTemplate& header, HeaderBuffer out,
                           const TransportFields& fields, const Deth& deth,
                           const std::uint32_t* immediate = nullptr);

// Congestion notification (annex A17.9.3): BECN set, M clear, PSN 0, 16 zero bytes.
std::size_t build_cnp(const HeaderTemplate& header, HeaderBuffer out, std::uint32_t dest_qpn);

// Used by the builder of control messages: BTH for `opcode` to the control queue pair, then room
// for `body_bytes` (a multiple of 4) from the returned offset on. Lengths and checksum are final.
std::size_t build_control_prefix(const HeaderTemplate& header, HeaderBuffer out, Opcode opcode,
                                 Psn sequence, std::size_t body_bytes);

// For the builder of XACKs: BTH, then room for `body_bytes` (a multiple of 4), of which the buffer
// need not hold all. Returns where the body ends.
std::size_t build_body(const HeaderTemplate& header, HeaderBuffer out,
                       const TransportFields& fields, std::size_t body_bytes);

}  // namespace paceline::wire
