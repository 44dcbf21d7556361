// Guarded calls of a plug-in. dispatch.h comes here for algorithms that are not built in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/interface/uplink_arbiter.h"
#include "cc/plugin/guard.h"

struct paceline_cc_item;
struct paceline_cc_rates;

namespace paceline {
struct RequestMessage;
}

namespace paceline::cc::plugin {

inline constexpr std::size_t kDerivedBytes = 384;  // PACELINE_CC_DERIVED_BYTES

struct Plugin;

// A rate beyond this multiple of the link rate is a mistake, not a rounding error.
inline constexpr std::uint64_t kSenseFactor = 16;
// Least time until a wake-up that a plug-in asks for, so that its calls do not fill the thread.
inline constexpr std::int64_t kLeastAheadNs = 100;
// Bandwidth-delay products that may leave without a grant, at most.
inline constexpr std::uint64_t kMostStartBdps = 64;

inline constexpr bool kUnwatched = false;
inline constexpr bool kWatched = true;

// State of one context, as dispatch sees it: the plug-in's bytes, followed by the guard word.
struct alignas(16) PluginState {
  std::byte bytes[kStateBytes];
};

// The parameter block of a plug-in. The guard belongs to the engine, and may be absent: decisions
// are then still corrected, but nothing is counted.
struct PluginParams {
  alignas(64) std::byte derived[kDerivedBytes] = {};  // first: its address is that of the whole
  void (*on_events)(const paceline_cc_item*, std::uint32_t) = nullptr;
  Guard* guard = nullptr;
  const bool* watched = &kUnwatched;  // the guard's, looked at by every call
  std::uint64_t link_bps = 0;
  std::uint32_t mtu_bytes = 0;
  std::uint32_t guard_at = 0;  // offset of the guard word in the state
  std::uint32_t wants = 0;     // signals, of the plug-in's own
  std::uint32_t rtt_ns = 0;    // this and the next three with rates only
  const paceline_cc_rates* rates = nullptr;
  std::uint32_t packet_bytes = 0;
  bool channel = false;  // has a receiving half: channel.h describes what is behind `derived`

  std::uint64_t bdp_bytes() const { return link_bps / 8'000'000 * rtt_ns / 1000; }
};

PluginParams make_params(const Plugin& plugin, std::span<const double> values,
                         const PortFacts& facts);

// The guard must outlive the params and their copies, and have its clock.
void put_guard(PluginParams& params, Guard& guard);

// Before the start event, on a state of zeroes.
void set_guard_word(std::byte* state, const PluginParams& params);

// Handles one event. The resulting decision is within the bounds of the port, whatever the plug-in
// decided.
void on_event(PluginState& state, const PluginParams& params, const Event& event,
              Decision& decision);

// The same for a plug-in that is not in quarantine, and only for the plug-in itself: without the
// channel that the host keeps for plug-ins with a receiving half (channel.h).
void ask(PluginState& state, const PluginParams& params, const Event& event, Decision& decision);

// The decision of a context in quarantine from now on: the fallback decides.
void hand_to_fallback(const PluginParams& params, const Event& event, Decision& decision);

// For a context with a channel, or with rates. False for others, which have no REQUESTs.
bool fill_request(PluginState& state, const PluginParams& params, const Event& event,
                  const Decision& decision, RequestMessage& request);

// For a context with rates. Nothing for others.
UplinkWant uplink_want(const PluginState& state, const PluginParams& params);

}  // namespace paceline::cc::plugin
