// The workloads that a tuner has seen, and what it learned of each.
#pragma once

#include "control/tuner/online/tuner_state.h"

namespace paceline::tuner::online {

// Contexts remembered; the one not used for longest makes room.
inline constexpr std::size_t kMostContexts = 32;

// Makes the context of this signature the present one: the nearest that is known, where one is near
// enough, otherwise a fresh one, with the champion as incumbent and the presets that promise most.
void choose_context(TunerState& state, const Signature& signature, const PresetLibrary& presets,
                    const cc::AlgorithmInfo& info, const BanditOptions& bandit);

}  // namespace paceline::tuner::online
