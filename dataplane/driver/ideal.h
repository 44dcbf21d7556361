// What an empty fabric would need: the yardstick for slowdown. Uses the real link clock and the
// same bytes that the transport puts on the wire.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/port/port.h"

namespace paceline {

// One scenario's clock: how long messages take when nobody else is there.
class IdealClock {
 public:
  // path_links: links between two hosts (2 on a star). All links are taken at the fabric's rate.
  IdealClock(const config::Scenario& scenario, std::uint32_t path_links);

  // Wire bytes of a WRITE (or SEND) of that many payload bytes, over one link, all packets.
  std::uint64_t wire_bytes(std::uint64_t message_bytes) const;
  // From posting to the last acknowledgement: serialisation at the sender, store-and-forward of the
  // largest packet at each further link, propagation both ways, the acknowledgement.
  Picos fct(std::uint64_t message_bytes) const;
  // fct without the serialisation at the sender: what a message pays besides its bytes.
  Picos latency() const { return fct(payload_) - serialization_time(wire_bytes(payload_), rate_); }
  // fct of a full packet: the round trip that congestion control calls base RTT.
  Picos base_rtt() const { return fct(payload_); }

 private:
  std::uint64_t packet_bytes(std::uint64_t payload, bool first) const;

  WireAccounting wire_;
  Rate rate_;
  Picos delay_;
  std::uint32_t payload_;
  std::uint32_t links_;
};

// How the fabric of the scenario counts bytes.
WireAccounting wire_accounting(const config::FabricConfig& fabric);

}  // namespace paceline
