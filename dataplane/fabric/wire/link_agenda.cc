#include "dataplane/fabric/wire/link_agenda.h"

#include <algorithm>

namespace paceline::fabric {

LinkAgenda::LinkAgenda(const FabricSpec& spec)
    : reroute_delay_(spec.reroute_delay), failed_(spec.links.size(), false) {
  for (const LinkEvent& event : spec.events) add(event);
}

void LinkAgenda::add(const LinkEvent& event) {
  if (next_ > items_.size() / 2) {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
  insert({event.at, false, event});
  if (event.action == LinkAction::down || event.action == LinkAction::up) {
    insert({event.at + reroute_delay_, true, event});
  }
}

// Behind those at the same time.
void LinkAgenda::insert(const Item& item) {
  const auto waiting = items_.begin() + static_cast<std::ptrdiff_t>(next_);
  items_.insert(std::upper_bound(waiting, items_.end(), item,
                                 [](const Item& a, const Item& b) { return a.at < b.at; }),
                item);
}

}  // namespace paceline::fabric
