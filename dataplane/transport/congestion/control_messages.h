// Sends messages of the control protocol. All of them share one sequence of PSNs, whatever their
// kind and peer.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

class ControlMessages {
 public:
  explicit ControlMessages(EngineCore& core) : core_(core) {}

  // Queues `message` ahead of all data, and counts it in `counter`. If there is no packet, the
  // message counts as lost: every message is repeated until it is answered.
  template <class Message>
  void send(const wire::HeaderTemplate& header, const Message& message, std::uint64_t& counter) {
    Packet* packet = core_.alloc_headers_only();
    if (packet == nullptr) return;
    packet->header_bytes = static_cast<std::uint16_t>(
        wire::build_control(header, wire::HeaderBuffer{packet->header}, Psn(sequence_++), message));
    packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    ++counter;
    core_.counters.control_bytes +=
        core_.info.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
    core_.queue_control(packet);
  }

 private:
  EngineCore& core_;
  std::uint32_t sequence_ = 0;
};

}  // namespace paceline::transport
