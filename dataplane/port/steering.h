// Where a received packet belongs, and where a device would bring it: the two halves of steering.
//
// home_shard() is the law: the shard whose engine must see the packet. A device can spare
// hand-overs by bringing packets to the queue of that shard; which queue a device picks is told by
// QueueChoice, and nothing but speed depends on it: what comes in at the wrong queue is handed over
// (shard_port.h).
//
// What a device can do, from best to least:
//   dest_queue_pair   a flow rule per shard on the low bits of the BTH's destination queue pair
//                     (a raw or RoCE BTH match with a mask): every data packet arrives at home.
//   udp_source_port   RSS over addresses and UDP ports: all packets of a flow come to one queue,
//                     which is home only by chance. With several paths per flow they come to all.
//   one_queue         everything comes to queue 0.
#pragma once

#include <cstdint>

#include "dataplane/base/shards.h"
#include "dataplane/port/packet.h"
#include "dataplane/wire/endian.h"
#include "dataplane/wire/headers.h"
#include "dataplane/wire/opcodes.h"

namespace paceline {

// How a device deals packets to its receive queues.
enum class QueueChoice : std::uint8_t { one_queue, udp_source_port, dest_queue_pair };

namespace detail {

// The base transport header, or nullptr: no RoCEv2, or too short to say what it is.
inline const std::byte* bth_of(const Packet& packet) {
  if (packet.bth_offset == 0) return nullptr;
  if (packet.bth_offset + wire::kBthBytes > packet.header_bytes) return nullptr;
  return packet.header.data() + packet.bth_offset;
}

}  // namespace detail

// Of the destination queue pair, where that is one. Of the control messages, which all go to one
// reserved queue pair: GRANT and PATH name a channel, and so its shard; REQUEST and HELLO are the
// instance's, which is shard 0's business. So is whatever is no RoCEv2 (ARP, ICMP) or is cut off.
inline std::uint32_t home_shard(const Packet& packet, std::uint32_t shard_bits) {
  constexpr std::size_t kChannelOffset = wire::kBthBytes + 4;  // in GRANT and PATH alike
  const std::byte* const bth = detail::bth_of(packet);
  if (bth == nullptr) return 0;
  const auto opcode = static_cast<wire::Opcode>(wire::load_u8(bth));
  switch (opcode) {
    case wire::Opcode::hello:
    case wire::Opcode::request:
      return 0;
    case wire::Opcode::grant:
    case wire::Opcode::path:
      if (packet.bth_offset + kChannelOffset + 2 > packet.header_bytes) return 0;
      return shard_of_number(wire::load_be16(bth + kChannelOffset), shard_bits);
    default:
      return shard_of_number(wire::load_be32(bth + 4) & 0xFF'FFFFU, shard_bits);
  }
}

// The receive queue, below `queues` (a power of two), that a device of this kind would put the
// packet into. For worlds that have to act like such a device; a real one decides for itself.
inline std::uint32_t device_queue(const Packet& packet, QueueChoice choice, std::uint32_t queues) {
  const std::byte* const bth = detail::bth_of(packet);
  if (bth == nullptr || choice == QueueChoice::one_queue) return 0;
  if (choice == QueueChoice::dest_queue_pair) {
    return wire::load_be32(bth + 4) & 0xFF'FFFFU & (queues - 1);
  }
  // UDP lies right before the BTH; its first field is the source port. Any hash serves.
  const std::uint32_t port = wire::load_be16(bth - wire::kUdpBytes);
  return (port * 0x9E37'79B1U >> 16) & (queues - 1);
}

}  // namespace paceline
