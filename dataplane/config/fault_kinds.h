// The kinds of fault that a scenario ([[fault]]) and a running testbed (`paceline testbed fault`)
// can have: what each needs, what its severity means, and what `paceline faults list` prints about
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"

namespace paceline::config {

struct FabricConfig;

// How often a slow NIC looks at waiting data, and how often a storm sends its pause again: every 5
// us and every 100 us, and less often where a link is slower than 10 Gb/s.
Picos intake_every(Rate link);
Picos storm_every(Rate link);

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
  clock_jump,
  clock_drift,
};

// What a fault happens to.
enum class FaultTarget : std::uint8_t {
  rank,              // "rank3", of a job
  nic,               // "host3": all ports of that NIC
  port,              // "host3.p1": the link of one port; or "plane1": all of that plane
  link,              // any one link
  between_switches,  // one link between two switches
  switch_itself,     // "leaf1": all links of that switch
};

struct FaultKindInfo {
  FaultKind kind = FaultKind::slow_rank;
  std::string_view name{};
  FaultTarget target = FaultTarget::rank;
  // Range and default of the severity; most = 0: the kind has none.
  double least = 0;
  double most = 0;
  double usual = 0;
  std::string_view severity{};  // what it means
  std::string_view meaning{};   // what happens
  bool one_direction = false;   // [[fault]] direction may be "up" or "down"
  bool repeats = false;         // it happens again and again: in virtual time it needs an end
  bool pauses = false;          // needs fabric.flow_control = "pfc"
  bool draws = false;           // chance decides, by a seed of its own if it is given one
  bool of_clock = false;        // it happens to the clock of the NIC's host, not to links
  std::string_view not_on_testbeds{};  // why testbeds cannot have it; empty: they can
};

std::span<const FaultKindInfo> fault_kinds();
std::span<const std::string_view> fault_kind_names();
// Null: there is none of this name.
const FaultKindInfo* find_fault_kind(std::string_view name);

// What a target of this kind may be, for messages and the list.
std::string_view target_text(FaultTarget target);

// What is wrong with a severity; empty: nothing.
std::string severity_error(const FaultKindInfo& kind, double severity);
// What a kind needs and this fabric lacks; empty: nothing. `one_path`: all packets of a connection
// take the same path.
std::string_view lacking(const FaultKindInfo& kind, const FabricConfig& fabric, bool one_path);

// The reason why a kind cannot have these links as its target, or an empty text. `of_host`: the
// first link is a host's. Not for kinds whose target is a rank.
std::string target_error(const FaultKindInfo& kind, std::string_view target, std::size_t links,
                         bool of_host);

}  // namespace paceline::config
