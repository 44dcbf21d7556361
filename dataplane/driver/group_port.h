// The port of one shard of a host in virtual time: all shards share the host's one port, and whose
// turn it is to send the group decides (host_shards.h), by closing the ports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/shard_port.h"

namespace paceline {

// Cold: a compiler that sees the whole program may then still take the one port of hosts with one
// engine for the likely one, and calls that directly.
class GroupPort final : public Port {
 public:
  GroupPort(ShardExchange& exchange, std::uint32_t shard, Port& device)
      : device_(device), receiver_(exchange, shard, device) {}

  [[gnu::cold]] std::size_t rx(std::span<Packet*> burst) override { return receiver_.rx(burst); }
  [[gnu::cold]] std::size_t tx(Picos now, std::uint8_t traffic_class,
                               std::span<Packet* const> burst) override {
    return closed_ ? 0 : device_.tx(now, traffic_class, burst);
  }
  [[gnu::cold]] Picos rx_ready_at() const override { return receiver_.ready_at(); }
  [[gnu::cold]] Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return closed_ ? kNever : device_.tx_ready_at(traffic_class);
  }
  [[gnu::cold]] PacketPool& packets() override { return device_.packets(); }
  [[gnu::cold]] PortInfo info() const override { return device_.info(); }

  // While closed it takes no packet to send, as if paused.
  void close(bool closed) { closed_ = closed; }

  const ShardPortCounters& counters() const { return receiver_.counters(); }

 private:
  Port& device_;
  ShardReceiver receiver_;
  bool closed_ = false;
};

}  // namespace paceline
