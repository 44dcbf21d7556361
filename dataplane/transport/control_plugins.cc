// Plug-ins in the control plane: what guards have found is counted, and after a quarantine every
// context of the plug-in is told.

#include <utility>

#include "cc/dispatch.h"
#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

// Before values are used. A plug-in that was here before is still judged by its record.
void ControlPlane::watch_plugin(cc::ParamBlock& params) {
  if (!cc::is_plugin(params.id)) return;
  auto& guard = guards_[static_cast<unsigned>(params.id) - cc::kAlgorithms];
  if (guard == nullptr) {
    guard = std::make_unique<cc::plugin::Guard>();
    guard->clock = core_.config.plugin_clock;
    guard->news = &plugin_news_;
  }
  cc::put_guard(params, *guard);
  has_plugins_ = true;
  core_.control_active = true;
}

void ControlPlane::hear_guards() {
  plugin_news_ = false;
  telemetry::EngineCounters& counters = core_.counters;
  for (unsigned i = 0; i < guards_.size(); ++i) {
    if (guards_[i] == nullptr) continue;
    cc::plugin::Guard& guard = *guards_[i];
    counters.plugin_clamped += std::exchange(guard.clamped, 0);
    counters.plugin_nonsense += std::exchange(guard.nonsense, 0);
    counters.plugin_slow += std::exchange(guard.slow, 0);
    if (guard.quarantined == cc::plugin::Offence::none || guard.acted_upon) continue;
    guard.acted_upon = true;
    ++counters.plugin_quarantines;
    if (guard.by_receiver) ++counters.plugin_receiver_quarantines;
    leave_plugin(static_cast<cc::AlgorithmId>(cc::kAlgorithms + i));
  }
}

// Those that hear of nothing would go on as the plug-in last said.
void ControlPlane::leave_plugin(cc::AlgorithmId id) {
  for (std::uint32_t index = 0; index < core_.contexts.size(); ++index) {
    const CongestionContext& context = core_.contexts[index];
    if (!context.in_use || context.algorithm != id || context.on_fallback) continue;
    cc::Event event;
    event.signal = cc::Signal::tick;
    scheduler_.deliver(index, event);
  }
}

}  // namespace paceline::transport
