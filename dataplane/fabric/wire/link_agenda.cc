#include "dataplane/fabric/wire/link_agenda.h"

#include <algorithm>

namespace paceline::fabric {

LinkAgenda::LinkAgenda(const FabricSpec& spec)
    : reroute_delay_(spec.reroute_delay), failed_(spec.links.size(), false) {
  add(spec.events);
}

void LinkAgenda::add(std::span<const LinkEvent> events) {
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  for (const LinkEvent& event : events) {
    items_.push_back({event.at, false, event});
    if (event.action == LinkAction::down || event.action == LinkAction::up) {
      items_.push_back({event.at + reroute_delay_, true, event});
    }
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.at < b.at; });
}

}  // namespace paceline::fabric
