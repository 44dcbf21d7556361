// The sending half of a plug-in that has a receiving one. The host's channel (grant_channel.h)
// decides how far a context may send, and speaks the protocol. Below that ceiling the plug-in may
// decide how fast. Both keep their state in the context's 256 bytes.
//
// The lower rate, the smaller window and the earlier wake-up of the two decisions hold. If no grant
// arrives, or the plug-in is in quarantine, the fallback algorithm takes over; in quarantine the
// channel also withdraws what it asked the receiver for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cc/grants/grant_channel.h"
#include "cc/plugin/call.h"
#include "cc/plugin/paceline_cc.h"

namespace paceline::cc::plugin {

struct Plugin;

// Rules that both halves follow.
struct ChannelRules {
  GrantPort port;
  std::uint64_t outstanding_bytes = 0;  // most on its way to a port
  std::int64_t reclaim_ns = 0;
};

// Bounds of what a plug-in may set.
inline constexpr std::uint64_t kMostBdps = 64;
inline constexpr std::uint32_t kLeastReclaimNs = 10'000;
inline constexpr std::uint32_t kMostReclaimNs = 1'000'000'000;

// An error in the rules that the plug-in gives for this port, with what is allowed; or an empty
// string.
std::string rules_error(const Plugin& plugin, std::span<const double> values,
                        const PortFacts& facts);

// Fills in what `params` keeps behind the derived bytes. Off the hot path.
void put_rules(PluginParams& params, const Plugin& plugin, std::span<const double> values,
               const PortFacts& facts);
const ChannelRules& rules_of(const PluginParams& params);

// One event of a context with a channel; as on_event (call.h).
void channel_event(PluginState& state, const PluginParams& params, const Event& event,
                   Decision& decision);

void fill_channel_request(PluginState& state, const Event& event, RequestMessage& request);

}  // namespace paceline::cc::plugin
