// The sending half of a plug-in with rates: its contexts decide, and the host carries their
// messages. A context's 256 bytes have the plug-in's state and the host's: the number of the newest
// REQUEST, the demand on the uplink, and since when nothing has moved.
//
// If a context has data, may not send, and gets no grant or share for kStuckNs beyond its lease,
// its plug-in is put into quarantine: no other event would ever wake the context.
#pragma once

#include <cstdint>

#include "cc/interface/uplink_arbiter.h"
#include "cc/plugin/call.h"

namespace paceline::cc::plugin {

// Longer than any sequence of REQUESTs that get lost.
inline constexpr std::int64_t kStuckNs = 100'000'000;
// Rates, leases and totals beyond these are nonsense.
inline constexpr std::uint32_t kMostLeaseUs = 10'000'000;
inline constexpr std::uint64_t kMostAheadBytes = std::uint64_t{1} << 42;

// One event; as on_event (call.h).
void rates_event(PluginState& state, const PluginParams& params, const Event& event,
                 Decision& decision);

UplinkWant rates_want(const PluginState& state);

// The REQUEST that `decision` asked for.
void fill_rates_request(PluginState& state, const PluginParams& params, const Event& event,
                        const Decision& decision, RequestMessage& request);

}  // namespace paceline::cc::plugin
