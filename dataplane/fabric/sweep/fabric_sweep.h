// A window of time, node by node. The window is not longer than the shortest link delay. So nodes
// cannot affect one another within it, and each can process its events on its own: in their order,
// while its queues, buffer counters and links lie in the first-level cache, and without the event
// queue, which handles a link or a host once per window instead of once per packet.
//
// The result is that of link_fired event by event. What a switch does depends only on what arrives
// there and on its own departures; both are processed in the order of (time, link). Departures are
// lazy as usual, but all of the window are decided before its end, because the far end may need
// them in the next. A link in the wheel waits for its first packet, as between any two events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/containers/slab.h"
#include "dataplane/base/units.h"

namespace paceline::fabric {

class Forwarding;
class HostPort;
struct FabricSpec;
struct FabricState;
struct Switch;

class FabricSweep {
 public:
  // Both must outlive this.
  FabricSweep(Forwarding& forwarding, const Slab<HostPort>& ports);

  // Why this fabric cannot be swept by windows [begin, end); empty: it can, once prepared. A window
  // is no longer than the shortest delay of a link, so that other nodes feel what a node does in it
  // only after it: each node's events run in their order, the nodes in any order.
  static std::string obstacle(const FabricSpec& spec);
  void prepare();
  // The node at which packets of a directed link arrive in this part: a host, or a switch, which
  // come after the hosts. `actor` may be something else than a link: Topology::kNoLink.
  std::uint32_t node_of(std::uint32_t actor) const { return node_of_[actor]; }
  // The link that ends at a host.
  std::uint32_t downlink(std::uint32_t host) const { return downlink_[host]; }
  // A bit for every node; set: a switch with packets queued, which must be visited in each window.
  const std::vector<std::uint64_t>& backlogged_nodes() const { return backlogged_nodes_; }
  void begin(Picos begin, Picos end);
  // Everything at this switch in the window; returns the time of the last. `due`: the links to it
  // that the wheel had before the window's end.
  Picos sweep_switch(std::uint32_t index, std::span<const std::uint32_t> due);
  // When the next packet arrives by this link; it arrives.
  Picos next_arrival(std::uint32_t link) const;
  void arrive_next(std::uint32_t link);
  // Puts the link back into the wheel, once all of the window has arrived.
  void wait_for_next(std::uint32_t link);
  // After the last node. When the next packet leaves a queue: no event, but no window may begin
  // later.
  Picos end();
  // The same after events that link_fired processed, all before `until`.
  Picos settle(Picos until);
  // Prefetches what a switch or a host will touch, while `ahead` other nodes come before it. Calls
  // with kAhead, and one less each time, follow one another; each reads what the one before has
  // fetched.
  static constexpr unsigned kAhead = 5;
  void prefetch_switch(std::uint32_t index, std::span<const std::uint32_t> due,
                       unsigned ahead) const;
  void prefetch_arrivals(std::uint32_t host, unsigned ahead) const;
  // Packets that arrived at switches in sweep_switch.
  std::uint64_t events() const { return events_; }

 private:
  void depart_in_time(Switch& sw, Picos before, std::uint32_t before_link);
  Picos advance_backlogged(std::uint32_t index, Picos until);

  Forwarding& forwarding_;
  FabricState& state_;  // of forwarding_
  const Slab<HostPort>& ports_;
  Picos begin_{0};
  Picos end_{0};
  Picos next_leaving_ = kNever;
  std::uint64_t events_ = 0;
  std::vector<std::uint32_t> node_of_;           // by actor of the network
  std::vector<std::uint32_t> downlink_;          // by host
  std::vector<std::uint64_t> backlogged_nodes_;  // as it was at the end of the last window
  std::vector<std::uint64_t> arrivals_;          // of one switch: time, then link
  std::vector<std::uint32_t> unscheduled_;       // switches with exact departures
};

}  // namespace paceline::fabric
