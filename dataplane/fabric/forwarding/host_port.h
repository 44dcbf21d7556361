// The emulated NIC of one host: a Port on the host's uplink. It has no transmit queue: a packet is
// taken when the wire is free and the class not paused, so the engine's own pacing and arbitration
// decide, as with a NIC that schedules in hardware. While its link is down every class is paused,
// or packets are lost (FabricSpec::hosts_lose_when_down). For engines that are polled late it has a
// short queue: FabricSpec::transmit_ahead.
#pragma once

#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/host_queues.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/port/port.h"

namespace paceline::fabric {

class Forwarding;

class alignas(64) HostPort final : public Port {
 public:
  HostPort(Forwarding& forwarding, Link& uplink, HostQueue& queue, Picos ahead,
           bool loses_when_down)
      : forwarding_(forwarding),
        uplink_(uplink),
        queue_(queue),
        ahead_(ahead),
        loses_when_down_(loses_when_down) {}

  std::size_t rx(std::span<Packet*> burst) override { return queue_.take(burst); }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return queue_.head == nullptr ? kNever : queue_.head->time; }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    if ((uplink_.held() >> traffic_class & 1U) != 0) return loses() ? Picos{0} : kNever;
    return uplink_.busy - ahead_;
  }
  PacketPool& packets() override;
  PortInfo info() const override;

  std::uint8_t links_up() const override { return uplink_.down == 0 ? 1 : 0; }

  // Whether tx would take a packet of the class at `now`.
  bool takes(Picos now, std::uint8_t traffic_class) const {
    return uplink_.busy <= now + ahead_ && (uplink_.held() >> traffic_class & 1U) == 0;
  }
  // The fate of packets that it does not take: they stay the caller's, or the first ones are lost.
  // Returns how many are lost.
  std::size_t lose(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst);
  const Link& uplink() const { return uplink_; }
  Link& uplink() { return uplink_; }

 private:
  bool loses() const { return loses_when_down_ && uplink_.down != 0; }

  Forwarding& forwarding_;
  Link& uplink_;
  HostQueue& queue_;
  Picos ahead_;
  bool loses_when_down_;
};

}  // namespace paceline::fabric
