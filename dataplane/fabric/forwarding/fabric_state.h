// The state of a fabric, by owner. The state of links and switches belongs to these classes; none
// of them knows another above it. Forwarding moves packets between them.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/fabric/switching/congestion_points.h"
#include "dataplane/fabric/switching/credit_flow.h"
#include "dataplane/fabric/switching/egress_queues.h"
#include "dataplane/fabric/switching/path_chooser.h"
#include "dataplane/fabric/switching/switch.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/fabric/wire/host_queues.h"
#include "dataplane/fabric/wire/impairments.h"
#include "dataplane/fabric/wire/link_taps.h"
#include "dataplane/fabric/wire/pause_times.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/fabric/wire/wire.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

struct FabricState {
  // All arguments must outlive this.
  FabricState(const FabricSpec& of, Topology& paths_of, PacketPool& packets, EventWheel& wheel,
              std::uint32_t first_actor, std::pmr::memory_resource& memory);

  // Takes over what `other`, of another part of the same fabric, holds the truth about.
  void gather(const FabricState& other);

  const FabricSpec& spec;
  Topology& topology;
  PacketPool& pool;
  std::uint32_t host_count;
  NetworkStats stats;
  Wire wire;
  EgressQueues queues;
  std::vector<Switch> switches;
  HostQueues hosts;
  PathChooser paths;
  Impairments impairments;
  PauseTimes pauses;
  LinkTaps taps;
  std::unique_ptr<CreditFlow> credits;       // where these rule
  std::unique_ptr<CongestionPoints> points;  // where switches notify
  std::uint64_t foreign_events = 0;          // Network::foreign_events
  std::uint64_t idle_events = 0;             // Network::idle_events

 private:
  void build_switches();
  void build_egresses();
};

}  // namespace paceline::fabric
