// A scenario drawn from a seed, with or without a fault, and its true cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"
#include "tools/diagnose/world_evidence.h"

namespace paceline::tools {

struct FaultWorld {
  std::string toml;
  std::optional<diagnosis::Cause> truth;  // none: there is no fault, no incast and no narrow core
  std::string culprit;                    // of a fault
  Picos begin{0};                         // likewise
};

// Stars, leaf-spine fabrics and rails of 64 to 1,024 NICs at 100 or 25 Gb/s; half of them run a
// job. A world is watched for five seconds at most. Of twelve worlds one has nothing, one has an
// incast or a narrow core, and ten have a fault of one of twelve causes.
FaultWorld fault_world(std::uint64_t seed);

// Whether the fault had any effect: whether packets used what is faulty while it was, whether any
// were lost or would have been marked, whether a link had enough to carry for a collision.
bool took_effect(const FaultWorld& world, const ObservedRun& observed);

}  // namespace paceline::tools
