#include "cc/plugin/call.h"

#include <algorithm>
#include <cstring>

#include "cc/plugin/channel.h"
#include "cc/plugin/plugin.h"
#include "cc/plugin/rates/context.h"

namespace paceline::cc::plugin {
namespace {

// Events and decisions are not converted: the C structs have the layout of the C++ structs. If a
// field is moved, an assertion here fails, and a conversion is needed.
#define PACELINE_SAME(ours, our_field, theirs, their_field)                   \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))
PACELINE_SAME(Event, now, paceline_cc_event, now_ns);
PACELINE_SAME(Event, sent_total, paceline_cc_event, sent_total);
PACELINE_SAME(Event, backlog_bytes, paceline_cc_event, backlog_bytes);
PACELINE_SAME(Event, inflight_bytes, paceline_cc_event, inflight_bytes);
PACELINE_SAME(Event, sent_bytes, paceline_cc_event, sent_bytes);
PACELINE_SAME(Event, message_bytes, paceline_cc_event, message_bytes);
PACELINE_SAME(Event, acked_bytes, paceline_cc_event, acked_bytes);
PACELINE_SAME(Event, marked_bytes, paceline_cc_event, marked_bytes);
PACELINE_SAME(Event, lost_bytes, paceline_cc_event, lost_bytes);
PACELINE_SAME(Event, rtt_ns, paceline_cc_event, rtt_ns);
PACELINE_SAME(Event, host_delay_ns, paceline_cc_event, host_delay_ns);
PACELINE_SAME(Event, hint_collective, paceline_cc_event, hint_collective);
PACELINE_SAME(Event, hint_degree, paceline_cc_event, hint_degree);
PACELINE_SAME(Event, hint_kind, paceline_cc_event, hint_kind);
PACELINE_SAME(Event, signal, paceline_cc_event, signal);
// NOLINTNEXTLINE(bugprone-sizeof-expression): a pointer has the size of a pointer
PACELINE_SAME(Event, handover, paceline_cc_event, handover);
// NOLINTNEXTLINE(bugprone-sizeof-expression): likewise
PACELINE_SAME(Event, int_stack, paceline_cc_event, telemetry);
PACELINE_SAME(IntStack, hops, paceline_cc_telemetry, hops);
PACELINE_SAME(IntStack, path, paceline_cc_telemetry, path);
PACELINE_SAME(IntStack, hop, paceline_cc_telemetry, hop);
PACELINE_SAME(IntHop, rate_mbps, paceline_cc_hop, rate_mbps);
PACELINE_SAME(IntHop, queue_bytes, paceline_cc_hop, queue_bytes);
PACELINE_SAME(IntHop, sent_bytes, paceline_cc_hop, sent_bytes);
PACELINE_SAME(IntHop, time_ns, paceline_cc_hop, time_ns);
PACELINE_SAME(Event, trimmed_bytes, paceline_cc_event, trimmed_bytes);
PACELINE_SAME(Event, peers, paceline_cc_event, peers);
// NOLINTNEXTLINE(bugprone-sizeof-expression): likewise
PACELINE_SAME(Event, grant, paceline_cc_event, rate_grant);
// NOLINTNEXTLINE(bugprone-sizeof-expression): likewise
PACELINE_SAME(Event, share, paceline_cc_event, share);
PACELINE_SAME(Handover, rate, paceline_cc_handover, rate_bps);
PACELINE_SAME(Handover, srtt_ns, paceline_cc_handover, srtt_ns);
PACELINE_SAME(Handover, min_rtt_ns, paceline_cc_handover, min_rtt_ns);
PACELINE_SAME(Handover, inflight_bytes, paceline_cc_handover, inflight_bytes);
PACELINE_SAME(Decision, rate, paceline_cc_decision, rate_bps);
PACELINE_SAME(Decision, window_bytes, paceline_cc_decision, window_bytes);
PACELINE_SAME(Decision, ceiling, paceline_cc_decision, ceiling);
PACELINE_SAME(Decision, wake_at, paceline_cc_decision, wake_at_ns);
PACELINE_SAME(Decision, wake_bytes, paceline_cc_decision, wake_bytes);
PACELINE_SAME(Decision, path, paceline_cc_decision, path);
PACELINE_SAME(Decision, limiter, paceline_cc_decision, limiter);
PACELINE_SAME(Decision, request, paceline_cc_decision, request);
PACELINE_SAME(Decision, fallback, paceline_cc_decision, fallback);
PACELINE_SAME(Decision, urgent, paceline_cc_decision, urgent);
PACELINE_SAME(Decision, timed, paceline_cc_decision, timed);
#undef PACELINE_SAME
static_assert(sizeof(paceline_cc_decision) <= sizeof(Decision));
static_assert(sizeof(paceline_cc_event) <= sizeof(Event));
static_assert(kIntHops == PACELINE_CC_HOPS && kWantsTelemetry == PACELINE_CC_WANT_TELEMETRY);
static_assert(static_cast<int>(Signal::start) == PACELINE_CC_START &&
              static_cast<int>(Signal::ack) == PACELINE_CC_ACK &&
              static_cast<int>(Signal::nack) == PACELINE_CC_NACK &&
              static_cast<int>(Signal::timeout) == PACELINE_CC_TIMEOUT &&
              static_cast<int>(Signal::cnp) == PACELINE_CC_CNP &&
              static_cast<int>(Signal::grant) == PACELINE_CC_GRANT &&
              static_cast<int>(Signal::share) == PACELINE_CC_SHARE &&
              static_cast<int>(Signal::message) == PACELINE_CC_MESSAGE &&
              static_cast<int>(Signal::idle) == PACELINE_CC_IDLE &&
              static_cast<int>(Signal::tick) == PACELINE_CC_TICK);
static_assert(static_cast<int>(Limiter::path) == PACELINE_CC_LIMIT_PATH &&
              static_cast<int>(Limiter::window) == PACELINE_CC_LIMIT_WINDOW);
static_assert(kUnlimited == PACELINE_CC_UNLIMITED && kNeverNanos.count == PACELINE_CC_NEVER);

// The word behind the state; a plug-in has no reason to write exactly this value.
constexpr std::uint64_t kGuardWord = 0xA5C3'96E1'7B0D'48F2;
static_assert(kDerivedBytes == PACELINE_CC_DERIVED_BYTES);
static_assert(PACELINE_CC_STATE_BYTES + 2 * sizeof kGuardWord <= kStateBytes);

constexpr unsigned kWindowBits = 48;  // that make sense; all ones above them: practically unlimited
constexpr std::uint64_t kWindowTop = std::uint64_t{1} << kWindowBits;
constexpr std::uint64_t kLeftRatePart = 128;  // of the link, where nothing had been granted
constexpr std::uint64_t kSlowestBps = 1'000'000;

// path, limiter, request, fallback, urgent, timed as one number, little endian.
constexpr std::size_t kTailAt = offsetof(paceline_cc_decision, path);
constexpr std::uint64_t kTailIgnored = 0xFF'00'00'00'00'00'00'00;
constexpr std::uint64_t kReactiveBits = 0x00'01'01'00'00'07'FF'FF;  // neither request nor fallback
constexpr std::uint64_t kRatesBits = 0x00'01'01'01'01'07'FF'FF;
static_assert(offsetof(paceline_cc_decision, timed) == kTailAt + 6);

template <class Word>
Word word_at(const Decision& decision, std::size_t at) {
  Word word = 0;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(&decision) + at, sizeof word);
  return word;
}

// Makes the decision say what a proactive algorithm without a grant says.
void give_way(Decision& d) {
  d.fallback = true;
  d.request = false;
  d.timed = false;
  d.wake_at = kNeverNanos;
  d.wake_bytes = kUnlimited;
}

// Brings a decision within bounds. It counts as clamped if a rounding or a missing comparison
// explains it. The rest counts as nonsense: rates and windows beyond reason (what a NaN or an
// infinity becomes), flags with undefined values, a stop without an end (with rates a grant may end
// it).
void mend(const PluginParams& p, const Event& e, Decision& d) {
  bool nonsense = false;
  bool clamped = false;
  std::uint64_t tail = word_at<std::uint64_t>(d, kTailAt) & ~kTailIgnored;
  const bool rates = p.rates != nullptr;
  const std::uint64_t known_bits = rates ? kRatesBits : kReactiveBits;
  if ((tail & ~known_bits) != 0 || (tail >> 16 & 0xFF) >= kLimiters) {
    nonsense = true;
    tail &= known_bits;
    if ((tail >> 16 & 0xFF) >= kLimiters) {
      tail = (tail & ~(std::uint64_t{0xFF} << 16)) | static_cast<std::uint64_t>(Limiter::path)
                                                         << 16;
    }
    std::memcpy(reinterpret_cast<std::byte*>(&d) + kTailAt, &tail, sizeof tail);
  }
  if (d.rate.bps > p.link_bps) {
    (d.rate.bps / kSenseFactor > p.link_bps ? nonsense : clamped) = true;
    d.rate.bps = p.link_bps;
  }
  if (d.window_bytes < p.mtu_bytes) {
    clamped = true;
    d.window_bytes = p.mtu_bytes;
  } else if (const std::uint64_t top = d.window_bytes >> kWindowBits;
             top != 0 && top != kUnlimited >> kWindowBits) {
    nonsense = true;
    d.window_bytes = kUnlimited;
  }
  if (d.ceiling != kUnlimited && !rates) {
    nonsense = true;
    d.ceiling = kUnlimited;
  }
  if (d.wake_at.count - kLeastAheadNs < e.now.count) {
    clamped = true;
    d.wake_at.count = e.now.count + kLeastAheadNs;
  }
  if (d.wake_bytes == 0) {
    clamped = true;
    d.wake_bytes = 1;
  }
  // Without this, nothing would ever ask the plug-in again.
  if (d.rate.bps == 0 && !rates && !(d.timed && d.wake_at != kNeverNanos)) {
    nonsense = true;
    d.rate.bps = std::max(kSlowestBps, p.link_bps / 1000);
  }
  Guard* const guard = p.guard;
  if (guard == nullptr) return;
  if (nonsense) {
    guard->count_nonsense();
  } else if (clamped) {
    guard->count_clamped();
  }
}

// Only some of the calls are timed: two readings of the clock cost more than many calls do.
void timed_call(const PluginParams& p, Guard& guard, const paceline_cc_item& item) {
  if ((++guard.calls & (guard.limits.timed_one_of - 1)) != 0) {
    p.on_events(&item, 1);
    return;
  }
  const std::uint64_t begin = guard.clock.read(guard.clock.context);
  p.on_events(&item, 1);
  guard.count_time(guard.clock.read(guard.clock.context) - begin);
}

std::uint64_t guard_word(const PluginState& state, const PluginParams& p) {
  std::uint64_t word = 0;
  std::memcpy(&word, state.bytes + p.guard_at, sizeof word);
  return word;
}

// Two bytes, and four bytes, that are adjacent in a decision.
constexpr std::size_t kLimiterAt = offsetof(paceline_cc_decision, limiter);
constexpr std::size_t kFlagsAt = offsetof(paceline_cc_decision, fallback);
static_assert(offsetof(paceline_cc_decision, request) == kLimiterAt + 1 &&
              kFlagsAt == kLimiterAt + 2 && kLimiterAt == kTailAt + 2);

// Whether mend() would change nothing and the guard word behind the state is intact: the usual
// case. This is the hot path: limiter and request are compared as one number, which any request
// makes too large, and so are the flags behind them.
bool as_usual(const PluginState& state, const PluginParams& p, const Event& e, const Decision& d) {
  constexpr auto kForeignFlags = static_cast<std::uint32_t>(~(kReactiveBits | kTailIgnored) >> 32);
  const bool window =
      d.window_bytes == kUnlimited || d.window_bytes - p.mtu_bytes < kWindowTop - p.mtu_bytes;
  return d.rate.bps - 1 < p.link_bps && window && d.ceiling == kUnlimited &&
         d.wake_at.count - kLeastAheadNs >= e.now.count && d.wake_bytes != 0 &&
         word_at<std::uint16_t>(d, kLimiterAt) < kLimiters &&
         (word_at<std::uint32_t>(d, kFlagsAt) & kForeignFlags) == 0 &&
         guard_word(state, p) == kGuardWord;
}

[[gnu::noinline, gnu::cold]] void settle(PluginState& state, const PluginParams& p, const Event& e,
                                         Decision& d) {
  mend(p, e, d);
  Guard* const guard = p.guard;
  if (guard_word(state, p) != kGuardWord) {
    set_guard_word(state.bytes, p);
    if (guard != nullptr) guard->quarantine(Offence::overrun);
  }
  if (guard != nullptr && guard->quarantined != Offence::none) give_way(d);
}

paceline_cc_item item_of(PluginState& state, const PluginParams& p, const Event& e, Decision& d) {
  return {state.bytes, p.derived, reinterpret_cast<const paceline_cc_event*>(&e),
          reinterpret_cast<paceline_cc_decision*>(&d)};
}

// For plug-ins with a clock, in quarantine, with a channel, or with rates.
[[gnu::noinline]] void watched_event(PluginState& state, const PluginParams& p, const Event& e,
                                     Decision& d) {
  if (p.channel) {
    channel_event(state, p, e, d);
  } else if (p.rates != nullptr) {
    rates_event(state, p, e, d);
  } else if (p.guard->quarantined != Offence::none) {
    give_way(d);
  } else {
    ask(state, p, e, d);
  }
}

}  // namespace

PluginParams make_params(const Plugin& plugin, std::span<const double> values,
                         const PortFacts& facts) {
  const paceline_cc_algorithm& table = plugin.table;
  PluginParams p;
  p.on_events = table.on_events;
  p.link_bps = facts.link_rate.bps;
  p.mtu_bytes = facts.mtu_bytes;
  p.guard_at = (table.state_bytes + 7) / 8 * 8;
  p.wants = table.wants;
  if (table.receiver != nullptr) put_rules(p, plugin, values, facts);
  if (table.rates != nullptr) {
    constexpr std::uint32_t kUsualRttNs = 10'000;
    constexpr std::uint32_t kHeaderBytes = 82;
    p.rates = &plugin.rates;
    p.rtt_ns = facts.base_rtt_ns != 0 ? facts.base_rtt_ns : kUsualRttNs;
    p.packet_bytes = std::max(facts.full_packet_bytes, facts.mtu_bytes + kHeaderBytes);
    p.watched = &kWatched;  // not on the path of plug-ins without these
  }
  if (table.derive == nullptr) {
    static_assert(PACELINE_CC_PARAMS * sizeof(double) <= PACELINE_CC_DERIVED_BYTES);
    if (!values.empty()) std::memcpy(p.derived, values.data(), values.size_bytes());
    return p;
  }
  paceline_cc_port port{};
  port.size = sizeof port;
  port.mtu_bytes = facts.mtu_bytes;
  port.link_bps = facts.link_rate.bps;
  port.full_packet_bytes = facts.full_packet_bytes;
  port.base_rtt_ns = facts.base_rtt_ns;
  table.derive(values.data(), &port, p.derived);
  return p;
}

void put_guard(PluginParams& params, Guard& guard) {
  guard.watched = guard.clock.read != nullptr || guard.quarantined != Offence::none;
  params.guard = &guard;
  if (!params.channel && params.rates == nullptr) params.watched = &guard.watched;
}

void set_guard_word(std::byte* state, const PluginParams& params) {
  std::memcpy(state + params.guard_at, &kGuardWord, sizeof kGuardWord);
}

void hand_to_fallback(const PluginParams& p, const Event& e, Decision& d) {
  if (d.rate.bps == 0 && e.signal != Signal::start) {
    d.rate.bps = std::max<std::uint64_t>(p.link_bps / kLeftRatePart, 1);
  }
  d.ceiling = kUnlimited;
  d.window_bytes = kUnlimited;
  d.limiter = Limiter::path;
  d.urgent = false;
  give_way(d);
}

bool fill_request(PluginState& state, const PluginParams& p, const Event& e, const Decision& d,
                  RequestMessage& r) {
  if (p.channel) {
    fill_channel_request(state, e, r);
  } else if (p.rates != nullptr) {
    fill_rates_request(state, p, e, d, r);
  }
  return p.channel || p.rates != nullptr;
}

UplinkWant uplink_want(const PluginState& state, const PluginParams& p) {
  return p.rates == nullptr ? UplinkWant{} : rates_want(state);
}

void ask(PluginState& state, const PluginParams& p, const Event& e, Decision& d) {
  if (d.wake_at <= e.now) d.wake_at = kNeverNanos;
  if (e.sent_bytes >= d.wake_bytes) d.wake_bytes = kUnlimited;
  const paceline_cc_item item = item_of(state, p, e, d);
  if (p.guard != nullptr && p.guard->clock.read != nullptr) {
    timed_call(p, *p.guard, item);
  } else {
    p.on_events(&item, 1);
  }
  const bool left = p.guard != nullptr && p.guard->quarantined != Offence::none;
  if (left || !as_usual(state, p, e, d)) settle(state, p, e, d);
}

void on_event(PluginState& state, const PluginParams& p, const Event& e, Decision& d) {
  if (d.wake_at <= e.now) d.wake_at = kNeverNanos;
  if (e.sent_bytes >= d.wake_bytes) d.wake_bytes = kUnlimited;
  if (*p.watched) [[unlikely]] {
    watched_event(state, p, e, d);
    return;
  }
  const paceline_cc_item item = item_of(state, p, e, d);
  p.on_events(&item, 1);
  if (!as_usual(state, p, e, d)) [[unlikely]]
    settle(state, p, e, d);
}

}  // namespace paceline::cc::plugin
