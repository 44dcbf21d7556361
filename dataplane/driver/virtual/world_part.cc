#include "dataplane/driver/virtual/world_part.h"

#include <bit>

#include "dataplane/base/prefetch.h"

namespace paceline {

namespace {

// Event sources from which on what an event touches is likely to lie outside the caches.
constexpr std::uint32_t kPrefetchFrom = 4096;
// Hosts from which on a world has memory of its own, in large pages.
constexpr std::uint32_t kLargePagesFrom = 32;

unsigned slots_log2(double events_per_us) {
  return EventWheel::slots_log2_for(EventWheel::slot_shift_for(events_per_us));
}

}  // namespace

WorldPart::WorldPart(const fabric::FabricSpec& spec, double events_per_us, const MessagePlan& plan,
                     const std::vector<MessageRecord>& records)
    : memory_(spec.hosts >= kLargePagesFrom ? static_cast<std::pmr::memory_resource&>(large_pages_)
                                            : *std::pmr::new_delete_resource()),
      plan_(plan),
      records_(records),
      first_host_actor_(fabric::Network::actors_needed(spec)),
      wheel_(first_host_actor_ + spec.hosts, EventWheel::slot_shift_for(events_per_us),
             slots_log2(events_per_us), memory_),
      network_(spec, wheel_, 0, memory_),
      host_count_(spec.hosts / spec.ports),
      prefetching_(wheel_.actors() >= kPrefetchFrom && spec.ports == 1),
      ahead_(wheel_, network_, first_host_actor_) {}

void WorldPart::begin(std::uint32_t host) {
  actor_ = host;
  const std::size_t before = finished_.size();
  poll_host(host, now_);
  for (std::size_t i = before; i < finished_.size(); ++i) finished_[i].at = kBeforeAll;
}

// Application first, then engine, until neither has work at `now`: the group of one host. Returns
// when it is due next.
inline Picos WorldPart::poll_group(std::uint32_t index, Picos now) {
  WorldHost& host = (*hosts_)[index];
  if (host.app.due(now)) host.app.poll(now);
  do {
    host.engine.poll(now);
  } while (!host.app.completions().empty() && host.app.poll(now));
  if (!host.app.newly_finished().empty()) take_finished(host);
  return earlier(host.engine.next_deadline(), host.app.next_deadline());
}

// Inlined into the loop: an event is little more than a call.
template <bool kSeveralPorts>
inline void WorldPart::act(Picos time, std::uint32_t actor) {
  now_ = time;
  actor_ = actor;
  ++events_;
  if (prefetching_) ahead_.step(time);
  if (actor < first_host_actor_) {
    network_.link_fired(actor, time);
    const auto woken = network_.woken_hosts();
    if (!woken.empty()) {
      for (const std::uint32_t endpoint : woken) {
        poll_host(kSeveralPorts ? host_with(endpoint) : endpoint, time);
      }
      network_.clear_woken();
    }
  } else {
    poll_host(actor - first_host_actor_, time);
  }
}

void WorldPart::poll_probing(std::uint32_t host, Picos now) {
  probing::ProbeEnd& probe = *(*hosts_)[host].probe;
  do {
    poll_due_host(host, now);
  } while (probe.poll(now));
  schedule_host(host,
                earlier(wheel_.scheduled_at(first_host_actor_ + host), probe.next_deadline()));
}

void WorldPart::begin_probing() {
  for (std::uint32_t host = 0; host < hosts_->size(); ++host) poll_probing(host, now_);
}

WorldPart::Pause WorldPart::work_probing(Picos end, std::uint64_t messages, std::uint64_t& budget) {
  while (finished_.size() < messages) {
    const Picos next = wheel_.next_time();
    if (next >= end) return Pause::time;
    now_ = next;
    catch_up(next + Picos{1});
    for (const DueHost& due : due_hosts_) poll_probing(due.host, next);
    clear_due_hosts();
    if (--budget == 0) return Pause::budget;
  }
  return Pause::finished;
}

WorldPart::Pause WorldPart::work(Picos end, std::uint64_t messages, std::uint64_t& budget) {
  return host_count_ == network_.hosts() ? work_in<false>(end, messages, budget)
                                         : work_in<true>(end, messages, budget);
}

template <bool kSeveralPorts>
WorldPart::Pause WorldPart::work_in(Picos end, std::uint64_t messages, std::uint64_t& budget) {
  Picos time;
  std::uint32_t actor = 0;
  while (finished_.size() < messages) {
    if (!wheel_.pop_before(end, time, actor)) return Pause::time;
    act<kSeveralPorts>(time, actor);
    if (--budget == 0) return Pause::budget;
  }
  return Pause::finished;
}

void WorldPart::catch_up(Picos end) {
  Picos time;
  std::uint32_t actor = 0;
  while (wheel_.pop_before(end, time, actor)) {
    ++events_;
    if (actor >= first_host_actor_) {
      note_due(actor - first_host_actor_, time);
      continue;
    }
    network_.link_fired(actor, time);
    for (const std::uint32_t endpoint : network_.woken_hosts()) {
      note_due(host_with(endpoint), time);
    }
    network_.clear_woken();
  }
}

void WorldPart::note_due(std::uint32_t host, Picos at) {
  is_due_.resize(hosts_->size());
  if (is_due_[host]) return;
  is_due_[host] = true;
  due_hosts_.push_back({host, at});
}

void WorldPart::will_arrive(Picos at, std::uint32_t message) {
  const std::uint32_t host = plan_.messages[message].dst;
  (*hosts_)[host].app.will_arrive(at, message);
  const std::uint32_t actor = first_host_actor_ + host;
  wheel_.schedule(actor, earlier(wheel_.scheduled_at(actor), at));
}

void WorldPart::clear_due_hosts() {
  for (const DueHost& due : due_hosts_) is_due_[due.host] = false;
  due_hosts_.clear();
}

void WorldPart::poll_due_host(std::uint32_t host, Picos now) {
  now_ = now;
  actor_ = first_host_actor_ + host;
  poll_host(host, now);
}

void WorldPart::take_finished(WorldHost& host) {
  for (const std::uint32_t id : host.app.newly_finished()) {
    finished_.push_back({now_, actor_, id});
    if (records_[id].failed) ++failed_;
    bytes_done_ += plan_.messages[id].bytes;
  }
  host.app.newly_finished().clear();
}

void WorldPart::poll_host(std::uint32_t index, Picos now) {
  wheel_.schedule(first_host_actor_ + index, poll_group(index, now));
}

// A host in a window: arrivals by its one link, and its own deadlines; at one time
// the link comes first.
void WorldPart::sweep_host(std::uint32_t host, Picos end) {
  const std::uint32_t link = network_.sweep().downlink(host);
  const std::uint32_t actor = first_host_actor_ + host;
  Picos due = earlier(due_at_[host], wheel_.scheduled_at(actor));
  due_at_[host] = kNever;
  for (;;) {
    const Picos arrival = network_.sweep().next_arrival(link);
    if (arrival < end && arrival <= due) {
      now_ = arrival;
      actor_ = link;
      network_.sweep().arrive_next(link);
      ++events_;
      if (network_.woken_hosts().empty()) continue;
      network_.clear_woken();
    } else if (due < end) {
      now_ = due;
      actor_ = actor;
      ++events_;
    } else {
      break;
    }
    due = poll_group(host, now_);
  }
  network_.sweep().wait_for_next(link);
  wheel_.schedule(actor, due);
}

// A window of time, node by node (see fabric/sweep/fabric_sweep.h for why that may be): a host
// is polled for all of the window while its engine lies in the first-level cache, and who comes
// next is known, so that what it will touch can be fetched meanwhile.

void WorldPart::prepare_sweeps() {
  network_.sweep().prepare();
  const std::size_t nodes = std::size_t{hosts_->size()} + network_.spec().switches;
  nodes_.assign(nodes / 64 + 1, 0);
  due_links_of_.assign(nodes, 0);
  due_at_.assign(hosts_->size(), kNever);
}

// Takes what is due before `end` out of the wheel: the nodes that have any of it, with the links
// that end there.
void WorldPart::collect(Picos end) {
  taken_.clear();
  wheel_.take_before(end, [this](std::uint32_t actor, Picos time) {
    std::uint32_t node = actor - first_host_actor_;
    if (actor < first_host_actor_) {
      node = network_.sweep().node_of(actor);
      ++due_links_of_[node];
      taken_.push_back(actor);
    } else {
      due_at_[node] = time;
    }
    nodes_[node >> 6] |= std::uint64_t{1} << (node & 63);
  });
  visits_.clear();
  std::uint32_t end_of_links = 0;
  const std::vector<std::uint64_t>& backlogged = network_.sweep().backlogged_nodes();
  for (std::size_t word = 0; word < nodes_.size(); ++word) {
    for (std::uint64_t bits = nodes_[word] | backlogged[word]; bits != 0; bits &= bits - 1) {
      const auto node =
          static_cast<std::uint32_t>(word << 6 | static_cast<std::size_t>(std::countr_zero(bits)));
      const std::uint32_t links = due_links_of_[node];
      due_links_of_[node] = end_of_links;  // where the next of its links goes
      visits_.push_back({node, end_of_links, end_of_links + links});
      end_of_links += links;
    }
    nodes_[word] = 0;
  }
  due_links_.resize(end_of_links);
  for (const std::uint32_t link : taken_)
    due_links_[due_links_of_[network_.sweep().node_of(link)]++] = link;
  for (const Visit& visit : visits_) due_links_of_[visit.node] = 0;
}

Picos WorldPart::sweep(Picos begin, Picos end) {
  collect(end);
  Picos latest = now_;
  network_.sweep().begin(begin, end);
  const auto hosts = static_cast<std::uint32_t>(hosts_->size());
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    if (prefetching_) prefetch_visits(i);
    const Visit& visit = visits_[i];
    if (visit.node < hosts) {
      now_ = begin;
      sweep_host(visit.node, end);
    } else {
      now_ = network_.sweep().sweep_switch(visit.node - hosts, links_of(visit));
    }
    latest = later(latest, now_);
  }
  now_ = latest;
  return network_.sweep().end();
}

// The hosts that come after the one whose turn it is.
void WorldPart::prefetch_visits(std::size_t current) const {
  const auto hosts = static_cast<std::uint32_t>(hosts_->size());
  for (unsigned ahead = fabric::FabricSweep::kAhead; ahead != 0; --ahead) {
    if (current + ahead >= visits_.size()) continue;
    const Visit& visit = visits_[current + ahead];
    if (visit.node < hosts) {
      prefetch_host(visit.node, ahead);
    } else {
      network_.sweep().prefetch_switch(visit.node - hosts, links_of(visit), ahead);
    }
  }
}

void WorldPart::prefetch_host(std::uint32_t host, unsigned ahead) const {
  if (ahead > 1) network_.sweep().prefetch_arrivals(host, ahead);
  const transport::Engine& engine = (*hosts_)[host].engine;
  const Packet* const packet =
      ahead < 4 ? network_.ahead().first_on(network_.sweep().downlink(host)) : nullptr;
  if (ahead == 5) {
    engine.lookahead().load_state();
    prefetch_line(&(*hosts_)[host].app);
  } else if (ahead == 4) {
    engine.lookahead().load_deadlines();
    engine.lookahead().load_flow(nullptr);
  } else if (ahead == 3) {
    if (packet != nullptr) engine.lookahead().load_flow(packet);
    engine.lookahead().load_flow_parts(nullptr);
  } else if (ahead == 2) {
    if (packet != nullptr) engine.lookahead().load_flow_parts(packet);
    engine.lookahead().load_request(nullptr);
  } else if (packet != nullptr) {
    engine.lookahead().load_request(packet);
  }
}

}  // namespace paceline
