#include "dataplane/config/fault_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline::config {

namespace {

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
     .meaning = "The NIC sends and receives at a part of its rate, as behind a bad PCIe link."},
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
     .meaning = "The link of a port fails and comes back again and again. Needs `for`."},
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
    {.kind = FaultKind::ecn_off,
     .name = "ecn_off",
     .target = FaultTarget::switch_itself,
     .meaning = "A switch marks no packets. Needs `fabric.ecn.enabled`."},
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
