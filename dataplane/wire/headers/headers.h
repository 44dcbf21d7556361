// The headers of RoCEv2 as plain values in host order, each with its length, a load and a store.
// (IBTA vol. 1: BTH 9.2, RETH 9.3.3, AtomicETH 9.3.4, AETH 9.3.5.1, AtomicAckETH 9.3.5.2, ImmDt
// 9.3.6, IETH 9.3.7, DETH 9.3.2; XRCETH: annex A14; RoCEv2 FECN/BECN: annex A17.) Callers guarantee
// the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/aeth.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline::wire {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kVlanBytes = 4;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kIcrcBytes = 4;

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;         // IEEE 802.1Q customer tag
inline constexpr std::uint16_t kEtherTypeServiceVlan = 0x88A8;  // IEEE 802.1ad service tag
inline constexpr std::uint8_t kIpProtocolUdp = 17;
inline constexpr std::uint16_t kRoceUdpPort = 4791;  // IANA "roce"

inline constexpr std::uint16_t kDefaultPkey = 0xFFFF;

// The lowest UDP source port given to RoCEv2 flows: the dynamic range, as Linux uses it. The 14
// bits above it are the entropy that equal-cost hashing sees.
inline constexpr std::uint16_t kFirstSourcePort = 0xC000;
constexpr std::uint16_t source_port_from_entropy(std::uint32_t entropy) {
  return static_cast<std::uint16_t>(kFirstSourcePort | (entropy & 0x3FFF));
}

// Bytes of padding after `payload_bytes` so that the invariant CRC starts on a 4-byte boundary.
constexpr std::uint8_t pad_bytes(std::uint32_t payload_bytes) {
  return static_cast<std::uint8_t>((0U - payload_bytes) & 3U);
}

// Base transport header.
struct Bth {
  Opcode opcode = Opcode::rc_send_first;
  bool solicited = false;  // SE: raise an event at the responder
  bool migrated = false;   // M: the path migration state is "migrated"
  std::uint8_t pad = 0;    // 0..3
  std::uint8_t version = 0;
  std::uint16_t pkey = kDefaultPkey;
  bool fecn = false;  // neither is covered by the invariant CRC
  bool becn = false;
  std::uint32_t dest_qpn = 0;  // 24 bits
  bool ack_request = false;
  Psn psn{};

  static Bth load(const std::byte* p) {
    const std::uint8_t b1 = load_u8(p + 1);
    const std::uint8_t b4 = load_u8(p + 4);
    Bth h;
    h.opcode = static_cast<Opcode>(load_u8(p));
    h.solicited = (b1 & 0x80U) != 0;
    h.migrated = (b1 & 0x40U) != 0;
    h.pad = static_cast<std::uint8_t>((b1 >> 4) & 3U);
    h.version = b1 & 0x0FU;
    h.pkey = load_be16(p + 2);
    h.fecn = (b4 & 0x80U) != 0;
    h.becn = (b4 & 0x40U) != 0;
    const std::uint32_t word1 = load_be32(p + 4);
    const std::uint32_t word2 = load_be32(p + 8);
    h.dest_qpn = word1 & 0xFF'FFFFU;
    h.ack_request = (word2 >> 31) != 0;
    h.psn = Psn(word2);
    return h;
  }
  // dest_qpn <= 0xFFFFFF, pad <= 3, version <= 15; reserved bits are written as 0.
  void store(std::byte* p) const {
    const unsigned b1 = (solicited ? 0x80U : 0U) | (migrated ? 0x40U : 0U) |
                        static_cast<unsigned>((pad & 3U) << 4) | (version & 0x0FU);
    store_u8(p, static_cast<std::uint8_t>(opcode));
    store_u8(p + 1, static_cast<std::uint8_t>(b1));
    store_be16(p + 2, pkey);
    store_be32(p + 4,
               (fecn ? 0x8000'0000U : 0U) | (becn ? 0x4000'0000U : 0U) | (dest_qpn & 0xFF'FFFFU));
    store_be32(p + 8, (ack_request ? 0x8000'0000U : 0U) | psn.value());
  }
  friend bool operator==(const Bth&, const Bth&) = default;
};

// RDMA extended transport header.
struct Reth {
  static constexpr std::size_t kBytes = 16;
  std::uint64_t address = 0;  // virtual address at the responder
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;  // of the whole message (or of the rest, when repeated)

  static Reth load(const std::byte* p) {
    return {load_be64(p), load_be32(p + 8), load_be32(p + 12)};
  }
  void store(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, rkey);
    store_be32(p + 12, length);
  }
  friend bool operator==(const Reth&, const Reth&) = default;
};

// Atomic extended transport header. `swap_add` is the value to swap in, or to add.
struct AtomicEth {
  static constexpr std::size_t kBytes = 28;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;

  static AtomicEth load(const std::byte* p) {
    return {load_be64(p), load_be32(p + 8), load_be64(p + 12), load_be64(p + 20)};
  }
  void store(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, rkey);
    store_be64(p + 12, swap_add);
    store_be64(p + 20, compare);
  }
  friend bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

// Datagram extended transport header.
struct Deth {
  static constexpr std::size_t kBytes = 8;
  std::uint32_t qkey = 0;
  std::uint32_t source_qpn = 0;  // 24 bits

  static Deth load(const std::byte* p) { return {load_be32(p), load_be32(p + 4) & 0xFF'FFFFU}; }
  void store(std::byte* p) const {
    store_be32(p, qkey);
    store_be32(p + 4, source_qpn & 0xFF'FFFFU);
  }
  friend bool operator==(const Deth&, const Deth&) = default;
};

inline constexpr std::size_t kImmediateBytes = 4;
inline constexpr std::size_t kInvalidateBytes = 4;
inline constexpr std::size_t kAtomicAckBytes = 8;
inline constexpr std::size_t kCnpReservedBytes = 16;
inline constexpr std::size_t kXrcEthBytes = 4;  // 8 reserved bits, number of a receive queue

// Every extension header that a packet may have; the opcode's properties say which are present.
// Parsing leaves the others zero, building ignores them.
struct Extensions {
  Reth reth;
  Aeth aeth;
  std::uint32_t immediate = 0;
  std::uint32_t invalidate_rkey = 0;
  std::uint64_t atomic_original = 0;  // AtomicAckETH: the value before the operation
  AtomicEth atomic;
  Deth deth;
  std::uint32_t xrc_srq = 0;  // XRCETH: 24 bits
  friend bool operator==(const Extensions&, const Extensions&) = default;
};

}  // namespace paceline::wire
