// Link events in the order of their times, each failure and return followed by the switches'
// learning of it, and what the switches have learned.
#pragma once

#include <cstddef>
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
  };

  explicit LinkAgenda(const FabricSpec& spec);

  // More of them, behind those at the same time.
  void add(std::span<const LinkEvent> events);

  // When something is due; kNever: nothing is left.
  Picos next() const { return next_ < items_.size() ? items_[next_].at : kNever; }
  // The next event due at `now` that was not taken yet; nullptr: none.
  const Item* take(Picos now) {
    return next_ < items_.size() && items_[next_].at <= now ? &items_[next_++] : nullptr;
  }

  // Links of the spec that the switches take for failed.
  void learn(std::uint32_t link, bool down) { failed_[link] = down; }
  const std::vector<bool>& failed() const { return failed_; }

 private:
  Picos reroute_delay_;
  std::vector<Item> items_;  // by time; those before `next_` are over
  std::size_t next_ = 0;
  std::vector<bool> failed_;
};

}  // namespace paceline::fabric
