#include "dataplane/config/fault_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dataplane/config/scenario.h"

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
     .meaning = "The computing of a job's rank takes longer.",
     .not_on_testbeds = "ranks are programs there; `paceline job run` slows one"},
    {.kind = FaultKind::slow_nic,
     .name = "slow_nic",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC's ports send and receive at a part of their rate, as after a bad "
                "agreement on speed. No sender is paused."},
    {.kind = FaultKind::pcie_limit,
     .name = "pcie_limit",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC's host link has a part of the ports' rate: it sends slowly, takes what "
                "arrives slowly, and pauses its switch meanwhile. Needs PFC.",
     .repeats = true,
     .pauses = true},
    {.kind = FaultKind::slow_receiver,
     .name = "slow_receiver",
     .target = FaultTarget::nic,
     .least = 1.1,
     .most = 1000,
     .usual = 2,
     .severity = "times as slow",
     .meaning = "The NIC takes what arrives slowly, as with too many memory regions, and pauses "
                "its switch meanwhile; it sends well. Needs PFC.",
     .repeats = true,
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
     .meaning = "The link of a port is down, on both sides, or all links of a plane. In scenarios "
                "for NICs of several ports."},
    {.kind = FaultKind::flapping_port,
     .name = "flapping_port",
     .target = FaultTarget::port,
     .least = 1,
     .most = 10'000,
     .usual = 500,
     .severity = "times a second that it goes down, each time for a tenth of the time between",
     .meaning = "The link of a port fails and comes back again and again.",
     .repeats = true},
    {.kind = FaultKind::pfc_storm,
     .name = "pfc_storm",
     .target = FaultTarget::nic,
     .least = 0.5,
     .most = 1,
     .usual = 0.98,
     .severity = "share of the time that it pauses its switch",
     .meaning = "The NIC sends pauses, whether anything arrives or not. Needs PFC.",
     .repeats = true,
     .pauses = true},
    {.kind = FaultKind::lossy_link,
     .name = "lossy_link",
     .target = FaultTarget::link,
     .least = 1e-6,
     .most = 1,
     .usual = 0.002,
     .severity = "share of the packets that vanish, whatever the load",
     .meaning = "A bad optic loses packets.",
     .one_direction = true,
     .draws = true},
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
                "from its first end to its second. Needs one path a connection.",
     .draws = true},
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
    {.kind = FaultKind::clock_jump,
     .name = "clock_jump",
     .target = FaultTarget::nic,
     .least = -1e9,
     .most = 1e9,
     .usual = 1000,
     .severity = "microseconds by which it is ahead from then on",
     .meaning = "The clock of the NIC's host is set. In scenarios with `[probing]`.",
     .of_clock = true},
    {.kind = FaultKind::clock_drift,
     .name = "clock_drift",
     .target = FaultTarget::nic,
     .least = -500,
     .most = 500,
     .usual = 50,
     .severity = "parts per million by which it runs faster",
     .meaning = "The clock of the NIC's host drifts. In scenarios with `[probing]`.",
     .of_clock = true},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kKinds.size()> names;
  std::transform(kKinds.begin(), kKinds.end(), names.begin(),
                 [](const FaultKindInfo& kind) { return kind.name; });
  return names;
}();

// The action that is repeated every `usual` on links of this rate or more.
constexpr Rate kFull = rate_from_gbps(10);

Picos stretched(Picos usual, Rate link) {
  if (link.bps == 0 || link >= kFull) return usual;
  return Picos{
      static_cast<std::int64_t>(static_cast<double>(usual.count) * static_cast<double>(kFull.bps) /
                                static_cast<double>(link.bps))};
}

}  // namespace

Picos intake_every(Rate link) { return stretched(picos_from_micros(5), link); }

Picos storm_every(Rate link) { return stretched(picos_from_micros(100), link); }

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
      return "a NIC's port, such as \"host3\" or \"host3.p1\", or a plane, such as \"plane1\"";
    case FaultTarget::link:
      return "one link, such as \"host3\" or \"leaf0-spine1\"";
    case FaultTarget::between_switches:
      return "one link between switches, such as \"leaf0-spine1\"";
    case FaultTarget::switch_itself:
      return "a switch, such as \"leaf1\" or \"spine0\"";
  }
  return {};
}

std::string severity_error(const FaultKindInfo& kind, double severity) {
  if (kind.most == 0) return fmt::format("does nothing with fault.kind = \"{}\"", kind.name);
  if (!(severity >= kind.least && severity <= kind.most)) {
    return fmt::format("out of range, allowed with fault.kind = \"{}\" is [{} .. {}]: {}",
                       kind.name, kind.least, kind.most, kind.severity);
  }
  const bool whole = kind.kind != FaultKind::wrong_dscp || severity == std::floor(severity);
  return whole ? "" : "expected a whole number";
}

std::string_view lacking(const FaultKindInfo& kind, const FabricConfig& fabric, bool one_path) {
  if (kind.target == FaultTarget::switch_itself && !fabric.ecn.enabled) {
    return "fabric.ecn.enabled = true";
  }
  if (kind.pauses && fabric.flow_control != "pfc") return "fabric.flow_control = \"pfc\"";
  if (kind.kind == FaultKind::hash_collision && !one_path) {
    return "one path a connection: fabric.ports = 1, fabric.load_balance = \"ecmp\", "
           "transport.multipath = \"none\"";
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
  } else if (kind.target == FaultTarget::port) {
    suits = (suits && of_host) || target.starts_with("plane");
  } else if (kind.target == FaultTarget::between_switches) {
    suits = suits && !of_host;
  } else if (kind.target != FaultTarget::link) {
    suits = suits && of_host;
  }
  if (suits) return {};
  return fmt::format("allowed with fault.kind = \"{}\" is {}", kind.name, target_text(kind.target));
}

}  // namespace paceline::config
