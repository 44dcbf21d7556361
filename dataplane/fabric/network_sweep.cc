// A window of time, node by node. No link delivers sooner than the window is long, so within it
// nodes have nothing to say to one another, and each may work off its events on its own: in their
// order, while its queues, buffer counters and links lie in the first-level cache, and without the
// event queue, which hears of a link or a host once a window instead of once a packet.
//
// The result is that of link_fired event by event. What a switch does depends on what arrives there
// and on its own departures alone; both are worked off in the order of (time, link). Departures
// are lazy as ever, and all of the window are decided before it is over, for the far end may ask
// for them in the next. A link in the wheel waits for its first packet, as between any two events.
#include <algorithm>
#include <bit>
#include <cassert>

#include "dataplane/base/prefetch.h"
#include "dataplane/fabric/host_port.h"
#include "dataplane/fabric/network.h"
#include "dataplane/fabric/switching/egress.h"
#include "dataplane/fabric/switching/switch.h"
#include "dataplane/fabric/wire/link.h"

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

template <class Visit>
void over_backlogged(const Switch& sw, Visit&& visit) {
  for (std::size_t word = 0; word < sw.backlogged.size(); ++word) {
    for (std::uint64_t bits = sw.backlogged[word]; bits != 0; bits &= bits - 1) {
      visit(sw.port_links[word << 6 | static_cast<std::size_t>(std::countr_zero(bits))]);
    }
  }
}

}  // namespace

std::string Network::sweep_obstacle(const FabricSpec& spec) {
  if (!spec.events.empty()) return "links fail or change";
  if (spec.credit.enabled) return "credits return at every departure";
  if (spec.exact_departures) return "every departure is an event";
  if (spec.links.size() > kLinkMask / 2) return "more links than there are numbers for";
  for (const LinkSpec& link : spec.links) {
    if (link.reorder > 0) return "links reorder packets";
    if (link.delay >= kLongestSweep) return "delays of seconds";
  }
  return {};
}

void Network::prepare_sweeps() {
  node_of_.assign(links_.size() + 1, kNowhere);
  downlink_.assign(spec_.hosts, kNowhere);
  backlogged_nodes_.assign((spec_.hosts + switches_.size()) / 64 + 1, 0);
  for (const Link& link : links_) {
    const std::uint32_t to = link.to & ~Link::kToSwitch;
    if (link.leaves()) {  // what is on it arrives elsewhere, and is thrown away here
      node_of_[link.id] = spec_.hosts + egresses_[link.egress].switch_index;
    } else if ((link.to & Link::kToSwitch) != 0) {
      node_of_[link.id] = spec_.hosts + to;
    } else {
      node_of_[link.id] = to;
      downlink_[to] = link.id;
    }
  }
}

void Network::begin_sweep(Picos begin, Picos end) {
  assert(end > begin && end - begin < kLongestSweep);
  sweeping_ = true;
  sweep_begin_ = begin;
  sweep_end_ = end;
  next_leaving_ = kNever;
}

Picos Network::next_arrival(std::uint32_t link) const { return links_[link].head_time; }

void Network::arrive_next(std::uint32_t link) {
  Link& by = links_[link];
  Packet* const packet = by.head;
  const Picos now = by.head_time;
  now_ = now;
  by.head = packet->next;
  by.head_time = by.head == nullptr ? kNever : by.head->time;
  if (by.notable != 0) [[unlikely]] {
    arrive_notable(by, packet, now);
  } else {
    arrive(by, packet, now);
  }
}

void Network::wait_for_next(std::uint32_t link) {
  wheel_.schedule(first_actor_ + link, links_[link].head_time);
}

// While a switch has paused somebody, a resume is due at the very departure that allows it: these
// are events of their own, of the link that they leave by. All before (before, before_link).
void Network::depart_in_time(Switch& sw, Picos before, std::uint32_t before_link) {
  while (sw.paused_count != 0) {
    Picos time = before;
    std::uint32_t first = before_link;
    Link* due = nullptr;
    over_backlogged(sw, [&](std::uint32_t id) {
      Link& link = links_[id];
      if (link.eligible() == 0 || link.busy > time || (link.busy == time && id >= first)) return;
      time = link.busy;
      first = id;
      due = &link;
    });
    if (due == nullptr) return;
    now_ = time;
    advance(*due, time);
  }
}

Picos Network::sweep_switch(std::uint32_t index, std::span<const std::uint32_t> due) {
  Switch& sw = switches_[index];
  now_ = sweep_begin_;
  bool exact = sw.paused_count != 0;
  arrivals_.clear();
  for (const std::uint32_t id : due) {
    const Link& link = links_[id];
    if (link.head_time >= sweep_end_) continue;
    for (const Packet* packet = link.head; packet != nullptr && packet->time < sweep_end_;
         packet = packet->next) {
      arrivals_.push_back(
          static_cast<std::uint64_t>((packet->time - sweep_begin_).count) << kLinkBits | id);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  for (const std::uint64_t arrival : arrivals_) {
    const auto link = static_cast<std::uint32_t>(arrival & kLinkMask);
    if (sw.paused_count != 0) [[unlikely]] {
      exact = true;
      depart_in_time(sw, links_[link].head_time, link);
    }
    arrive_next(link);
  }
  swept_events_ += arrivals_.size();
  if (sw.paused_count != 0) [[unlikely]] {
    exact = true;
    depart_in_time(sw, sweep_end_, 0);
  }
  for (const std::uint32_t link : due) wait_for_next(link);
  next_leaving_ = earlier(next_leaving_, advance_backlogged(index, sweep_end_ - Picos{1}));
  if (exact) unscheduled_.push_back(index);
  return now_;
}

// Decides what leaves a switch up to `until`; returns when the next packet leaves.
Picos Network::advance_backlogged(std::uint32_t index, Picos until) {
  Picos next = kNever;
  bool any = false;
  over_backlogged(switches_[index], [&](std::uint32_t id) {
    Link& link = links_[id];
    advance(link, until);
    any = any || link.backlog != 0;
    if (link.eligible() != 0) next = earlier(next, link.busy);
  });
  const std::size_t node = std::size_t{spec_.hosts} + index;
  const std::uint64_t bit = std::uint64_t{1} << (node & 63);
  std::uint64_t& word = backlogged_nodes_[node >> 6];
  word = any ? word | bit : word & ~bit;
  return next;
}

Picos Network::end_sweep() {
  sweeping_ = false;
  for (const std::uint32_t index : unscheduled_) {
    for (const std::uint32_t link : switches_[index].port_links) reschedule(links_[link]);
  }
  unscheduled_.clear();
  return next_leaving_;
}

Picos Network::settle(Picos until) {
  Picos next = kNever;
  for (std::uint32_t index = 0; index < switches_.size(); ++index) {
    next = earlier(next, advance_backlogged(index, until));
    if (switches_[index].paused_count == 0) continue;
    for (const std::uint32_t link : switches_[index].port_links) reschedule(links_[link]);
  }
  return next;
}

// Three packets of each link that is due, with where the first of them goes; what waits to leave.
void Network::prefetch_sweep(std::uint32_t index, std::span<const std::uint32_t> due,
                             unsigned ahead) const {
  const Switch& sw = switches_[index];
  if (ahead == 5) {
    prefetch_switch(sw);
    for (const std::uint32_t id : due) prefetch_line(&links_[id]);
    return;
  }
  if (ahead == 4) {
    prefetch_line(sw.backlogged.data());
    prefetch_line(sw.port_links.data());
  } else {
    over_backlogged(sw, [&](std::uint32_t id) {
      const Link& link = links_[id];
      if (ahead == 3) {
        prefetch_line(&link);
        return;
      }
      const Egress& egress = egresses_[link.egress];
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
    const Link& link = links_[id];
    const Packet* const packet = arriving(link, ahead > 1 ? 4 - ahead : 2, sweep_end_);
    if (packet == nullptr) continue;
    if (ahead > 1) prefetch_line(packet);
    if (ahead == 4) sw.buffer.prefetch_counters(link.to_port);
    if (ahead > 3 || link.head->route >= spec_.hosts) continue;
    const std::uint32_t out = topology_.next_link(index, link.head->route, link.head->entropy);
    if (out == Topology::kNoLink) continue;
    if (ahead == 3) {
      prefetch_line(&links_[out]);
    } else if (ahead == 2) {
      prefetch_line(&egresses_[links_[out].egress]);
      prefetch_line(&egresses_[links_[out].egress].queues[link.head->traffic_class]);
    } else if (packet->next != nullptr) {
      prefetch_line(packet->next);
    }
  }
}

void Network::prefetch_arrivals(std::uint32_t host, unsigned ahead) const {
  const std::uint32_t id = downlink_[host];
  if (ahead == 5) {
    prefetch_line(&links_[id]);
    prefetch_line(&links_[id ^ 1U]);
    prefetch_line(&ports_[host]);
  } else if (const Packet* packet = arriving(links_[id], 4 - ahead, sweep_end_)) {
    prefetch_line(packet);
    prefetch_line(&packet->header);
  }
}

}  // namespace paceline::fabric
