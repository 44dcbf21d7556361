// Headers and payload of request packets. Each packet is built from its request alone, so that a
// packet that is sent again is the same as the first time.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class PacketBuilder {
 public:
  // Fills in payload of the request at `position`, from `offset` on. False: it is not at hand
  // (memory answers later), or the queue pair has failed.
  static bool fill_payload(EngineCore& core, QueuePair& qp, Packet& packet, std::uint32_t position,
                           std::uint64_t offset, std::uint32_t bytes);
  // Fills in the headers of a SEND or WRITE packet whose payload is there.
  static void build_data(EngineCore& core, QueuePair& qp, Packet& packet, const SendEntry& entry,
                         std::uint32_t index, Psn psn, std::uint32_t payload, bool ack_request);
  // Builds the request of a READ for `count` responses from response `from` on, or of an atomic.
  static void build_read(EngineCore& core, QueuePair& qp, Packet& packet, const SendEntry& entry,
                         std::uint32_t from, std::uint32_t count);
  // The scatter-gather list of the request at `position`.
  static std::span<const Segment> segments_of(const QueuePair& qp, std::uint32_t position);
  static wire::Opcode opcode_of(WorkOpcode work, bool first, bool last);
  // Asks switches to stamp the packet, if the records come back and the algorithm wants them.
  static void want_telemetry(EngineCore& core, const QueuePair& qp, Packet& packet);

 private:
  static bool fill_gathered(EngineCore& core, QueuePair& qp, Packet& packet, std::uint32_t position,
                            std::uint64_t offset, std::uint32_t bytes);
  static bool filled(EngineCore& core, QueuePair& qp, MemoryResult result);
};

}  // namespace paceline::transport
