#include "dataplane/fabric/wire/link_agenda.h"

#include <iterator>
#include <utility>

namespace paceline::fabric {

LinkAgenda::LinkAgenda(const FabricSpec& spec)
    : reroute_delay_(spec.reroute_delay), failed_(spec.links.size(), false) {
  add(spec.events);
}

void LinkAgenda::put(Picos at, bool reroute, const LinkEvent& event) {
  items_.emplace(at, Item{at, reroute, event, last_number_});
}

void LinkAgenda::add(std::span<const LinkEvent> events) {
  for (const LinkEvent& event : events) {
    ++last_number_;
    put(event.at, false, event);
    if (event.action == LinkAction::down || event.action == LinkAction::up) {
      LinkEvent learned = event;
      learned.until = saturating_add(event.until, reroute_delay_);
      put(event.at + reroute_delay_, true, learned);
    }
  }
}

const LinkAgenda::Item* LinkAgenda::take(Picos now) {
  if (items_.empty() || items_.begin()->first > now) return nullptr;
  auto node = items_.extract(items_.begin());
  Item& item = node.mapped();
  taken_ = item;
  const Picos again = item.at + item.event.every;
  if (item.event.every.count != 0 && again < item.event.until) {
    item.at = node.key() = again;
    items_.insert(std::move(node));
  }
  return &taken_;
}

void LinkAgenda::forget_before(const Item& item) {
  for (auto at = items_.begin(); at != items_.end();) {
    Item& other = at->second;
    const bool before = other.event.link == item.event.link && other.number < item.number;
    if (before) other.event.every = Picos{0};
    at = before && !other.reroute ? items_.erase(at) : std::next(at);
  }
}

}  // namespace paceline::fabric
