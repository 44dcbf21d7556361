#include "dataplane/driver/scenario/fault_events.h"

#include <algorithm>
#include <utility>

#include "dataplane/config/fault_kinds.h"

namespace paceline {

namespace {

using config::FaultKind;
using fabric::LinkAction;
using fabric::LinkEvent;

class FaultLinks {
 public:
  FaultLinks(const config::FaultConfig& fault, const fabric::FabricSpec& spec)
      : fault_(fault), spec_(spec) {}

  std::vector<LinkEvent> events(FaultKind kind) {
    for (const std::uint32_t link : fault_.links) {
      if (kind == FaultKind::ecn_off) {
        add_marking(link, LinkAction::mark_off);
      } else if (kind == FaultKind::ecn_wrong) {
        add_marking(link, LinkAction::mark_at);
      } else if (is_of_nic(kind)) {
        for (const std::uint32_t port : ports_beside(link)) add_to_port(kind, port);
      } else {
        add(kind, link);
      }
    }
    return std::move(out_);
  }

 private:
  LinkEvent event(Picos at, std::uint32_t link, LinkAction action) const {
    LinkEvent one;
    one.at = at;
    one.link = link;
    one.action = action;
    one.directions = directions_of(fault_.direction);
    return one;
  }
  // The change at the beginning, and `after` at the end if there is one.
  void add_change(const LinkEvent& change, const LinkEvent& after) {
    out_.push_back(change);
    if (after.at != kNever) out_.push_back(after);
  }

  void add(FaultKind kind, std::uint32_t link) {
    const fabric::LinkSpec& as_built = spec_.links[link];
    const Picos until = fault_.until();
    if (kind == FaultKind::lossy_link) {
      LinkEvent loss = event(fault_.at, link, LinkAction::loss);
      loss.seed = fault_.seed;
      LinkEvent after = event(until, link, LinkAction::loss);
      loss.probability = fault_.severity;
      after.probability = as_built.loss;
      add_change(loss, after);
    } else if (kind == FaultKind::bad_path) {
      LinkEvent longer = event(fault_.at, link, LinkAction::delay);
      LinkEvent after = event(until, link, LinkAction::delay);
      longer.delay = as_built.delay + Picos{static_cast<std::int64_t>(fault_.severity * 1e6)};
      after.delay = as_built.delay;
      add_change(longer, after);
    } else if (kind == FaultKind::dead_port) {
      add_change(event(fault_.at, link, LinkAction::down), event(until, link, LinkAction::up));
    } else if (kind == FaultKind::flapping_port) {
      add_flaps(link);
    }
  }

  // The packets that leave the switch by this link.
  void add_marking(std::uint32_t link, LinkAction action) {
    LinkEvent change = event(fault_.at, link, action);
    LinkEvent on = event(fault_.until(), link, LinkAction::mark_on);
    change.directions = on.directions = spec_.links[link].a == shared_end() ? 1 : 2;
    if (action == LinkAction::mark_at) change.factor = fault_.severity;
    add_change(change, on);
  }
  // The node at which all links of the fault end.
  std::uint32_t shared_end() const {
    const fabric::LinkSpec& first = spec_.links[fault_.links.front()];
    const bool a = std::all_of(fault_.links.begin(), fault_.links.end(), [&](std::uint32_t link) {
      return spec_.links[link].a == first.a || spec_.links[link].b == first.a;
    });
    return a && first.a >= spec_.hosts ? first.a : first.b;
  }

  void add_flaps(std::uint32_t link) {
    const Picos period{static_cast<std::int64_t>(1e12 / fault_.severity)};
    LinkEvent down = event(fault_.at, link, LinkAction::down);
    LinkEvent up = event(fault_.at + period / 10, link, LinkAction::up);
    down.every = up.every = period;
    down.until = fault_.until();
    up.until = saturating_add(fault_.until(), period / 10);
    out_.push_back(down);
    out_.push_back(up);
  }

  static bool is_of_nic(FaultKind kind) {
    return kind == FaultKind::slow_nic || kind == FaultKind::pcie_limit ||
           kind == FaultKind::slow_receiver || kind == FaultKind::wrong_dscp ||
           kind == FaultKind::pfc_storm;
  }
  // The links of all ports of the NIC that the link is of.
  std::vector<std::uint32_t> ports_beside(std::uint32_t of) const {
    const auto nic_at = [this](std::uint32_t link) {
      const fabric::LinkSpec& l = spec_.links[link];
      const std::uint32_t end = std::min(l.a, l.b);
      return end < spec_.hosts ? end % spec_.nics() : spec_.hosts;
    };
    std::vector<std::uint32_t> out;
    for (std::uint32_t link = 0; link < spec_.links.size(); ++link) {
      if (nic_at(link) == nic_at(of)) out.push_back(link);
    }
    return out;
  }
  // The direction from the host.
  std::uint8_t from_host(std::uint32_t link) const {
    return spec_.links[link].a < spec_.hosts ? 1 : 2;
  }

  void add_to_port(FaultKind kind, std::uint32_t port) {
    if (kind == FaultKind::slow_nic) add_rate(port, fabric::kBothDirections);
    if (kind == FaultKind::pcie_limit) add_rate(port, from_host(port));
    if (kind == FaultKind::pcie_limit || kind == FaultKind::slow_receiver) add_intake(port);
    if (kind == FaultKind::pfc_storm) add_storm(port);
    if (kind != FaultKind::wrong_dscp) return;
    LinkEvent other = event(fault_.at, port, LinkAction::reclass);
    LinkEvent after = event(fault_.until(), port, LinkAction::reclass);
    other.directions = after.directions = from_host(port);
    other.traffic_class = static_cast<std::uint8_t>(fault_.severity);
    add_change(other, after);
  }

  Rate slower(std::uint32_t link) const {
    const auto rate = static_cast<double>(spec_.links[link].rate.bps);
    return Rate{static_cast<std::uint64_t>(rate / fault_.severity)};
  }
  void add_rate(std::uint32_t link, std::uint8_t directions) {
    LinkEvent change = event(fault_.at, link, LinkAction::rate);
    LinkEvent after = event(fault_.until(), link, LinkAction::rate);
    change.directions = after.directions = directions;
    change.rate = slower(link);
    after.rate = spec_.links[link].rate;
    add_change(change, after);
  }
  void add_intake(std::uint32_t link) {
    LinkEvent look = event(fault_.at, link, LinkAction::take);
    look.directions = from_host(link);
    look.rate = slower(link);
    look.every = config::intake_every(spec_.links[link].rate);
    look.until = fault_.until();
    LinkEvent last = event(fault_.until(), link, LinkAction::take);
    last.directions = look.directions;
    add_change(look, last);
  }
  void add_storm(std::uint32_t link) {
    const Picos every = config::storm_every(spec_.links[link].rate);
    const Picos on{static_cast<std::int64_t>(static_cast<double>(every.count) * fault_.severity)};
    LinkEvent pause = event(fault_.at, link, LinkAction::pause);
    LinkEvent resume = event(fault_.at + on, link, LinkAction::resume);
    pause.directions = resume.directions = from_host(link);
    pause.every = resume.every = every;
    pause.until = resume.until = fault_.until();
    out_.push_back(pause);
    if (fault_.severity < 1) out_.push_back(resume);
    LinkEvent last = event(fault_.until(), link, LinkAction::resume);
    last.directions = pause.directions;
    if (last.at != kNever) out_.push_back(last);
  }

  const config::FaultConfig& fault_;
  const fabric::FabricSpec& spec_;
  std::vector<LinkEvent> out_;
};

}  // namespace

std::uint8_t directions_of(std::string_view name) {
  if (name == "up") return 1;
  return name == "down" ? 2 : fabric::kBothDirections;
}

std::vector<LinkEvent> fault_events(const config::FaultConfig& fault,
                                    const fabric::FabricSpec& spec) {
  return FaultLinks(fault, spec).events(config::find_fault_kind(fault.kind)->kind);
}

}  // namespace paceline
