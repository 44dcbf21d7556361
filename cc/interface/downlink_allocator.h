// The receiving half of a proactive algorithm: one per NIC instance and class, it shares the
// port's downlink among the senders. Called on the engine's thread, never per data packet: the
// engine counts data into ChannelCounters itself, and polls this object when it is due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "dataplane/base/protocol/control_messages.h"
#include "dataplane/base/units.h"

namespace paceline::cc {

struct ParamBlock;  // param_block.h

// Counted inline by the engine for every data packet of a channel. Bytes are wire bytes.
struct ChannelCounters {
  std::uint64_t rx_bytes = 0;
  std::uint32_t rx_packets = 0;
  std::uint32_t ce_packets = 0;
  std::uint16_t last_marked_entropy = 0;
  std::uint64_t trimmed_bytes = 0;  // cut off by switches; the rest of these packets is in rx_bytes
};

// One message the receiver wants sent, to the peer it names by the engine's peer index.
struct ReceiverOutput {
  std::uint32_t peer = 0;
  GrantMessage grant{};
};

class DownlinkAllocator {
 public:
  DownlinkAllocator() = default;
  DownlinkAllocator(const DownlinkAllocator&) = delete;
  DownlinkAllocator& operator=(const DownlinkAllocator&) = delete;
  virtual ~DownlinkAllocator() = default;

  // A REQUEST of `peer` (engine's index, dense, stable) arrived. Returns the counters the engine
  // must count that peer's data into; stable until the channel is forgotten.
  virtual ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) = 0;

  // Wire bytes that took downlink capacity outside any channel: data of plain RoCEv2 peers or
  // reactive senders, ACKs, CNPs, control packets, other classes. Reported as a running delta, at
  // the latest before each poll; without it the port is planned as if they did not exist.
  virtual void on_unaccounted_bytes(std::uint64_t wire_bytes) = 0;

  // Wire bytes of data that switches trimmed on the way to this port, from any sender: a running
  // delta like that of on_unaccounted_bytes.
  virtual void on_trimmed_bytes(std::uint64_t /*wire_bytes*/) {}

  // The peer is gone (its last queue pair was destroyed): frees the channel; counters die.
  virtual void forget(Nanos now, std::uint32_t peer) = 0;

  // Runs what is due and fills up to out.size() messages; returns the number filled. Call again
  // at once when it equals out.size().
  virtual std::size_t poll(Nanos now, std::span<ReceiverOutput> out) = 0;

  // When poll has work next; kNeverNanos when idle. May be <= now after on_request.
  virtual Nanos next_wake() const = 0;

  // Other values of the same algorithm, in force with the next poll. Existing grants stand until
  // grants under the new values replace them.
  virtual void set_params(const ParamBlock& /*params*/) {}

  // The first invariant found broken, in words, or an empty string. For tests and for the option
  // that checks after every poll: costs O(channels).
  virtual std::string check_invariants(Nanos /*now*/) const { return {}; }
};

}  // namespace paceline::cc
