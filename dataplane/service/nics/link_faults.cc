#include "dataplane/service/nics/link_faults.h"

#include <fmt/format.h>
#include <algorithm>

#include "dataplane/config/scenario/link_group.h"
#include "dataplane/driver/scenario/fault_events.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/port_plan.h"

namespace paceline::service {

namespace {

using fabric::LinkAction;

constexpr LinkAction kProperties[] = {
    LinkAction::rate,    LinkAction::delay,     LinkAction::loss,    LinkAction::corrupt,
    LinkAction::reorder, LinkAction::mark_on,   LinkAction::reclass, LinkAction::take,
    LinkAction::resume,  LinkAction::duplicate, LinkAction::up};

}  // namespace

std::string LinkFaults::find(const std::string& target, std::vector<std::uint32_t>& links,
                             bool& by_name) const {
  const auto named = std::find_if(names_.begin(), names_.end(),
                                  [&](const NamedLinks& n) { return n.name == target; });
  by_name = named != names_.end();
  if (by_name) {
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
    case LinkAction::forget:
      break;
  }
  return out;
}

std::vector<std::uint32_t> LinkFaults::links_of(const std::string& target) const {
  std::vector<std::uint32_t> links;
  bool by_name = false;
  find(target, links, by_name);
  return links;
}

std::uint16_t LinkFaults::port_past(std::uint32_t link, std::uint32_t from, std::uint32_t to,
                                    std::uint16_t port) const {
  return port_by(2 * link, spec_, as_built_, from, to, port).value_or(port);
}

// Adds everything that a scenario's fault of this kind does.
std::string LinkFaults::add_kind(const config::FaultKindInfo& kind, const config::LinkFault& fault,
                                 std::vector<fabric::LinkEvent>& out) const {
  config::FaultConfig as_planned;
  bool by_name = false;
  if (std::string wrong = find(fault.target, as_planned.links, by_name); !wrong.empty()) {
    return wrong;
  }
  // A NIC of several ports is meant by the first; ports of it are meant one by one.
  if (by_name && kind.target == config::FaultTarget::nic) as_planned.links.resize(1);
  const bool each = by_name && kind.target == config::FaultTarget::port;
  const std::string wrong =
      config::target_error(kind, fault.target, each ? 1 : as_planned.links.size(),
                           as_planned.links.front() < fabric_.endpoints());
  if (!wrong.empty()) return "target: " + wrong;
  if (const auto what = config::lacking(kind, fabric_, one_path_); !what.empty()) {
    return fmt::format("action: {} needs {}", kind.name, what);
  }
  as_planned.kind = kind.name;
  as_planned.at = fault.after;
  if (fault.lasts.count != 0) as_planned.lasts = fault.lasts;
  as_planned.severity = fault.severity.value_or(kind.usual);
  as_planned.direction = fault.direction;
  as_planned.seed = fault.seed;
  const std::vector<fabric::LinkEvent> events = fault_events(as_planned, spec_);
  out.insert(out.end(), events.begin(), events.end());
  return {};
}

std::string LinkFaults::add(const config::LinkFault& fault,
                            std::vector<fabric::LinkEvent>& out) const {
  if (fault.action == "duplicate" && spec_.credit.enabled) {
    return "action: with fabric.flow_control = \"credit\" links cannot send a packet twice";
  }
  if (const config::FaultKindInfo* const kind = config::find_fault_kind(fault.action)) {
    return add_kind(*kind, fault, out);
  }
  config::EventConfig event;
  bool by_name = false;
  if (std::string wrong = find(fault.target, event.links, by_name); !wrong.empty()) return wrong;
  event.at = fault.after;
  if (fault.action == "clear") {
    for (const std::uint32_t link : event.links) {
      out.push_back({event.at, link, LinkAction::forget});
      for (const LinkAction action : kProperties) out.push_back(undone({event.at, link, action}));
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
