#include "dataplane/fabric/network.h"

#include <stdexcept>

#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/fabric/forwarding/host_port.h"

namespace paceline::fabric {

namespace {

FabricSpec buildable(const FabricSpec& spec) {
  for (const std::string& error : check(spec)) {
    if (error.starts_with(kUnreachablePrefix)) continue;
    throw std::invalid_argument("fabric: " + error);
  }
  FabricSpec out = spec;
  if (out.credit.enabled) out.exact_departures = true;  // each returns credits at its time
  return out;
}

const FabricSpec& fits(const FabricSpec& spec, const EventWheel& wheel, std::uint32_t first_actor) {
  if (std::uint64_t{first_actor} + Network::actors_needed(spec) > wheel.actors()) {
    throw std::invalid_argument("fabric: the event wheel has too few actors");
  }
  return spec;
}

}  // namespace

Network::Network(const FabricSpec& spec, EventWheel& wheel, std::uint32_t first_actor_id,
                 std::pmr::memory_resource& memory)
    : spec_(buildable(spec)),
      topology_(fits(spec_, wheel, first_actor_id)),
      pool_(spec.initial_packets, spec.payload_room, true, 0, memory, spec.telemetry),
      forwarding_(
          std::make_unique<Forwarding>(spec_, topology_, pool_, wheel, first_actor_id, memory)),
      ports_(std::make_unique<Slab<HostPort>>(spec.hosts, memory)),
      ahead_(*forwarding_, *ports_),
      sweep_(*forwarding_, *ports_) {
  for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
    ports_->emplace(*forwarding_, forwarding_->link(topology_.host_uplink(host)),
                    forwarding_->host_queues()[host], spec_.transmit_ahead);
  }
}

Network::~Network() = default;

Port& Network::host_port(std::uint32_t host) {
  if (host >= ports_->size()) throw std::out_of_range("fabric: no such host");
  return (*ports_)[host];
}

bool Network::send(std::uint32_t host, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                   Picos now) {
  if (send_ready_at(host, traffic_class) > now) return false;
  forwarding_->inject_to(forwarding_->link(topology_.host_uplink(host)), traffic_class, packet, to,
                         now);
  return true;
}

Picos Network::send_ready_at(std::uint32_t host, std::uint8_t traffic_class) {
  return host_port(host).tx_ready_at(traffic_class);
}

void Network::link_fired(std::uint32_t link, Picos now) { forwarding_->link_fired(link, now); }

std::span<const std::uint32_t> Network::woken_hosts() const {
  return forwarding_->host_queues().woken();
}
void Network::clear_woken() { forwarding_->host_queues().clear_woken(); }

void Network::finish(Picos now) { forwarding_->finish(now); }
const NetworkStats& Network::stats() const { return forwarding_->stats(); }
std::optional<EgressStats> Network::egress_stats(std::uint32_t link) const {
  return forwarding_->egress_stats(link);
}
const Histogram& Network::last_hop_depth() const { return forwarding_->last_hop_depth(); }
const Histogram& Network::core_depth() const { return forwarding_->core_depth(); }
std::uint64_t Network::last_hop_max_bytes() const { return forwarding_->last_hop_max_bytes(); }

Picos Network::link_pause_time(std::uint32_t link) const {
  return forwarding_->link_pause_time(link);
}
Picos Network::link_pause_time(std::uint32_t link, Picos now) const {
  return link_pause_time(link) + forwarding_->pause_in_force(forwarding_->link(link), now);
}
Picos Network::pause_time(Picos now) const {
  Picos sum = stats().pause_time;
  for (std::uint32_t link = 0; link < links(); ++link) {
    sum += forwarding_->pause_in_force(forwarding_->link(link), now);
  }
  return sum;
}

std::uint64_t Network::queue_bytes(std::uint32_t link, Picos now) {
  return forwarding_->queue_bytes(link, now);
}

void Network::tap(std::uint32_t link, LinkTap& tap) { forwarding_->tap(link, tap); }
void Network::untap(std::uint32_t link) { forwarding_->untap(link); }

void Network::divide(const Division& division, std::uint32_t part) {
  forwarding_->divide(division, part);
}
void Network::send_to(std::span<std::vector<Crossing>> lists) { forwarding_->send_to(lists); }
Picos Network::decide_leaving(Picos until) { return forwarding_->decide_leaving(until); }
Picos Network::first_sent_away() { return forwarding_->first_sent_away(); }
void Network::take_in(std::span<const Crossing> packets) { forwarding_->take_in(packets); }
std::uint64_t Network::foreign_events() const { return forwarding_->foreign_events(); }
std::uint64_t Network::idle_events() const { return forwarding_->idle_events(); }
void Network::gather(const Network& other) { forwarding_->gather(*other.forwarding_); }

std::string Network::check_conservation() const { return forwarding_->check_conservation(); }

}  // namespace paceline::fabric
