#include "dataplane/fabric/network.h"

#include <algorithm>
#include <stdexcept>

#include "dataplane/fabric/forwarding/conservation.h"
#include "dataplane/fabric/forwarding/fabric_state.h"
#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/fabric/forwarding/host_port.h"
#include "dataplane/fabric/forwarding/link_changes.h"
#include "dataplane/fabric/forwarding/plane_port.h"

namespace paceline::fabric {

namespace {

FabricSpec buildable(const FabricSpec& spec) {
  const std::vector<std::string> errors = check_buildable(spec);
  if (!errors.empty()) throw std::invalid_argument("fabric: " + errors.front());
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
      wheel_(wheel),
      first_actor_(first_actor_id),
      agenda_(links()),
      pool_(spec.initial_packets, spec.payload_room, true, 0, memory, spec.telemetry),
      forwarding_(
          std::make_unique<Forwarding>(spec_, topology_, pool_, wheel, first_actor_id, memory)),
      state_(&forwarding_->state()),
      hosts_(&state_->hosts),
      changes_(std::make_unique<LinkChanges>(spec_, *forwarding_)),
      ports_(std::make_unique<Slab<HostPort>>(spec.hosts, memory)),
      ahead_(*state_, *ports_),
      sweep_(*forwarding_, *ports_) {
  for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
    ports_->emplace(*forwarding_, state_->wire[topology_.host_uplink(host)], state_->hosts[host],
                    spec_.transmit_ahead, spec_.hosts_lose_when_down);
  }
  if (spec_.ports > 1) {
    plane_ports_ = std::make_unique<Slab<PlanePort>>(spec.hosts, memory);
    for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
      plane_ports_->emplace(*forwarding_, (*ports_)[host], host, topology_, changes_->failed());
    }
  }
  if (has_agenda(spec_)) wheel_.schedule(first_actor_ + agenda_, changes_->next());
}

Network::~Network() = default;

Port& Network::host_port(std::uint32_t host) {
  if (host >= ports_->size()) throw std::out_of_range("fabric: no such host");
  if (plane_ports_ != nullptr) return (*plane_ports_)[host];
  return (*ports_)[host];
}

bool Network::send(std::uint32_t host, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                   Picos now) {
  if (send_ready_at(host, traffic_class) > now) return false;
  forwarding_->inject_to(state_->wire[topology_.host_uplink(host)], traffic_class, packet, to, now);
  return true;
}

Picos Network::send_ready_at(std::uint32_t host, std::uint8_t traffic_class) {
  return host_port(host).tx_ready_at(traffic_class);
}

void Network::link_fired(std::uint32_t link, Picos now) {
  if (link == agenda_) [[unlikely]] {
    changes_->run(now);
    wheel_.schedule(first_actor_ + agenda_, changes_->next());
    return;
  }
  forwarding_->link_fired(link, now);
}

void Network::change(std::span<const LinkEvent> events) {
  const bool known = std::all_of(events.begin(), events.end(), [&](const LinkEvent& event) {
    return event.link < spec_.links.size();
  });
  if (!spec_.changeable || !known) {
    throw std::invalid_argument("fabric: no link that can be changed");
  }
  changes_->add(events);
  wheel_.schedule(first_actor_ + agenda_, changes_->next());
}

std::uint64_t Network::link_events() const { return changes_->happened(); }

void Network::finish(Picos now) {
  for (const Switch& sw : state_->switches) forwarding_->advance_switch(sw, now);
  for (const Link& link : state_->wire.all()) {
    if (link.egress != Link::kNoEgress) {
      state_->queues[link.egress].integrate(now);
      if (link.backlog != 0) state_->wire.reschedule(link);
    }
    state_->stats.pause_time += state_->pauses.settle(link.id, link.paused, now);
  }
}

const NetworkStats& Network::stats() const { return state_->stats; }

std::optional<EgressStats> Network::egress_stats(std::uint32_t link) const {
  if (link >= links()) throw std::out_of_range("fabric: no such link");
  const std::uint32_t egress = state_->wire[link].egress;
  if (egress == Link::kNoEgress) return std::nullopt;
  EgressStats out = state_->queues.stats(egress);
  out.pause_time = state_->pauses.sum(link);
  return out;
}

const Histogram& Network::last_hop_depth() const { return state_->queues.last_hop_depth(); }
const Histogram& Network::core_depth() const { return state_->queues.core_depth(); }
std::uint64_t Network::last_hop_max_bytes() const { return state_->queues.last_hop_max_bytes(); }

Picos Network::link_pause_time(std::uint32_t link) const { return state_->pauses.sum(link); }
Picos Network::link_pause_time(std::uint32_t link, Picos now) const {
  return link_pause_time(link) + state_->pauses.in_force(link, state_->wire[link].paused, now);
}
std::uint64_t Network::reclassed_packets(std::uint32_t link) const {
  return state_->impairments.reclassed(link);
}
Picos Network::pause_time(Picos now) const {
  Picos sum = stats().pause_time;
  for (const Link& link : state_->wire.all()) {
    sum += state_->pauses.in_force(link.id, link.paused, now);
  }
  return sum;
}

// Only departures before `now` are decided: those at `now` have their order among the events at
// `now`, and a look must not give them another.
std::uint64_t Network::queue_bytes(std::uint32_t link, Picos now) {
  if (link >= links()) throw std::out_of_range("fabric: no such link");
  Link& at = state_->wire[link];
  if (at.egress == Link::kNoEgress) return 0;
  forwarding_->advance_and_reschedule(at, now - Picos{1});
  return state_->queues[at.egress].queued_bytes;
}

void Network::tap(std::uint32_t link, LinkTap& tap) {
  state_->taps.add(link, tap);
  for (const std::uint32_t id : {2 * link, 2 * link + 1}) {
    Link& at = state_->wire[id];
    at.notable = static_cast<std::uint8_t>(at.notable | Link::kTapped);
  }
}

void Network::untap(std::uint32_t link) {
  if (!state_->taps.remove(link)) return;
  for (const std::uint32_t id : {2 * link, 2 * link + 1}) {
    Link& at = state_->wire[id];
    at.notable = static_cast<std::uint8_t>(at.notable & ~Link::kTapped);
  }
}

void Network::divide(const Division& division, std::uint32_t part) {
  state_->wire.boundary().divide(division, part, state_->wire.all());
}
void Network::send_to(std::span<std::vector<Crossing>> lists) {
  state_->wire.boundary().send_to(lists);
}

// A look at every queue in front of such a link: see queue_bytes.
Picos Network::decide_leaving(Picos until) {
  Picos next = kNever;
  for (const std::uint32_t id : state_->wire.boundary().leaving()) {
    Link& link = state_->wire[id];
    if (link.backlog == 0) continue;
    const Picos before = link.busy;
    forwarding_->advance(link, until);
    if (link.busy != before && link.backlog != 0) state_->wire.reschedule(link);
    if (link.eligible() != 0) next = earlier(next, link.busy);
  }
  return next;
}

Picos Network::first_sent_away() { return state_->wire.boundary().first_sent(); }
void Network::take_in(std::span<const Crossing> packets) {
  for (const Crossing& crossing : packets) {
    state_->wire.take_in(state_->wire[crossing.link], crossing.packet);
  }
}
std::uint64_t Network::foreign_events() const { return state_->foreign_events; }
std::uint64_t Network::idle_events() const { return state_->idle_events; }
void Network::gather(const Network& other) { state_->gather(*other.state_); }

std::string Network::check_conservation() const { return fabric::check_conservation(*state_); }

}  // namespace paceline::fabric
