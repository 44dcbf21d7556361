// For queue pairs whose packets go in several traffic classes (cc::Decision::classed): which class
// a packet takes, and how it is written into the packet.
//
// A higher class overtakes a lower one in every switch. Reliable service delivers a queue pair's
// messages in order, so its own packets gain nothing by overtaking one another: a packet that has
// gone ahead waits at the receiver (selective repeat), or is dropped there and sent again
// (go-back-N). A packet that has been overtaken for long also looks lost to both. So a queue pair's
// class falls at once, but rises only when none of its packets is in flight. Other queue pairs are
// not affected.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class PacketClass {
 public:
  // The class of the packet that the queue pair would send next.
  static std::uint8_t of_next(const EngineCore& core, const QueuePair& qp,
                              const CongestionContext& context);
  // `packet` was built and goes in that class.
  static void put(QueuePair& qp, Packet& packet, std::uint8_t traffic_class);
};

}  // namespace paceline::transport
