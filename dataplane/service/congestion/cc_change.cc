#include "dataplane/service/congestion/cc_change.h"

#include <fmt/format.h>

#include <utility>

#include "cc/params.h"
#include "cc/registry.h"

namespace paceline::service {

CcArm initial_arm(const NicCongestion& congestion) {
  CcArm arm;
  arm.setup.primary = congestion.primary;
  arm.setup.fallback = congestion.fallback;
  arm.profile = congestion.profile;
  arm.fallback_profile = congestion.fallback_profile;
  return arm;
}

ResolvedArm resolve_arm(const CcArm& in_force, const config::CongestionChange& change,
                        const cc::PortFacts& facts) {
  ResolvedArm out;
  const cc::AlgorithmInfo& old = *cc::find(in_force.setup.primary.algorithm);
  const cc::AlgorithmInfo* const algorithm = change.algorithm ? cc::find(*change.algorithm) : &old;
  if (algorithm == nullptr) {
    out.errors.push_back(fmt::format("there is no algorithm \"{}\"; did you mean \"{}\"?",
                                     *change.algorithm, cc::nearest_algorithm(*change.algorithm)));
    return out;
  }
  if (const auto need = cc::unmet_need(*algorithm, facts); !need.empty()) {
    out.errors.push_back(fmt::format("{} needs {}", algorithm->name, need));
    return out;
  }
  std::vector<cc::ParamOverride> in_force_by_name;
  for (std::size_t i = 0; i < old.params.size(); ++i) {
    in_force_by_name.push_back({old.params[i].name, in_force.setup.primary.values[i]});
  }
  config::ResolvedChange resolved =
      config::resolve_change(change, *algorithm, in_force.profile, in_force_by_name, facts);
  out.errors = std::move(resolved.errors);
  if (!out.errors.empty()) return out;
  std::vector<double>& values = resolved.values;
  for (std::size_t i = 0; algorithm == &old && i < values.size(); ++i) {
    if (algorithm->params[i].live || values[i] == in_force.setup.primary.values[i]) continue;
    out.errors.push_back(
        fmt::format("\"{}\" of {} does not change while connections run: {} stays {}",
                    algorithm->params[i].name, algorithm->name, algorithm->params[i].name,
                    cc::number_text(in_force.setup.primary.values[i])));
  }
  if (!out.errors.empty()) return out;
  out.arm = in_force;
  out.arm.setup.primary = {algorithm->id, std::move(values)};
  out.arm.profile = std::move(resolved.profile);
  return out;
}

}  // namespace paceline::service
