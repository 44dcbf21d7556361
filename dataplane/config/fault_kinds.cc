#include "dataplane/config/fault_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline::config {

namespace {

constexpr double kIntakeLooks = 1e12 / static_cast<double>(kIntakeEvery.count);
constexpr double kStorms = 1e12 / static_cast<double>(kStormEvery.count);

constexpr auto kKinds = std::to_array<FaultKindInfo>({
    {.kind = FaultKind::slow_rank,
     .name = "slow_rank",
     .target = FaultTarget::rank,
     .least = 1.01,
     .most = 100,
     .usual = 1.5,
     .severity = "times as long to compute",
     .meaning = "What the rank of a job begins to compute takes longer."},
    {.kind = FaultKind::slow_nic,
     .name = "slow_nic",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC's ports send and receive at a part of their rate, as after a bad "
                "agreement on speed. Nobody is paused."},
    {.kind = FaultKind::pcie_limit,
     .name = "pcie_limit",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC's host link has a part of the ports' rate: it sends slowly, takes what "
                "arrives slowly, and pauses its switch meanwhile. Needs `for` and PFC.",
     .repeats = kIntakeLooks,
     .pauses = true},
    {.kind = FaultKind::slow_receiver,
     .name = "slow_receiver",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC takes what arrives slowly, as with too many memory regions, and pauses "
                "its switch meanwhile; it sends well. Needs `for` and PFC.",
     .repeats = kIntakeLooks,
     .pauses = true},
    {.kind = FaultKind::wrong_dscp,
     .name = "wrong_dscp",
     .target = FaultTarget::nic,
     .least = 0,
     .most = 6,
     .usual = 0,
     .severity = "the traffic class in which its data travels",
     .meaning = "The NIC gives its data the DSCP of another class: switches neither pause for it "
                "nor prefer it."},
    {.kind = FaultKind::dead_port,
     .name = "dead_port",
     .target = FaultTarget::port,
     .meaning = "The link of a port is down, on both sides. For NICs of several ports."},
    {.kind = FaultKind::flapping_port,
     .name = "flapping_port",
     .target = FaultTarget::port,
     .least = 1,
     .most = 10'000,
     .usual = 500,
     .severity = "times a second that it goes down, each time for a tenth of the time between",
     .meaning = "The link of a port fails and comes back again and again. Needs `for`.",
     .repeats = -1},
    {.kind = FaultKind::pfc_storm,
     .name = "pfc_storm",
     .target = FaultTarget::nic,
     .least = 0.5,
     .most = 1,
     .usual = 0.98,
     .severity = "share of the time that it pauses its switch",
     .meaning = "The NIC sends pauses, whether anything arrives or not. Needs `for` and PFC.",
     .repeats = kStorms,
     .pauses = true},
    {.kind = FaultKind::lossy_link,
     .name = "lossy_link",
     .target = FaultTarget::link,
     .least = 1e-6,
     .most = 1,
     .usual = 0.002,
     .severity = "share of the packets that vanish, whatever the load",
     .meaning = "A bad optic loses packets.",
     .one_direction = true},
    {.kind = FaultKind::bad_path,
     .name = "bad_path",
     .target = FaultTarget::between_switches,
     .least = 0.1,
     .most = 1e6,
     .usual = 20,
     .severity = "microseconds more, each way",
     .meaning = "A link between switches takes longer, as after a detour.",
     .one_direction = true},
    {.kind = FaultKind::hash_collision,
     .name = "hash_collision",
     .target = FaultTarget::between_switches,
     .least = 0.01,
     .most = 1,
     .usual = 1,
     .severity = "share of the connections that could pass it",
     .meaning = "Connections that open meanwhile get source ports by which they pass this link, "
                "from its first end to its second. Needs one path a connection."},
    {.kind = FaultKind::ecn_off,
     .name = "ecn_off",
     .target = FaultTarget::switch_itself,
     .meaning = "A switch marks no packets. Needs `fabric.ecn.enabled`."},
    {.kind = FaultKind::ecn_wrong,
     .name = "ecn_wrong",
     .target = FaultTarget::switch_itself,
     .least = 0.001,
     .most = 100,
     .usual = 0.05,
     .severity = "times the thresholds",
     .meaning = "A switch marks too early (below 1) or too late. Needs `fabric.ecn.enabled`."},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kKinds.size()> names;
  std::transform(kKinds.begin(), kKinds.end(), names.begin(),
                 [](const FaultKindInfo& kind) { return kind.name; });
  return names;
}();

}  // namespace

std::span<const FaultKindInfo> fault_kinds() { return kKinds; }

std::span<const std::string_view> fault_kind_names() { return kNames; }

const FaultKindInfo* find_fault_kind(std::string_view name) {
  const auto at = std::find_if(kKinds.begin(), kKinds.end(),
                               [&](const FaultKindInfo& kind) { return kind.name == name; });
  return at == kKinds.end() ? nullptr : &*at;
}

std::string_view target_text(FaultTarget target) {
  switch (target) {
    case FaultTarget::rank:
      return "a rank of the job, such as \"rank3\"";
    case FaultTarget::nic:
      return "a NIC, such as \"host3\"";
    case FaultTarget::port:
      return "a NIC's port, such as \"host3\" or \"host3.p1\"";
    case FaultTarget::link:
      return "one link, such as \"host3\" or \"leaf0-spine1\"";
    case FaultTarget::between_switches:
      return "one link between switches, such as \"leaf0-spine1\"";
    case FaultTarget::switch_itself:
      return "a switch, such as \"leaf1\" or \"spine0\"";
  }
  return {};
}

std::string target_error(const FaultKindInfo& kind, std::string_view target, std::size_t links,
                         bool of_host) {
  bool suits = links == 1;
  if (kind.target == FaultTarget::switch_itself) {
    const auto names = {"leaf", "spine", "core"};
    suits = target.find('-') == std::string_view::npos &&
            std::any_of(names.begin(), names.end(),
                        [&](const char* name) { return target.starts_with(name); });
  } else if (kind.target == FaultTarget::between_switches) {
    suits = suits && !of_host;
  } else if (kind.target != FaultTarget::link) {
    suits = suits && of_host;
  }
  if (suits) return {};
  return fmt::format("allowed with fault.kind = \"{}\" is {}", kind.name, target_text(kind.target));
}

}  // namespace paceline::config
