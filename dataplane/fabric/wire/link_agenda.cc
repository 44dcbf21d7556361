#include "dataplane/fabric/wire/link_agenda.h"

#include <algorithm>

namespace paceline::fabric {

LinkAgenda::LinkAgenda(const FabricSpec& spec) : failed_(spec.links.size(), false) {
  for (const LinkEvent& event : spec.events) {
    items_.push_back({event.at, false, event});
    if (event.action == LinkAction::down || event.action == LinkAction::up) {
      items_.push_back({event.at + spec.reroute_delay, true, event});
    }
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.at < b.at; });
}

}  // namespace paceline::fabric
