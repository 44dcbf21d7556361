#include "dataplane/transport/congestion/plugin_watch.h"

#include "cc/dispatch.h"

#include <utility>

namespace paceline::transport {

void PluginWatch::watch(cc::ParamBlock& params, cc::plugin::Clock clock) {
  if (!cc::is_plugin(params.id)) return;
  auto& guard = guards_[static_cast<unsigned>(params.id) - cc::kAlgorithms];
  if (guard == nullptr) {
    guard = std::make_unique<cc::plugin::Guard>();
    guard->clock = clock;
    guard->news = &news_;
  }
  cc::put_guard(params, *guard);
  any_ = true;
}

cc::plugin::Offence PluginWatch::quarantined(cc::AlgorithmId id) const {
  if (!cc::is_plugin(id)) return cc::plugin::Offence::none;
  const auto& guard = guards_[static_cast<unsigned>(id) - cc::kAlgorithms];
  return guard == nullptr ? cc::plugin::Offence::none : guard->quarantined;
}

bool PluginWatch::take_news(unsigned number, telemetry::EngineCounters& counters) {
  if (guards_[number] == nullptr) return false;
  cc::plugin::Guard& guard = *guards_[number];
  counters.plugin_clamped += std::exchange(guard.clamped, 0);
  counters.plugin_nonsense += std::exchange(guard.nonsense, 0);
  counters.plugin_slow += std::exchange(guard.slow, 0);
  if (guard.quarantined == cc::plugin::Offence::none || guard.acted_upon) return false;
  guard.acted_upon = true;
  ++counters.plugin_quarantines;
  if (guard.by_receiver) ++counters.plugin_receiver_quarantines;
  return true;
}

}  // namespace paceline::transport
