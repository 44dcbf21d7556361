#include "control/tuner/online/tuner_contexts.h"

#include <algorithm>
#include <utility>

namespace paceline::tuner::online {

namespace {

// Signatures closer than this share a context, because a workload may lie on the edge of a bin.
constexpr double kSameContext = 0.15;

}  // namespace

void choose_context(TunerState& state, const Signature& signature, const PresetLibrary& presets,
                    const cc::AlgorithmInfo& info, const BanditOptions& bandit) {
  const auto& contexts = state.contexts;
  double nearest = kSameContext;
  std::string key;
  for (const auto& [name, known] : contexts) {
    const double far = distance(known.signature, signature);
    if (far < nearest) {
      nearest = far;
      key = name;
    }
  }
  if (!key.empty()) {
    state.context = key;
    state.contexts.at(key).last_used = state.blocks;
    return;
  }
  if (contexts.size() >= kMostContexts) {
    state.contexts.erase(std::min_element(
        contexts.begin(), contexts.end(),
        [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; }));
  }
  Context fresh;
  fresh.signature = signature;
  fresh.incumbent = state.champion;
  fresh.incumbent_name = "champion";
  fresh.last_used = state.blocks;
  std::vector<BanditArm> arms;
  for (const Promise& promise : promises(presets, signature, kMostPresets)) {
    BanditArm arm;
    arm.name = presets.presets[promise.preset].name;
    arm.values = values_of(presets.presets[promise.preset], info, state.champion);
    arm.prior_mean = promise.mean;
    arm.prior_sd = promise.sd;
    if (arm.values != state.champion) arms.push_back(std::move(arm));
  }
  fresh.bandit = Bandit(std::move(arms), bandit);
  state.context = signature.key();
  state.contexts.insert_or_assign(state.context, std::move(fresh));
}

}  // namespace paceline::tuner::online
