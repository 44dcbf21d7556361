// The keys of a [[fault]].
#include <array>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

constexpr auto kFaultDirections = std::to_array<std::string_view>({"both", "up", "down"});

}  // namespace

std::span<const KeySpec> fault_keys() {
  static const auto keys = std::to_array<KeySpec>({
      {.path = "fault.kind",
       .form = Form::choice,
       .choices = fault_kind_names(),
       .meaning = "Required; see `paceline faults list`."},
      {.path = "fault.target",
       .meaning = "\"rank3\", or a link as in `[[event]]`, as the kind says. Required."},
      {.path = "fault.at", .min = 0, .max = 1000 * key_unit::kSecond, .meaning = "When it begins."},
      {.path = "fault.for",
       .min = 1,
       .max = 1000 * key_unit::kSecond,
       .meaning = "How long it lasts; without it, to the end."},
      {.path = "fault.severity",
       .meaning = "How bad it is, in the unit of the kind; without it, the kind's usual one."},
      {.path = "fault.seed",
       .min = 1,
       .max = 9.2e18,
       .meaning = "Seed of its randomness; default: the scenario's. (lossy_link/hash_collision)"},
      {.path = "fault.direction",
       .form = Form::choice,
       .choices = kFaultDirections,
       .meaning = "As in `[[event]]`. (lossy_link/bad_path)"},
  });
  return keys;
}

Field fault_field(FaultConfig& fault, std::string_view name) {
  if (name == "kind") return &fault.kind;
  if (name == "target") return &fault.target;
  if (name == "at") return &fault.at;
  if (name == "for") return &fault.lasts;
  if (name == "severity") return &fault.severity;
  if (name == "seed") return &fault.seed;
  return &fault.direction;
}

}  // namespace paceline::config
