// The parts that make up the table of scenario keys, one file each, and what their rows are written
// with. For those files only.
#pragma once

#include <span>

#include "dataplane/config/keys/scenario_keys.h"

namespace paceline::config {

// Rows of [fabric], [transport], [workload.job], [workload.job.model], [workload.job.inference],
// [workload.background] and [probing], in the order of the reference page.
std::span<const KeySpec> fabric_keys();
std::span<const KeySpec> transport_keys();
std::span<const KeySpec> job_keys();
std::span<const KeySpec> background_keys();
std::span<const KeySpec> probing_keys();
std::span<const KeySpec> training_keys();
std::span<const KeySpec> inference_keys();

namespace key_unit {
inline constexpr double kNs = 1e3, kUs = 1e6, kSecond = 1e12;
inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kHostLimit = kMostHosts;
}  // namespace key_unit

// The field of a row: a function from a scenario to the address of one member.
#define PACELINE_FIELD(member) [](Scenario& s) -> Field { return &s.member; }

}  // namespace paceline::config
