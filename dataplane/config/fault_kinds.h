// The kinds of fault that a scenario can have, [[fault]]: what each is given, what its severity
// means, and what `paceline faults list` says of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"

namespace paceline::config {

// How often a NIC that takes data slowly looks at what waits, and a storm begins anew.
inline constexpr Picos kIntakeEvery = picos_from_micros(5);
inline constexpr Picos kStormEvery = picos_from_micros(100);

enum class FaultKind : std::uint8_t {
  slow_rank,
  slow_nic,
  dead_port,
  flapping_port,
  lossy_link,
  bad_path,
  ecn_off,
  ecn_wrong,
  pcie_limit,
  slow_receiver,
  wrong_dscp,
  pfc_storm,
  hash_collision,
};

// What a fault happens to.
enum class FaultTarget : std::uint8_t {
  rank,              // "rank3", of a job
  nic,               // "host3": all ports of that NIC
  port,              // "host3.p1": the link of one port
  link,              // any one link
  between_switches,  // one link between two switches
  switch_itself,     // "leaf1": all links of that switch
};

struct FaultKindInfo {
  FaultKind kind = FaultKind::slow_rank;
  std::string_view name{};
  FaultTarget target = FaultTarget::rank;
  // Of the severity; most = 0: the kind has none.
  double least = 0;
  double most = 0;
  double usual = 0;
  std::string_view severity{};  // what it means
  std::string_view meaning{};   // what happens
  bool one_direction = false;   // [[fault]] direction may be "up" or "down"
  // It happens so often a second, in events that are planned beforehand: it needs an end. -1: as
  // often as the severity says.
  double repeats = 0;
  bool pauses = false;  // needs fabric.flow_control = "pfc"
};

std::span<const FaultKindInfo> fault_kinds();
std::span<const std::string_view> fault_kind_names();
// Null: there is none of this name.
const FaultKindInfo* find_fault_kind(std::string_view name);

// What a target of this kind may be, for messages and the list.
std::string_view target_text(FaultTarget target);

// Why a kind cannot have these links as its target, the first of which is a host's or not; empty:
// it can. Of kinds whose target is no rank.
std::string target_error(const FaultKindInfo& kind, std::string_view target, std::size_t links,
                         bool of_host);

}  // namespace paceline::config
