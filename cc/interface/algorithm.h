// The interface of a congestion-control algorithm: an event goes in, a decision comes out, and the
// state is beside it.
//
// A built-in sender algorithm A provides
//   struct A::State        trivially copyable, <= kStateBytes; zeroed before Signal::start
//   struct A::Params       derived constants, built once per parameter set
//   static Params A::make_params(std::span<const double> values, const PortFacts&)
//   static void   A::on_event(State&, const Params&, const Event&, Decision&)
// and, when proactive,
//   static void   A::fill_request(State&, const Params&, const Event&, RequestMessage&)
// on_event receives the decision in force and changes what it wants changed; it never allocates,
// throws, reads a clock or draws unseeded randomness. Dispatch is static (see dispatch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cc/interface/decision.h"
#include "cc/interface/event.h"
#include "cc/interface/param_spec.h"
#include "dataplane/base/units.h"

namespace paceline::cc {

inline constexpr std::size_t kStateBytes = 256;

enum class AlgorithmId : std::uint8_t {
  fixed = 0,
  dcqcn = 1,
  cadence = 2,
  swift = 3,
  timely = 4,
  dctcp = 5,
  theta_powertcp = 6,
  nscc = 7,
  hpcc = 8,
  powertcp = 9,
  eqds = 10,
  sird = 11,
  homa = 12,
  switch_notified = 13,
};
inline constexpr unsigned kAlgorithms = 14;

// Plug-ins have the ids behind those, in the order in which they were loaded.
inline constexpr unsigned kMaxPlugins = 16;
constexpr bool is_plugin(AlgorithmId id) { return static_cast<unsigned>(id) >= kAlgorithms; }

// What one context serves: a queue pair, or all queue pairs to one peer port in one class.
enum class ContextKey : std::uint8_t { per_qp, per_peer_class };

// The facts from which parameters are derived: the port and the fabric as configured.
struct PortFacts {
  Rate link_rate{};
  std::uint32_t mtu_bytes = 4096;       // payload bytes of a full packet
  std::uint32_t full_packet_bytes = 0;  // the same on the wire
  std::uint32_t base_rtt_ns = 0;        // unloaded round trip of a full packet and its ACK
  bool telemetry = false;               // switches record, and XACKs bring the records back
  bool notices = false;                 // switches notify senders that ask for it
  std::uint8_t planes = 1;              // links that the packets of a context use in turn
};

struct AlgorithmInfo {
  AlgorithmId id{};
  std::string_view name;
  std::string_view summary;  // one line for `paceline cc list`
  ContextKey key = ContextKey::per_qp;
  EcnEcho echo = EcnEcho::cnp;  // what it wants the peer to return
  std::uint32_t wants = 0;      // signal_bit()s of the events it wants beyond start and tick;
                                // kWantsTelemetry: runs only where there is telemetry
  bool proactive =
      false;  // has a downlink allocator; needs a peer that speaks the control protocol
  // Its law holds if packets of one context use several planes (ports) at the same time.
  bool over_planes = false;
  std::span<const ParamSpec> params;
  std::span<const Profile> profiles;  // "default" is implied by the specs' defaults
};

// For error messages: "hpcc needs ...".
inline constexpr std::string_view kTelemetryNeeds =
    "in-band telemetry: fabric.int = true in an emulated fabric, transport.reliability = "
    "\"selective\", and transport.peers not \"roce\"";
inline constexpr std::string_view kNoticesNeed =
    "switches that notify senders: fabric.notice.enabled = true in an emulated fabric";
// The algorithm cannot work without the records of switches.
constexpr bool needs_telemetry(const AlgorithmInfo& info) {
  return (info.wants & kWantsTelemetry) != 0;
}
// Cannot work without switches that notify the sender.
constexpr bool needs_notices(const AlgorithmInfo& info) {
  return (info.wants & signal_bit(Signal::notice)) != 0;
}
// Which of its needs is not met; empty: all are.
constexpr std::string_view unmet_need(const AlgorithmInfo& info, const PortFacts& facts) {
  if (needs_telemetry(info) && !facts.telemetry) return kTelemetryNeeds;
  if (needs_notices(info) && !facts.notices) return kNoticesNeed;
  return {};
}

}  // namespace paceline::cc
