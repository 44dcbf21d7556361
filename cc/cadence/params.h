// Parameters of Cadence, and constants derived from them once per parameter set. The sender context
// (cadence.h), the uplink arbiter (sender.h) and the receiving port's allocator (receiver.h) share
// them. The table of names, ranges and sources is in params.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/grants/channel_units.h"
#include "cc/interface/algorithm.h"
#include "dataplane/base/units.h"

namespace paceline::cc {

// Wire bytes planned for one REQUEST or GRANT: Ethernet, IPv4, UDP, BTH, 40 to 60 bytes of
// payload, ICRC, frame check sequence, preamble and gap. A planning figure: only pacing of control
// messages depends on it.
inline constexpr std::uint32_t kControlWireBytes = 136;

struct CadenceParams {
  // The port.
  std::uint32_t link_mbps = 0;
  std::uint32_t mtu_bytes = 0;
  std::uint32_t packet_bytes = 0;    // full packet on the wire
  std::uint32_t overhead_bytes = 0;  // packet_bytes - mtu_bytes
  std::uint32_t slack_bytes = 0;     // most bytes of a window beyond rate x round trip
  std::int64_t rtt_ns = 0;           // base round trip T
  std::uint32_t bdp_bytes = 0;       // C * T, wire bytes

  // Receiver.
  std::uint32_t eta_mbps = 0;   // eta * C
  std::int64_t alloc_ns = 0;    // least time between two allocations
  std::int64_t control_ns = 0;  // least mean time between two GRANTs of the port; leases allow it
  std::int64_t lease_min_ns = 0;
  std::int64_t rotation_ns = 0;  // a waiting channel replaces an active one this often
  std::uint32_t max_active = 0;
  std::uint32_t min_grant_mbps = 0;
  std::uint32_t little_weight = 1;  // of a channel with few bytes left: see favour()
  double hysteresis = 0;            // least relative change of a share that sends a GRANT

  // Sender.
  std::uint32_t small_bytes = 0;       // s: messages up to this are sent at once
  std::uint32_t most_start_bytes = 0;  // limit on bytes sent before the first grant
  std::uint32_t fallback_mbps = 0;     // R_fb
  std::uint32_t path_min_mbps = 0;
  std::int64_t path_target_ns = 0;
  std::uint32_t probe_limit = 0;  // REQUESTs unanswered before the fallback takes over
};

// Limit on the sum of a sending port's rates. The rest is for ACKs of data that the port receives,
// and for control messages.
constexpr std::uint32_t uplink_mbps(const CadenceParams& p) {
  return p.link_mbps - p.link_mbps / 50;
}

// Weight, at the sending and at the receiving port, of a channel with `left` wire bytes left:
// little_weight below four BDP, else 1. It applies only while another channel of the port has
// bulk_bytes left: among channels of equal size the order does not matter.
constexpr std::uint64_t bulk_bytes(const CadenceParams& p) {
  return 16 * std::uint64_t{p.bdp_bytes};
}
constexpr std::uint32_t favour(const CadenceParams& p, std::uint64_t left) {
  return left < 4 * std::uint64_t{p.bdp_bytes} ? p.little_weight : 1;
}

// Wire bytes of a message of `payload` bytes, sent as full packets and a last one.
constexpr std::uint64_t message_wire_bytes(const CadenceParams& p, std::uint64_t payload) {
  return payload + (payload + p.mtu_bytes - 1) / p.mtu_bytes * p.overhead_bytes;
}

std::span<const ParamSpec> cadence_param_specs();
CadenceParams make_cadence_params(std::span<const double> values, const PortFacts& facts);

}  // namespace paceline::cc
