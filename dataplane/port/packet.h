// A packet: one cache line of fields that links, switches and engines touch, then the serialised
// headers. The payload is nothing, an owned buffer, lent (the bytes lie in the sender's registered
// memory, where they stay as they are until the request is completed), or elided (only its length
// and a digest exist: virtual time moves no payload bytes unless asked to).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/protocol/ecn.h"
#include "dataplane/base/units.h"

namespace paceline {

class PacketPool;

enum class PayloadKind : std::uint8_t { none = 0, owned = 1, elided = 2, lent = 3 };

namespace packet_flag {
inline constexpr std::uint8_t corrupt = 1U << 0;    // a bit error: fails the ICRC on arrival
inline constexpr std::uint8_t pfc = 1U << 1;        // a pause/resume frame of the link itself
inline constexpr std::uint8_t duplicate = 1U << 2;  // copied by an impairment
// In a LongPacket: switches put records of telemetry into its tail.
inline constexpr std::uint8_t telemetry = 1U << 3;
inline constexpr std::uint8_t trimmed = 1U << 4;  // a switch cut the payload off (trim.h)
}  // namespace packet_flag

inline constexpr std::size_t kMaxHeaderBytes = 128;

struct alignas(64) Packet {
  Packet* next = nullptr;        // intrusive list; belongs to the packet's owner
  std::byte* payload = nullptr;  // owned: buffer of the pool's payload capacity
  Picos time{0};                 // fabric: arrival at the far end; after rx: time of reception
  union {
    std::uint64_t digest = 0;  // elided payload: digest of the bytes it stands for
    const std::byte* loan;     // lent payload: where its bytes lie
  };
  std::uint32_t wire_bytes = 0;    // what the packet occupies on a link; set by the port, tx and rx
  std::uint32_t entropy = 0;       // path choice: derived from the UDP source port and addresses
  std::uint32_t route = 0;         // fabric: destination host index, set by the port at tx
  std::uint16_t header_bytes = 0;  // valid bytes of `header`, Ethernet first
  std::uint16_t payload_bytes = 0;  // payload including the pad, without ICRC
  std::uint16_t ingress = 0;        // switch: ingress port charged for this packet
  std::uint8_t traffic_class = 0;
  Ecn ecn = Ecn::not_ect;  // cached; kept in step with the header by patch_ecn
  PayloadKind payload_kind = PayloadKind::none;
  std::uint8_t flags = 0;
  std::uint16_t pool_id = 0;
  std::uint16_t bth_offset = 0;  // cached: where the base transport header starts; 0 = unknown
  // With packet_flag::telemetry: how many records there are, and what tells paths apart.
  std::uint16_t records : 3 = 0;
  std::uint16_t path : 13 = 0;
  union {
    std::uint32_t icrc = 0;    // invariant CRC, where the port does not make it its business
    std::uint32_t loan_place;  // lent payload: used by the pool, where no ICRC is computed
  };
  alignas(64) std::array<std::byte, kMaxHeaderBytes> header;  // serialised, network order

  std::span<std::byte> header_view() { return {header.data(), header_bytes}; }
  std::span<const std::byte> header_view() const { return {header.data(), header_bytes}; }
  // Whether the payload has bytes: its own, or lent ones.
  bool has_bytes() const {
    return payload_kind == PayloadKind::owned || payload_kind == PayloadKind::lent;
  }
  const std::byte* bytes() const { return payload_kind == PayloadKind::lent ? loan : payload; }
  std::span<const std::byte> payload_view() const { return {bytes(), payload_bytes}; }
  // Length on the medium without preamble and gap: headers, payload, ICRC (4) and FCS (4).
  std::uint32_t frame_bytes() const { return std::uint32_t{header_bytes} + payload_bytes + 8U; }
};
static_assert(sizeof(Packet) == 64 + kMaxHeaderBytes);
static_assert(offsetof(Packet, header) == 64);

// A packet of a pool whose packets are long (packet_pool.h), in fabrics with in-band telemetry. The
// tail lies right behind the header. It holds the records of a data packet, or the part that does
// not fit into the header of an XACK that takes them back.
inline constexpr std::size_t kPacketTailBytes = 60;
struct LongPacket {
  Packet packet;
  std::array<std::byte, kPacketTailBytes> tail;
};
static_assert(offsetof(LongPacket, tail) == sizeof(Packet));

// Requires a packet of such a pool.
inline std::byte* tail_of(Packet& packet) {
  return reinterpret_cast<LongPacket&>(packet).tail.data();
}
inline const std::byte* tail_of(const Packet& packet) {
  return reinterpret_cast<const LongPacket&>(packet).tail.data();
}
// Requires nothing; true only of such packets.
inline bool uses_tail(const Packet& packet) {
  return (packet.flags & packet_flag::telemetry) != 0 || packet.header_bytes > kMaxHeaderBytes;
}

}  // namespace paceline
