#include "dataplane/transport/congestion/algorithm_runner.h"

#include <algorithm>

#include "cc/dispatch.h"
#include "cc/registry.h"

namespace paceline::transport {

namespace {

// Events that a proactive algorithm still gets while its fallback decides (cc/cadence/cadence.h).
constexpr std::uint32_t kProactiveSignals =
    cc::signal_bit(cc::Signal::message) | cc::signal_bit(cc::Signal::idle) |
    cc::signal_bit(cc::Signal::grant) | cc::signal_bit(cc::Signal::share) |
    cc::signal_bit(cc::Signal::tick);

}  // namespace

void AlgorithmRunner::start(std::uint32_t index, CongestionContext& context,
                            cc::AlgorithmId algorithm, const cc::Handover* handover) {
  context.setup_slot = core_.peers[context.peer].setup_slot;
  context.algorithm = algorithm;
  const cc::ParamBlock& params = core_.params_of(context);
  context.channel = static_cast<std::uint16_t>(index);
  const cc::AlgorithmInfo* info = cc::find(params.id);
  context.wants = info == nullptr ? 0 : info->wants;
  context.proactive = info != nullptr && info->proactive;
  context.on_fallback = false;
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  event.signal = cc::Signal::start;
  event.handover = handover;
  if (context.peer != kNoIndex) event.peer_count_hint = core_.peers[context.peer].peer_count_hint;
  cc::start_state(params.id, context.state.data(), params, event, context.decision);
  if (context.decision.fallback) enter_fallback(context, event);
}

void AlgorithmRunner::restart(CongestionContext& context) {
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.signal = cc::Signal::start;
  const cc::ParamBlock& params = core_.params_of(context);
  cc::start_state(params.id, context.state.data(), params, event, context.decision);
  if (context.decision.fallback) enter_fallback(context, event);
}

bool AlgorithmRunner::run(CongestionContext& context, const cc::Event& event) {
  const cc::ParamBlock& params = core_.params_of(context);
  if (!context.on_fallback) {
    cc::dispatch(context.algorithm, context.state.data(), params, event, context.decision);
    if (context.decision.fallback) enter_fallback(context, event);
    return context.proactive;
  }
  // Two algorithms run here: the proactive one listens and probes, the reactive one decides.
  cc::Decision& proactive = context.proactive_decision;
  const bool listens = (kProactiveSignals & cc::signal_bit(event.signal)) != 0;
  if (listens) {
    cc::dispatch(context.algorithm, context.state.data(), params, event, proactive);
    if (!proactive.fallback) {
      context.on_fallback = false;
      context.decision = proactive;
      context.wants = cc::find(context.algorithm)->wants;
      return true;
    }
  }
  context.decision.wake_at = kNeverNanos;
  cc::dispatch(context.fallback, context.fallback_state.data(),
               core_.params_on(context.setup_slot, context.fallback), event, context.decision);
  context.decision.ceiling = cc::kUnlimited;
  context.decision.request = proactive.request;
  proactive.request = false;
  // A poll that comes late sees packets before timers: the proactive algorithm's timer may have
  // passed.
  const Nanos wake_at = std::max(proactive.wake_at, Nanos{event.now.count + 1});
  if (wake_at < context.decision.wake_at) context.decision.wake_at = wake_at;
  context.decision.timed = proactive.timed;
  return listens;
}

void AlgorithmRunner::enter_fallback(CongestionContext& context, const cc::Event& event) {
  ++core_.counters.fallbacks;
  context.on_fallback = true;
  context.proactive_decision = context.decision;
  begin_fallback(context, event);
}

void AlgorithmRunner::change_fallback(CongestionContext& context) {
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  begin_fallback(context, event);
}

// The fallback takes over from the algorithm that has decided so far.
void AlgorithmRunner::begin_fallback(CongestionContext& context, const cc::Event& event) {
  cc::Handover handover;
  handover.rate = context.decision.rate;
  handover.inflight_bytes = context.inflight_bytes;
  cc::Event start = event;
  start.signal = cc::Signal::start;
  start.handover = &handover;
  context.fallback = setups_.on(context.setup_slot).fallback.algorithm;
  const cc::ParamBlock& params = core_.params_on(context.setup_slot, context.fallback);
  cc::start_state(params.id, context.fallback_state.data(), params, start, context.decision);
  context.decision.ceiling = cc::kUnlimited;
  context.decision.request = context.proactive_decision.request;
  context.proactive_decision.request = false;
  context.decision.wake_at = std::min(context.decision.wake_at, context.proactive_decision.wake_at);
  context.decision.timed = context.proactive_decision.timed;
  // The round trips that one algorithm asked for are not acknowledgements to the other.
  context.wants =
      (cc::find(context.algorithm)->wants & ~cc::kWantsRoundTrips) | cc::find(params.id)->wants;
}

}  // namespace paceline::transport
