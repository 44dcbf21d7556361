// The workloads that a tuner has seen, and what it learned of each.
#pragma once

#include "control/tuner/online/tuner_state.h"

namespace paceline::tuner::online {

// Contexts remembered. A new one replaces the least recently used.
inline constexpr std::size_t kMostContexts = 32;

// Makes the known context nearest to the signature the current one. If none is near enough, makes a
// new one: its incumbent is the champion, its arms are the presets with the highest expected gain.
void choose_context(TunerState& state, const Signature& signature, const PresetLibrary& presets,
                    const cc::AlgorithmInfo& info, const BanditOptions& bandit);

}  // namespace paceline::tuner::online
