// Link events in the order of their times. Each failure and return is followed by the moment when
// the switches learn of it. Also holds what the switches have learned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/link_event.h"

namespace paceline::fabric {

class LinkAgenda {
 public:
  struct Item {
    Picos at{0};
    bool reroute = false;  // the switches learn of it
    LinkEvent event;
    std::uint64_t number = 0;  // in the order in which they were added
  };

  explicit LinkAgenda(const FabricSpec& spec);

  // Adds events, behind those at the same time.
  void add(std::span<const LinkEvent> events);

  // When something is due; kNever: nothing is left.
  Picos next() const { return items_.empty() ? kNever : items_.begin()->first; }
  // The next event due at `now` that was not taken yet, until the next call; nullptr: none. One
  // that repeats itself comes again behind those at its next time.
  const Item* take(Picos now);
  // Cancels events that were added for the link of `item` before it and are not over. The switches
  // still learn of what has happened.
  void forget_before(const Item& item);

  // Links of the spec that the switches take for failed.
  void learn(std::uint32_t link, bool down) { failed_[link] = down; }
  const std::vector<bool>& failed() const { return failed_; }

 private:
  void put(Picos at, bool reroute, const LinkEvent& event);

  Picos reroute_delay_;
  std::multimap<Picos, Item> items_;  // by time; at the same time in the order of their coming
  Item taken_;
  std::uint64_t last_number_ = 0;
  std::vector<bool> failed_;
};

}  // namespace paceline::fabric
