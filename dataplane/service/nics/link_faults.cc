#include "dataplane/service/nics/link_faults.h"

#include <fmt/format.h>
#include <algorithm>

#include "dataplane/config/scenario/link_group.h"
#include "dataplane/driver/scenario/scenario_setup.h"

namespace paceline::service {

namespace {

using fabric::LinkAction;

constexpr LinkAction kProperties[] = {LinkAction::rate,      LinkAction::delay,
                                      LinkAction::loss,      LinkAction::corrupt,
                                      LinkAction::duplicate, LinkAction::reorder};

}  // namespace

std::string LinkFaults::find(const std::string& target, std::vector<std::uint32_t>& links) const {
  const auto named = std::find_if(names_.begin(), names_.end(),
                                  [&](const NamedLinks& n) { return n.name == target; });
  if (named != names_.end()) {
    links = named->links;
    return {};
  }
  config::FoundLinks found = config::find_links(fabric_, target);
  links = std::move(found.links);
  if (found.error.empty()) return {};
  return fmt::format(
      "target: no NIC or port \"{}\" (the first is \"{}\", the last \"{}\"); as a link: {}", target,
      names_.front().name, names_.back().name, found.error);
}

fabric::LinkEvent LinkFaults::undone(const fabric::LinkEvent& event) const {
  const fabric::LinkSpec& link = spec_.links[event.link];
  fabric::LinkEvent out = event;
  switch (event.action) {
    case LinkAction::down:
    case LinkAction::up:
      out.action = LinkAction::up;
      break;
    case LinkAction::rate:
      out.rate = link.rate;
      break;
    case LinkAction::delay:
      out.delay = link.delay;
      break;
    case LinkAction::loss:
      out.probability = link.loss;
      break;
    case LinkAction::corrupt:
      out.probability = link.error_rate;
      break;
    case LinkAction::duplicate:
      out.probability = link.duplicate;
      break;
    case LinkAction::reorder:
      out.probability = link.reorder;
      break;
    case LinkAction::mark_off:
    case LinkAction::mark_on:
    case LinkAction::mark_at:
      out.action = LinkAction::mark_on;
      out.factor = 1;
      break;
    case LinkAction::reclass:
      out.traffic_class = kTrafficClasses;
      break;
    case LinkAction::pause:
    case LinkAction::resume:
      out.action = LinkAction::resume;
      break;
    case LinkAction::take:
      out.rate = {};
      break;
  }
  return out;
}

std::string LinkFaults::add(const config::LinkFault& fault,
                            std::vector<fabric::LinkEvent>& out) const {
  if (fault.action == "duplicate" && spec_.credit.enabled) {
    return "action: with fabric.flow_control = \"credit\" links cannot send a packet twice";
  }
  config::EventConfig event;
  if (std::string wrong = find(fault.target, event.links); !wrong.empty()) return wrong;
  event.at = fault.after;
  if (fault.action == "clear") {
    for (const std::uint32_t link : event.links) {
      for (const LinkAction action : kProperties) out.push_back(undone({event.at, link, action}));
      out.push_back({event.at, link, LinkAction::up});
    }
    return {};
  }
  event.action = fault.action;
  event.rate = fault.rate;
  event.delay = fault.delay;
  event.probability = fault.probability;
  event.direction = fault.direction;
  for (const fabric::LinkEvent& happens : link_events(event)) {
    out.push_back(happens);
    if (fault.lasts.count == 0) continue;
    fabric::LinkEvent end = undone(happens);
    end.at += fault.lasts;
    out.push_back(end);
  }
  return {};
}

}  // namespace paceline::service
