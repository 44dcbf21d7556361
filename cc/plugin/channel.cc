#include "cc/plugin/channel.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <string>

#include "cc/plugin/plugin.h"

namespace paceline::cc::plugin {
namespace {

// The two REQUEST intervals of built-in algorithms that grant bytes (sird.cc, homa.cc).
constexpr double kProbeLimit = 8;
constexpr double kProbeMaxUs = 1000;
constexpr std::uint64_t kDefaultBdps = 16;
constexpr std::uint32_t kDefaultReclaimNs = 200'000;

// A context's 256 bytes; the plug-in's come first, and the guard word right behind them.
struct ChannelState {
  alignas(16) std::byte own[PACELINE_CC_CHANNEL_STATE_BYTES + sizeof(std::uint64_t)];
  Decision asked;  // the plug-in's, in force
  GrantChannel channel;
};
static_assert(sizeof(ChannelState) <= kStateBytes && alignof(ChannelState) <= 16);
static_assert(PACELINE_CC_CHANNEL_STATE_BYTES % sizeof(std::uint64_t) == 0);

constexpr std::size_t kRulesAt = PACELINE_CC_CHANNEL_DERIVED_BYTES;
static_assert(kRulesAt % alignof(ChannelRules) == 0 &&
              kRulesAt + sizeof(ChannelRules) <= kDerivedBytes);

std::uint64_t most_of(const GrantPort& port) { return kMostBdps * port.bdp_bytes; }

struct SaidRules {
  paceline_cc_grant_rules rules{};
  bool overran = false;
};

// The plug-in's own rules, without regard to bounds.
SaidRules rules_for(const Plugin& plugin, std::span<const double> values, const GrantPort& grants,
                    const PortFacts& facts) {
  paceline_cc_port port{};
  port.size = sizeof port;
  port.mtu_bytes = facts.mtu_bytes;
  port.link_bps = facts.link_rate.bps;
  port.full_packet_bytes = grants.packet_bytes;
  port.base_rtt_ns = static_cast<std::uint32_t>(grants.rtt_ns);
  struct {
    paceline_cc_grant_rules rules;
    std::byte behind[64];
  } room{};
  room.rules.size = sizeof room.rules;
  room.rules.start_bytes = grants.bdp_bytes;
  room.rules.start_message_bytes = PACELINE_CC_UNLIMITED;
  room.rules.outstanding_bytes = kDefaultBdps * grants.bdp_bytes;
  room.rules.reclaim_ns = kDefaultReclaimNs;
  if (plugin.receiver.rules != nullptr) plugin.receiver.rules(values.data(), &port, &room.rules);
  const bool kept = std::all_of(std::begin(room.behind), std::end(room.behind),
                                [](std::byte b) { return b == std::byte{0}; });
  return {room.rules, !kept};
}

ChannelState& channel_of(PluginState& state) {
  return *reinterpret_cast<ChannelState*>(state.bytes);
}

bool in_quarantine(const PluginParams& p) {
  return p.guard != nullptr && p.guard->quarantined != Offence::none;
}

// The fallback decides from here on; one REQUEST tells the receiver that there is no demand.
void give_up(ChannelState& s, const PluginParams& p, const Event& e, Decision& d) {
  const bool tell = s.channel.phase != GrantChannel::Phase::idle;
  s.channel.sent_total = e.sent_total;
  if (tell) s.channel.leave(e.now.count);
  hand_to_fallback(p, e, d);
  d.request = tell;
}

void join(const Decision& asked, Decision& d) {
  if (asked.rate < d.rate) {
    d.rate = asked.rate;
    if (d.limiter == Limiter::port) d.limiter = asked.limiter;
  }
  d.window_bytes = asked.window_bytes;  // the channel has none
  d.wake_bytes = asked.wake_bytes;      // nor this
  d.wake_at = std::min(d.wake_at, asked.wake_at);
  d.timed = d.timed || asked.timed;
  d.path = asked.path;
  d.urgent = d.urgent || asked.urgent;
}

}  // namespace

std::string rules_error(const Plugin& plugin, std::span<const double> values,
                        const PortFacts& facts) {
  const GrantPort port = make_grant_port(facts, kProbeLimit, kProbeMaxUs);
  const SaidRules said = rules_for(plugin, values, port, facts);
  if (said.overran) return "rules writes beyond its struct";
  const auto between = [](const char* what, std::uint64_t value, std::uint64_t least,
                          std::uint64_t most) -> std::string {
    if (value >= least && value <= most) return {};
    return std::string("rules: ") + what + " = " + std::to_string(value) + ": allowed is " +
           std::to_string(least) + " to " + std::to_string(most);
  };
  const paceline_cc_grant_rules& r = said.rules;
  std::string error = between("start_bytes", r.start_bytes, 0, most_of(port));
  if (error.empty()) {
    error = between("outstanding_bytes", r.outstanding_bytes, port.packet_bytes, most_of(port));
  }
  if (error.empty()) error = between("reclaim_ns", r.reclaim_ns, kLeastReclaimNs, kMostReclaimNs);
  return error;
}

void put_rules(PluginParams& params, const Plugin& plugin, std::span<const double> values,
               const PortFacts& facts) {
  ChannelRules rules;
  rules.port = make_grant_port(facts, kProbeLimit, kProbeMaxUs);
  const paceline_cc_grant_rules said = rules_for(plugin, values, rules.port, facts).rules;
  const std::uint64_t start = std::min<std::uint64_t>(said.start_bytes, most_of(rules.port));
  rules.port.prompt_bytes = start == 0 ? 0 : said.start_message_bytes;
  rules.port.prefix_bytes = static_cast<std::uint32_t>(
      start == 0 ? 0 : std::max<std::uint64_t>(start, rules.port.packet_bytes));
  rules.outstanding_bytes = std::clamp<std::uint64_t>(said.outstanding_bytes,
                                                      rules.port.packet_bytes, most_of(rules.port));
  rules.reclaim_ns = std::clamp(said.reclaim_ns, kLeastReclaimNs, kMostReclaimNs);
  std::memcpy(params.derived + kRulesAt, &rules, sizeof rules);
  params.channel = true;
  params.watched = &kWatched;  // not on the path of plug-ins without a channel
}

const ChannelRules& rules_of(const PluginParams& params) {
  return *reinterpret_cast<const ChannelRules*>(params.derived + kRulesAt);
}

void channel_event(PluginState& state, const PluginParams& p, const Event& e, Decision& d) {
  ChannelState& s = channel_of(state);
  if (e.signal == Signal::start) new (&s.asked) Decision{};
  if (in_quarantine(p)) {
    give_up(s, p, e, d);
    return;
  }
  s.channel.on_event(rules_of(p).port, e, d);
  if (d.fallback || p.on_events == nullptr) return;
  const bool known = e.signal == Signal::start || (p.wants & signal_bit(e.signal)) != 0;
  if (known) {
    ask(state, p, e, s.asked);
  } else {
    Event tick = e;
    tick.signal = Signal::tick;
    tick.grant = nullptr;
    ask(state, p, tick, s.asked);
  }
  if (s.asked.fallback) {
    give_up(s, p, e, d);
  } else {
    join(s.asked, d);
  }
}

void fill_channel_request(PluginState& state, const Event& e, RequestMessage& r) {
  channel_of(state).channel.fill_request(e, r);
}

}  // namespace paceline::cc::plugin
