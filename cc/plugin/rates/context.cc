#include "cc/plugin/rates/context.h"

#include <algorithm>
#include <cstddef>

#include "cc/grants/channel_units.h"
#include "cc/grants/grant_channel.h"
#include "cc/plugin/plugin.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::int64_t kStuckRtts = 16;
constexpr std::int64_t kStampAgeNs = 1'000'000'000;  // stamps wrap after four times that

// A context's 256 bytes; the plug-in's come first, and the guard word right behind them.
struct RatesState {
  alignas(16) std::byte own[PACELINE_CC_RATES_STATE_BYTES + sizeof(std::uint64_t)];
  std::uint64_t left_bytes;  // these and the next ones: as the uplink is to know
  std::uint32_t limit_mbps;
  std::uint32_t start_bytes;
  std::uint32_t sent_low;   // sent_total at the last event, low bits
  std::uint32_t moving_us;  // when something moved last
  std::uint32_t lease_us;   // of the newest grant
  std::uint16_t req_seq;
  std::uint8_t peer_count_hint;
  std::uint8_t weight;
  bool active : 1;
  bool asks_start : 1;
  bool awaits_grant : 1;
  bool blocked : 1;
  bool left : 1;  // the receiver knows of the quarantine
};
static_assert(sizeof(RatesState) <= kStateBytes && alignof(RatesState) <= 16);
static_assert(PACELINE_CC_MESSAGE_EXTRA == kGrantMessageExtra);
static_assert(PACELINE_CC_RATES_STATE_BYTES % sizeof(std::uint64_t) == 0);

RatesState& rates_state(PluginState& state) { return *reinterpret_cast<RatesState*>(state.bytes); }

// An event as the plug-in sees it.
struct RatesEvent {
  RatesEvent(const RatesState& s, const Event& e) : event(e) {
    event.peer_count_hint = 0;
    event.peers = peers_of(s.peer_count_hint);
    if (e.grant != nullptr) read(*e.grant, e);
    if (e.share != nullptr) read(*e.share);
  }
  RatesEvent(const RatesEvent&) = delete;
  RatesEvent& operator=(const RatesEvent&) = delete;

  void read(const GrantMessage& g, const Event& e) {
    grant.limit_total = extend_total(e.sent_total, g.limit_total);
    grant.rate_mbps = g.hold ? 0 : g.rate_mbps;
    grant.lease_us = g.lease_us;
    grant.delay_us = g.effective_delay_us;
    grant.stamp_ns = g.timestamp_echo_ns;
    const std::uint32_t away = static_cast<std::uint32_t>(e.now.count) - g.timestamp_echo_ns;
    const bool known = g.timestamp_echo_ns != 0 && away < kStampAgeNs && away > g.receiver_hold_ns;
    grant.round_trip_ns = known ? away - g.receiver_hold_ns : 0;
    grant.number = g.grant_seq;
    grant.hold = g.hold ? 1 : 0;
    grant.revoke = g.revoke ? 1 : 0;
    event.grant = reinterpret_cast<const GrantMessage*>(&grant);
  }
  void read(const UplinkShare& s) {
    share.rate_mbps = s.rate_mbps;
    share.cap_mbps = s.cap_mbps;
    share.start_bytes = s.start_bytes;
    share.answers_start = s.answers_start ? 1 : 0;
    share.announce = s.announce ? 1 : 0;
    event.share = reinterpret_cast<const UplinkShare*>(&share);
  }
  paceline_cc_item item(PluginState& state, const PluginParams& p, Decision& d) const {
    return {state.bytes, p.derived, reinterpret_cast<const paceline_cc_event*>(&event),
            reinterpret_cast<paceline_cc_decision*>(&d)};
  }

  Event event;
  paceline_cc_rate_grant grant{};
  paceline_cc_share share{};
};

bool quarantined_now(const PluginParams& p) {
  return p.guard != nullptr && p.guard->quarantined != Offence::none;
}

void count(const PluginParams& p, bool nonsense, bool clamped) {
  if (p.guard == nullptr) return;
  if (nonsense) {
    p.guard->count_nonsense();
  } else if (clamped) {
    p.guard->count_clamped();
  }
}

// The fallback decides from here on; one REQUEST tells the receiver that there is no demand.
void leave_channel(RatesState& s, const PluginParams& p, const Event& e, Decision& d) {
  const bool tell = !s.left && s.req_seq != 0;
  s.left = true;
  s.active = s.asks_start = s.awaits_grant = false;
  hand_to_fallback(p, e, d);
  d.request = tell;
}

void keep_want(PluginState& state, const PluginParams& p, const RatesEvent& own, Decision& d) {
  if (p.rates->fill_want == nullptr) return;
  RatesState& s = rates_state(state);
  const paceline_cc_item item = own.item(state, p, d);
  paceline_cc_want want{};
  p.rates->fill_want(&item, &want);
  const std::uint64_t most = kMostStartBdps * p.bdp_bytes();
  const bool nonsense = (want.active | want.asks_start | want.awaits_grant) > 1;
  count(p, nonsense, want.start_bytes > most);
  s.left_bytes = want.left_bytes;
  s.limit_mbps = want.limit_mbps;
  s.start_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(want.start_bytes, most));
  s.weight = std::max<std::uint8_t>(want.weight, 1);
  s.active = want.active != 0;
  s.asks_start = want.asks_start != 0;
  s.awaits_grant = want.awaits_grant != 0;
}

// Ends a state in which the context has something to send, may not, and nothing happens.
void watch_progress(RatesState& s, const PluginParams& p, const Event& e, Decision& d) {
  const auto sent_low = static_cast<std::uint32_t>(e.sent_total);
  const bool heard = e.signal == Signal::grant || e.signal == Signal::share;
  const bool before = s.blocked;
  s.blocked = e.backlog_bytes != 0 && !d.fallback &&
              (d.rate.bps == 0 || d.ceiling < e.sent_total + p.packet_bytes);
  if (!before || !s.blocked || heard || sent_low != s.sent_low) s.moving_us = micros(e.now.count);
  s.sent_low = sent_low;
  if (!s.blocked) return;
  const std::int64_t patience = kStuckNs + kStuckRtts * p.rtt_ns + std::int64_t{s.lease_us} * 1000;
  const std::uint32_t still_us = micros(e.now.count) - s.moving_us;
  const std::int64_t left_ns = patience - std::int64_t{still_us} * 1000;
  if (left_ns < 1000) {  // times are kept in whole microseconds
    if (p.guard != nullptr) p.guard->quarantine(Offence::stuck);
    leave_channel(s, p, e, d);
  } else if (!d.timed || d.wake_at == kNeverNanos) {
    d.wake_at = std::min(d.wake_at, Nanos{e.now.count + left_ns});
    d.timed = true;
  }
}

}  // namespace

void rates_event(PluginState& state, const PluginParams& p, const Event& e, Decision& d) {
  RatesState& s = rates_state(state);
  d.request = false;
  if (e.peer_count_hint != 0) s.peer_count_hint = e.peer_count_hint;
  if (e.grant != nullptr) {
    if (e.grant->peer_count_hint != 0) s.peer_count_hint = e.grant->peer_count_hint;
    s.lease_us = std::min(e.grant->lease_us, kMostLeaseUs);
  }
  if (!quarantined_now(p)) {
    const RatesEvent own(s, e);
    ask(state, p, own.event, d);
    if (!quarantined_now(p)) keep_want(state, p, own, d);
    if (!quarantined_now(p)) {
      watch_progress(s, p, e, d);
      return;
    }
  }
  leave_channel(s, p, e, d);
}

UplinkWant rates_want(const PluginState& state) {
  const RatesState& s = *reinterpret_cast<const RatesState*>(state.bytes);
  UplinkWant want;
  want.limit_mbps = s.limit_mbps;
  want.start_bytes = s.start_bytes;
  want.asks_start = s.asks_start;
  want.active = s.active;
  want.awaits_grant = s.awaits_grant;
  want.weight = s.weight;
  want.left_bytes = s.left_bytes;
  return want;
}

void fill_rates_request(PluginState& state, const PluginParams& p, const Event& e,
                        const Decision& d, RequestMessage& r) {
  RatesState& s = rates_state(state);
  r.req_seq = ++s.req_seq;
  r.sent_total = r.unscheduled_total = e.sent_total & kTotalMask;
  r.tx_cap_mbps = kCapUnlimited;
  r.timestamp_ns = static_cast<std::uint32_t>(e.now.count);
  if (quarantined_now(p)) return;
  const RatesEvent own(s, e);
  Decision in_force = d;
  const paceline_cc_item item = own.item(state, p, in_force);
  paceline_cc_request said{};
  said.sent_total = said.start_total = e.sent_total;
  said.cap_mbps = PACELINE_CC_NO_CAP;
  said.stamp_ns = r.timestamp_ns;
  p.rates->fill_request(&item, &said);

  const std::uint64_t most = e.sent_total + kMostStartBdps * p.bdp_bytes();
  const bool behind = said.start_total < e.sent_total;
  count(
      p,
      said.start_total > most || said.demand_bytes > kTotalMask || said.sent_total != e.sent_total,
      behind);
  r.unscheduled_total = std::clamp(said.start_total, e.sent_total, most) & kTotalMask;
  r.demand_bytes = std::min(said.demand_bytes, kTotalMask);
  r.tx_cap_mbps = said.cap_mbps;
  r.grant_echo = said.grant_echo;
  r.hint = said.degree != 0;
  r.hint_degree = said.degree;
}

}  // namespace paceline::cc::plugin
