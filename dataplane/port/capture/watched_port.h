// A port in front of another that shows passing packets to an observer and changes nothing: the
// common part of all captures. They define what rx and tx show; everything else goes to the port
// behind.
#pragma once

#include "dataplane/port/port.h"

namespace paceline {

class WatchedPort : public Port {
 public:
  // The time of the packets received next; the caller's loop sets it before it polls.
  void tell_time(Picos now) { now_ = now; }

  Picos rx_ready_at() const final { return behind_.rx_ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const final {
    return behind_.tx_ready_at(traffic_class);
  }
  std::uint8_t links_up() const final { return behind_.links_up(); }
  PacketPool& packets() final { return behind_.packets(); }
  PortInfo info() const final { return behind_.info(); }
  void use_clock(const PollClock& clock) final { behind_.use_clock(clock); }

 protected:
  explicit WatchedPort(Port& behind) : behind_(behind) {}  // outlives it

  Port& behind_;
  Picos now_{0};
};

}  // namespace paceline
