#include "dataplane/fabric/forwarding/fabric_state.h"

#include <algorithm>
#include <cassert>

namespace paceline::fabric {

namespace {

// alpha in 1/65536. Ports faster than the hosts' get twice the share for every doubling (HPCC
// simulator, third.cc: pfc_a_shift is one less).
std::uint32_t alpha_of(const FabricSpec& spec, Rate port_rate, Rate host_rate) {
  std::uint64_t alpha = static_cast<std::uint64_t>(spec.pfc.alpha * 65536.0 + 0.5);
  if (spec.pfc.scale_alpha_with_rate) {
    for (std::uint64_t ratio = port_rate.bps / host_rate.bps; ratio > 1; ratio /= 2) alpha *= 2;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(alpha, 64U << 16));
}

}  // namespace

FabricState::FabricState(const FabricSpec& of, Topology& paths_of, PacketPool& packets,
                         EventWheel& wheel, std::uint32_t first_actor,
                         std::pmr::memory_resource& memory)
    : spec(of),
      topology(paths_of),
      pool(packets),
      host_count(spec.hosts),
      wire(spec, pool, wheel, first_actor, memory),
      queues(spec, pool, stats, memory),
      hosts(spec.hosts, memory),
      paths(spec),
      impairments(spec),
      pauses(wire.size()),
      taps(spec.links.size()) {
  if (spec.credit.enabled) credits = std::make_unique<CreditFlow>(spec, wire, pauses, stats);
  if (spec.notice.enabled) points = std::make_unique<CongestionPoints>(spec);
  for (Link& link : wire.all()) impairments.mark(link);
  build_switches();
  build_egresses();
}

void FabricState::build_switches() {
  const Rate host_rate =
      spec.links.empty() ? Rate{1} : spec.links[topology.host_uplink(0) / 2].rate;
  std::vector<std::vector<SharedBuffer::PortLimits>> limits(spec.switches);
  std::vector<std::vector<std::uint32_t>> ports(spec.switches);
  for (std::uint32_t i = 0; i < spec.links.size(); ++i) {
    const LinkSpec& link = spec.links[i];
    const std::uint32_t ends[2] = {link.a, link.b};
    for (std::uint32_t side = 0; side < 2; ++side) {
      if (ends[side] < spec.hosts) continue;
      const std::uint32_t index = ends[side] - spec.hosts;
      ports[index].push_back(2 * i + side);
      const std::uint64_t headroom =
          spec.credit.enabled ? credit_buffer_of(spec, link) : headroom_of(spec, link);
      limits[index].push_back(
          {static_cast<std::uint32_t>(headroom), alpha_of(spec, link.rate, host_rate)});
    }
  }
  const bool granted = spec.credit.enabled;
  const std::uint8_t lossless =
      spec.pfc.enabled || granted ? spec.pfc.lossless_classes : std::uint8_t{0};
  const std::uint32_t reserve =
      granted ? SharedBuffer::kGranted : static_cast<std::uint32_t>(spec.pfc.reserve_bytes);
  switches.reserve(spec.switches);
  for (std::uint32_t i = 0; i < spec.switches; ++i) {
    switches.emplace_back(SharedBuffer(spec.buffer_bytes, std::move(limits[i]), lossless, reserve,
                                       static_cast<std::uint32_t>(spec.pfc.xon_offset_bytes)),
                          std::move(ports[i]));
    if (points != nullptr) switches.back().look_from_bytes = 0;
  }
}

void FabricState::build_egresses() {
  for (std::uint32_t index = 0; index < switches.size(); ++index) {
    const Switch& sw = switches[index];
    if (spec.exact_departures) wire.set_exact(sw.port_links, true);
    for (std::size_t port = 0; port < sw.port_links.size(); ++port) {
      Link& link = wire[sw.port_links[port]];
      link.egress = queues.add(link.id, index, static_cast<std::uint16_t>(port),
                               (link.to & Link::kToSwitch) == 0);
      if (spec.telemetry) link.impaired = static_cast<std::uint8_t>(link.impaired | Link::kRecords);
      if (points != nullptr) {
        const std::uint64_t own = spec.notice.set_point_bytes;
        points->add(own != 0 ? own : queues.kmin(link.egress));
      }
      wire[link.id ^ 1U].to_port = static_cast<std::uint16_t>(port);
    }
  }
}

void FabricState::gather(const FabricState& other) {
  const PartBoundary& theirs = other.wire.boundary();
  assert(theirs.division() != nullptr && theirs.division() == wire.boundary().division());
  for (Link& link : wire.all()) {
    const std::uint32_t id = link.id;
    if (theirs.owns(id)) {
      wire.take_over(other.wire, id);
      impairments.take_over(other.impairments, id);
      pauses.take_over(other.pauses, id);
      if (link.egress != Link::kNoEgress) {
        queues.take_over(other.queues, link.egress);
        if (points != nullptr) points->take_over(*other.points, link.egress);
      }
      if (credits != nullptr) credits->take_over(*other.credits, id);
    }
    link.notable = static_cast<std::uint8_t>(link.notable & (Link::kTapped | Link::kGrants));
    link.impaired = static_cast<std::uint8_t>(link.impaired & ~Link::kCopies);
  }
  const std::vector<std::uint32_t>& part_of = theirs.division()->part_of_node;
  for (std::uint32_t i = 0; i < switches.size(); ++i) {
    if (part_of[spec.hosts + i] == theirs.part()) switches[i] = other.switches[i];
  }
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    if (part_of[host] == theirs.part()) hosts.take_over(other.hosts, host);
  }
  wire.gather(other.wire);
  queues.gather(other.queues);
  stats += other.stats;
}

}  // namespace paceline::fabric
