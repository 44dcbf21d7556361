// The emulated NIC of one host: a Port on the host's uplink. It has no transmit queue: a packet is
// taken when the wire is free and the class not paused, so the engine's own pacing and arbitration
// decide, as with a NIC that schedules in hardware. While its link is down every class is paused.
// Where engines are polled late, it has a short one: FabricSpec::transmit_ahead.
#pragma once

#include <cstdint>

#include "dataplane/fabric/wire/link.h"
#include "dataplane/port/port.h"

namespace paceline::fabric {

class Network;

class alignas(64) HostPort final : public Port {
 public:
  HostPort(Network& network, Link& uplink, std::uint32_t host, Picos ahead)
      : network_(network), uplink_(uplink), ahead_(ahead), host_(host) {}

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return head_ == nullptr ? kNever : head_->time; }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return (uplink_.held() >> traffic_class & 1U) != 0 ? kNever : uplink_.busy - ahead_;
  }
  PacketPool& packets() override;
  PortInfo info() const override;

  std::uint32_t host() const { return host_; }

 private:
  friend class Network;

  void deliver(Packet* packet) {
    packet->next = nullptr;
    if (head_ == nullptr) {
      head_ = packet;
    } else {
      tail_->next = packet;
    }
    tail_ = packet;
  }

  Network& network_;
  Link& uplink_;
  Packet* head_ = nullptr;  // delivered, not yet taken by rx
  Packet* tail_ = nullptr;
  Picos ahead_;
  std::uint32_t host_;
  bool woken_ = false;  // in Network::woken_hosts()
};

}  // namespace paceline::fabric
