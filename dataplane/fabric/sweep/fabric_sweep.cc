#include "dataplane/fabric/sweep/fabric_sweep.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "dataplane/base/prefetch.h"
#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/fabric/forwarding/host_port.h"

namespace paceline::fabric {

namespace {

// An arrival of the window as one number that orders: picoseconds from its beginning, then the
// link.
constexpr unsigned kLinkBits = 24;
constexpr std::uint64_t kLinkMask = (1U << kLinkBits) - 1;
constexpr Picos kLongestSweep{std::int64_t{1} << (63 - kLinkBits)};

// The packet that is `place` places behind the first on a link, if it arrives in the window.
const Packet* arriving(const Link& link, unsigned place, Picos end) {
  if (link.head_time >= end) return nullptr;
  const Packet* packet = link.head;
  for (; place != 0 && packet != nullptr && packet->time < end; --place) packet = packet->next;
  return packet;
}

}  // namespace

FabricSweep::FabricSweep(Forwarding& forwarding, const Slab<HostPort>& ports)
    : forwarding_(forwarding), state_(forwarding.state()), ports_(ports) {}

std::string FabricSweep::obstacle(const FabricSpec& spec) {
  if (!spec.events.empty() || spec.changeable) return "links fail or change";
  if (spec.credit.enabled) return "credits return at every departure";
  if (spec.exact_departures) return "every departure is an event";
  if (spec.links.size() > kLinkMask / 2) return "more links than there are numbers for";
  for (const LinkSpec& link : spec.links) {
    if (link.reorder > 0) return "links reorder packets";
    if (link.delay >= kLongestSweep) return "delays of seconds";
  }
  return {};
}

void FabricSweep::prepare() {
  node_of_.assign(state_.wire.size() + 1, Topology::kNoLink);
  downlink_.assign(state_.spec.hosts, Topology::kNoLink);
  backlogged_nodes_.assign((state_.spec.hosts + state_.switches.size()) / 64 + 1, 0);
  for (const Link& link : state_.wire.all()) {
    const std::uint32_t to = link.to & ~Link::kToSwitch;
    if (link.leaves()) {  // its packets arrive elsewhere; the copies here are dropped
      node_of_[link.id] = state_.spec.hosts + state_.queues[link.egress].switch_index;
    } else if ((link.to & Link::kToSwitch) != 0) {
      node_of_[link.id] = state_.spec.hosts + to;
    } else {
      node_of_[link.id] = to;
      downlink_[to] = link.id;
    }
  }
}

void FabricSweep::begin(Picos begin, Picos end) {
  assert(end > begin && end - begin < kLongestSweep);
  state_.wire.hold_schedule(true);
  begin_ = begin;
  end_ = end;
  next_leaving_ = kNever;
}

Picos FabricSweep::next_arrival(std::uint32_t link) const { return state_.wire[link].head_time; }

void FabricSweep::arrive_next(std::uint32_t link) { forwarding_.arrive_first(link); }

void FabricSweep::wait_for_next(std::uint32_t link) {
  state_.wire.wait_for_first(state_.wire[link]);
}

// While a switch has paused an upstream port, the resume must start at the departure that allows
// it, so departures are events of the link that they leave by: all before (before, before_link).
void FabricSweep::depart_in_time(Switch& sw, Picos before, std::uint32_t before_link) {
  while (sw.pauses.active()) {
    Picos time = before;
    std::uint32_t first = before_link;
    Link* due = nullptr;
    sw.over_backlogged([&](std::uint32_t id) {
      Link& link = state_.wire[id];
      if (link.eligible() == 0 || link.busy > time || (link.busy == time && id >= first)) return;
      time = link.busy;
      first = id;
      due = &link;
    });
    if (due == nullptr) return;
    state_.wire.set_now(time);
    forwarding_.advance(*due, time);
  }
}

Picos FabricSweep::sweep_switch(std::uint32_t index, std::span<const std::uint32_t> due) {
  Switch& sw = state_.switches[index];
  state_.wire.set_now(begin_);
  bool exact = sw.pauses.active();
  arrivals_.clear();
  for (const std::uint32_t id : due) {
    const Link& link = state_.wire[id];
    if (link.head_time >= end_) continue;
    for (const Packet* packet = link.head; packet != nullptr && packet->time < end_;
         packet = packet->next) {
      arrivals_.push_back(static_cast<std::uint64_t>((packet->time - begin_).count) << kLinkBits |
                          id);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  for (const std::uint64_t arrival : arrivals_) {
    const auto link = static_cast<std::uint32_t>(arrival & kLinkMask);
    if (sw.pauses.active()) [[unlikely]] {
      exact = true;
      depart_in_time(sw, state_.wire[link].head_time, link);
    }
    arrive_next(link);
  }
  events_ += arrivals_.size();
  if (sw.pauses.active()) [[unlikely]] {
    exact = true;
    depart_in_time(sw, end_, 0);
  }
  for (const std::uint32_t link : due) wait_for_next(link);
  next_leaving_ = earlier(next_leaving_, advance_backlogged(index, end_ - Picos{1}));
  if (exact) unscheduled_.push_back(index);
  return state_.wire.now();
}

// Decides what leaves a switch up to `until`; returns when the next packet leaves.
Picos FabricSweep::advance_backlogged(std::uint32_t index, Picos until) {
  Picos next = kNever;
  bool any = false;
  state_.switches[index].over_backlogged([&](std::uint32_t id) {
    Link& link = state_.wire[id];
    forwarding_.advance(link, until);
    any = any || link.backlog != 0;
    if (link.eligible() != 0) next = earlier(next, link.busy);
  });
  const std::size_t node = std::size_t{state_.spec.hosts} + index;
  const std::uint64_t bit = std::uint64_t{1} << (node & 63);
  std::uint64_t& word = backlogged_nodes_[node >> 6];
  word = any ? word | bit : word & ~bit;
  return next;
}

Picos FabricSweep::end() {
  state_.wire.hold_schedule(false);
  for (const std::uint32_t index : unscheduled_) {
    for (const std::uint32_t link : state_.switches[index].port_links)
      state_.wire.reschedule(state_.wire[link]);
  }
  unscheduled_.clear();
  return next_leaving_;
}

Picos FabricSweep::settle(Picos until) {
  Picos next = kNever;
  for (std::uint32_t index = 0; index < state_.switches.size(); ++index) {
    next = earlier(next, advance_backlogged(index, until));
    if (state_.switches[index].pauses.count() == 0) continue;
    for (const std::uint32_t link : state_.switches[index].port_links)
      state_.wire.reschedule(state_.wire[link]);
  }
  return next;
}

// Three packets of each link that is due, with where the first of them goes; what waits to leave.
void FabricSweep::prefetch_switch(std::uint32_t index, std::span<const std::uint32_t> due,
                                  unsigned ahead) const {
  const Switch& sw = state_.switches[index];
  if (ahead == 5) {
    sw.prefetch();
    for (const std::uint32_t id : due) prefetch_line(&state_.wire[id]);
    return;
  }
  if (ahead == 4) {
    prefetch_line(sw.backlogged.data());
    prefetch_line(sw.port_links.data());
  } else {
    sw.over_backlogged([&](std::uint32_t id) {
      const Link& link = state_.wire[id];
      if (ahead == 3) {
        prefetch_line(&link);
        return;
      }
      const Egress& egress = state_.queues[link.egress];
      const ClassQueue& queue = egress.queues[std::bit_width(link.backlog | 1U) - 1U];
      if (ahead == 2) {
        prefetch_line(&egress);
        prefetch_line(&queue);
      } else {
        prefetch_line(queue.head);
        prefetch_line(queue.tail);
      }
    });
  }
  for (const std::uint32_t id : due) {
    const Link& link = state_.wire[id];
    const Packet* const packet = arriving(link, ahead > 1 ? 4 - ahead : 2, end_);
    if (packet == nullptr) continue;
    if (ahead > 1) prefetch_line(packet);
    if (ahead == 4) sw.buffer.prefetch_counters(link.to_port);
    if (ahead > 3 || link.head->route >= state_.spec.hosts) continue;
    const std::uint32_t out =
        state_.topology.next_link(index, link.head->route, link.head->entropy);
    if (out == Topology::kNoLink) continue;
    if (ahead == 3) {
      prefetch_line(&state_.wire[out]);
    } else if (ahead == 2) {
      prefetch_line(&state_.queues[state_.wire[out].egress]);
      prefetch_line(&state_.queues[state_.wire[out].egress].queues[link.head->traffic_class]);
    } else if (packet->next != nullptr) {
      prefetch_line(packet->next);
    }
  }
}

void FabricSweep::prefetch_arrivals(std::uint32_t host, unsigned ahead) const {
  const std::uint32_t id = downlink_[host];
  if (ahead == 5) {
    prefetch_line(&state_.wire[id]);
    prefetch_line(&state_.wire[id ^ 1U]);
    prefetch_line(&ports_[host]);
    prefetch_line(&state_.hosts[host]);
  } else if (const Packet* packet = arriving(state_.wire[id], 4 - ahead, end_)) {
    prefetch_line(packet);
    prefetch_line(&packet->header);
  }
}

}  // namespace paceline::fabric
