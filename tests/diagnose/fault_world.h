// A scenario drawn from a seed, with or without a fault, and what is wrong in it.
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
  std::optional<diagnosis::Cause> truth;  // none: nothing is wrong, and nobody built it so
  std::string culprit;                    // of a fault
};

// Stars, leaves with spines, and rails of 16 to 64 NICs at 100 Gb/s; half of them run a job. Of
// seven worlds one is clean, one has an incast or a narrow core, the others a fault.
FaultWorld fault_world(std::uint64_t seed);

// Whether the fault did anything at all: whether packets went by its link, whether any were lost.
bool took_effect(const FaultWorld& world, const ObservedRun& observed);

}  // namespace paceline::tools
