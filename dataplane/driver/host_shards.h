// The engines of one host of a virtual world that has several shards, on its one port. They make up
// a scheduling group: polled in fixed order until none has anything to do, so that what they hand
// over and tell each other takes no time.
//
// Turns on the wire. A NIC serves what waits in its queues by class, and within a class fairly by
// connection. So nothing leaves before everything has arrived at this instant; then control packets
// go first, whoever has them; then the highest class, urgent data ahead; and among shards each as
// often as it has contexts waiting (stride scheduling: Waldspurger and Weihl, MIT/LCS/TM-528).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "dataplane/base/shards.h"
#include "dataplane/driver/group_port.h"
#include "dataplane/telemetry/counters.h"
#include "dataplane/transport/engine.h"
#include "dataplane/transport/shard_link.h"

namespace paceline {

class HostShards {
 public:
  // Builds all shards but 0, for `config` with its shard_bits. first: the shard that gets the first
  // connection.
  HostShards(const transport::EngineConfig& config, Port& device, std::uint32_t first);

  // Shard 0 is the host's own engine, built on port(0) with this configuration, and set before
  // anything is polled.
  Port& port(std::uint32_t shard) { return ports_[shard]; }
  transport::EngineConfig config_of(std::uint32_t shard, transport::EngineConfig config);
  void set_leader(transport::Engine& leader) { engines_[0] = &leader; }

  std::uint32_t shards() const { return exchange_.shards(); }
  transport::Engine& engine(std::uint32_t shard) { return *engines_[shard]; }
  const transport::Engine& engine(std::uint32_t shard) const { return *engines_[shard]; }
  // Where a queue pair lives. The shard is polled at this instant.
  transport::Engine& engine_of(std::uint32_t qp_number) {
    const std::uint32_t shard = shard_of_number(qp_number, exchange_.shard_bits());
    stirred_ |= 1U << shard;
    return *engines_[shard];
  }
  // Where the next queue pair shall live: each in turn.
  transport::Engine& next_engine();

  // Works off what is due at `now`.
  void poll(Picos now);
  Picos next_deadline() const;

  // Of all shards.
  telemetry::EngineCounters counters() const;
  const ShardPortCounters& port_counters(std::uint32_t shard) const {
    return ports_[shard].counters();
  }

 private:
  bool due(std::uint32_t shard, Picos now) const;
  void arrive(Picos now);
  bool send(Picos now);
  void close(bool closed);

  ShardExchange exchange_;
  transport::ShardLink link_;
  std::deque<GroupPort> ports_;
  std::deque<transport::Engine> followers_;
  std::array<transport::Engine*, kMaxShards> engines_{};
  std::uint32_t next_ = 0;     // connection
  std::uint32_t stirred_ = 0;  // shards that the application has called since the last poll
  std::uint32_t tried_ = 0;    // shards whose turn came to nothing at this instant
  std::uint32_t control_turn_ = 0;
  // Stride scheduling: what each has had, in shares of a context; and what the last served had.
  std::array<std::uint64_t, kMaxShards> had_{};
  std::uint64_t floor_ = 0;
  std::uint32_t claimed_ = 0;  // shards that had something to send when a turn was given last
};

}  // namespace paceline
