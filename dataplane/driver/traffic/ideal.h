// Completion times in an empty fabric: the yardstick for slowdown. Uses the real link clock and the
// same bytes that the transport puts on the wire.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/port/port.h"

namespace paceline {

// A link as the clock sees it.
struct IdealLink {
  Rate rate{};
  Picos delay{};
  friend bool operator==(const IdealLink&, const IdealLink&) = default;
};

// How long messages over one path take in an empty network. The way back is assumed to be like the
// way there.
class IdealClock {
 public:
  // From sender to receiver; at least one link.
  IdealClock(const config::Scenario& scenario, std::vector<IdealLink> path);
  // A path of this many links (2 on a star), all of them like the hosts' links.
  IdealClock(const config::Scenario& scenario, std::uint32_t path_links);

  // Wire bytes of a WRITE (or SEND) of that many payload bytes, over one link, all packets.
  std::uint64_t wire_bytes(std::uint64_t message_bytes) const;
  // From posting to the last acknowledgement: store-and-forward of every packet over every link,
  // propagation both ways, the acknowledgement.
  Picos fct(std::uint64_t message_bytes) const;
  // fct of a full packet without its serialisation at the slowest link: what a message pays besides
  // its bytes.
  Picos latency() const;
  // fct of a full packet: the round trip that congestion control calls base RTT.
  Picos base_rtt() const { return fct(payload_); }

 private:
  std::uint64_t packet_bytes(std::uint64_t payload, bool first) const;
  Picos makespan(std::uint64_t message_bytes) const;

  WireAccounting wire_;
  std::uint32_t payload_;
  std::vector<IdealLink> path_;
};

// How the fabric of the scenario counts bytes.
WireAccounting wire_accounting(const config::FabricConfig& fabric);

}  // namespace paceline
