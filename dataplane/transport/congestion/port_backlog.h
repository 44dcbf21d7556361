// Built packets that wait for the port, by traffic class. Either the port refused them although it
// had said that it would take them, or they must be sent in line: behind those and ahead of
// everything that is built later.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/transport/qp/queue_pair.h"

namespace paceline::transport {

class PortBacklog {
 public:
  // Takes ownership. The packet is sent behind the data of its class that was built before, not
  // paced.
  void send_in_line(Packet* packet) {
    in_line_[packet->traffic_class].push(packet);
    classes_ |= 1U << packet->traffic_class;
  }
  void push_refused(unsigned traffic_class, Packet* packet) {
    refused_[traffic_class].push(packet);
    classes_ |= 1U << traffic_class;
  }

  // Classes with packets, a bit each.
  std::uint32_t classes() const { return classes_; }
  // The mask is tested first: it is at hand, and mostly says no.
  bool waits_in_line(unsigned traffic_class) const {
    return (classes_ >> traffic_class & 1U) != 0 && !in_line_[traffic_class].empty();
  }
  bool empty(unsigned traffic_class) const {
    return refused_[traffic_class].empty() && in_line_[traffic_class].empty();
  }

  // Hands out the packets of the class, oldest first, as long as send(packet) returns true. True
  // when nothing of the class is left over.
  template <class Send>
  bool flush(unsigned traffic_class, Send&& send) {
    for (PacketFifo* fifo : {&refused_[traffic_class], &in_line_[traffic_class]}) {
      while (!fifo->empty()) {
        Packet* packet = fifo->head;
        Packet* const next = packet->next;
        if (!send(packet)) return false;
        fifo->head = next;
        if (next == nullptr) fifo->tail = nullptr;
      }
    }
    classes_ &= ~(1U << traffic_class);
    return true;
  }

 private:
  std::uint32_t classes_ = 0;
  std::array<PacketFifo, kTrafficClasses> refused_;
  std::array<PacketFifo, kTrafficClasses> in_line_;
};

}  // namespace paceline::transport
