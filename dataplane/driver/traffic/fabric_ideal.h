// Times in an empty or perfectly balanced fabric: the yardsticks of messages and collectives on any
// topology.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/ideal.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/nvlink.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline {

class FabricIdeal {
 public:
  // All arguments must outlive this.
  FabricIdeal(const config::Scenario& scenario, const fabric::FabricSpec& spec,
              const fabric::Topology& topology)
      : scenario_(scenario),
        spec_(spec),
        topology_(topology),
        payload_(scenario.transport.payload_bytes) {}

  // The clock of one path between two hosts; equal-cost paths are taken to be alike.
  IdealClock clock(std::uint32_t src, std::uint32_t dst) const;
  // Hosts with several ports divide a message among them, packet by packet.
  Picos fct(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes) const {
    const std::uint64_t packets = (bytes + payload_ - 1) / payload_;
    const std::uint64_t share = (packets + spec_.ports - 1) / spec_.ports * payload_;
    return clock(src, dst).fct(std::min(bytes, share));
  }
  // The same for a message of the plan, over NVLink if it stays within a server. A relayed message
  // takes the time of both parts.
  Picos fct(const MessagePlan& plan, const PlannedMessage& message) const;
  // The largest round trip of a full packet and its ACK between any two hosts.
  Picos longest_base_rtt() const;

  // Sets `ideal` of every collective of the plan: the time in which the busiest port carries its
  // bytes, plus the latency of the longest path in use, or that of the busiest NVLink. Every switch
  // is assumed to spread what it forwards over its equal-cost links in proportion to their rates,
  // so an oversubscribed tier is a limit, and an unlucky hash is not.
  void fill(MessagePlan& plan) const;

 private:
  Picos collective(const MessagePlan& plan, std::vector<std::uint32_t>& messages) const;
  double busiest_switch_port(const MessagePlan& plan,
                             const std::vector<std::uint32_t>& messages) const;
  // Takes what goes over NVLink out of `messages`; returns the time of the busiest GPU.
  Picos busiest_nvlink(const MessagePlan& plan, std::vector<std::uint32_t>& messages) const;
  NvLinkSpec nvlink() const {
    return {scenario_.fabric.nvlink_rate, scenario_.fabric.nvlink_latency};
  }

  const config::Scenario& scenario_;
  const fabric::FabricSpec& spec_;
  const fabric::Topology& topology_;
  std::uint32_t payload_;
};

}  // namespace paceline
