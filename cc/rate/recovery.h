// From a cut back to the line rate: the timer and the byte counter that drive the increase
// (staged_increase.h), for algorithms that differ in the cause of cuts. There are no timer events:
// the owner catches up with what has become due, in closed forms, so that any split of a gap gives
// the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/interface/event.h"
#include "cc/rate/staged_increase.h"

namespace paceline::cc {

// The users' values. resolve_params checks rates.
struct RecoveryValues {
  std::uint64_t line_rate_bps = 0;
  double additive_mbps = 0;
  double hyper_mbps = 0;
  double fast_recovery_stages = 0;
  bool hyper_ramp = false;
  double byte_counter = 0;
  double increase_timer_us = 0;
  double min_rate_mbps = 0;
  double start_rate = 0;  // as a share of the line rate
};

struct RecoveryParams {
  staged::IncreaseParams increase;
  std::uint64_t byte_counter = 0;      // bytes per byte-counter stage; 0 = counter off
  std::uint64_t min_rate_bps = 0;      // >= 1
  std::uint64_t start_rate_bps = 0;    // of a new context
  std::int64_t increase_timer_ns = 0;  // >= 1

  static std::int64_t nanos(double us) { return static_cast<std::int64_t>(us * 1000 + 0.5); }
  static std::uint64_t bps(double mbps) { return static_cast<std::uint64_t>(mbps * 1e6 + 0.5); }
  // This share of the line rate; the floor applies to it as to every other rate.
  std::uint64_t share(double of_line) const {
    const auto rate =
        static_cast<std::uint64_t>(static_cast<double>(increase.line_rate_bps) * of_line);
    return std::max(min_rate_bps, rate);
  }

  void set(const RecoveryValues& v) {
    increase.line_rate_bps = v.line_rate_bps;
    increase.additive_bps = bps(v.additive_mbps);
    increase.hyper_bps = bps(v.hyper_mbps);
    increase.fast_recovery_stages = static_cast<std::uint32_t>(v.fast_recovery_stages);
    increase.hyper_ramp = v.hyper_ramp;
    byte_counter = static_cast<std::uint64_t>(v.byte_counter);
    increase.byte_counter_on = byte_counter != 0;
    min_rate_bps = bps(v.min_rate_mbps);
    start_rate_bps = share(v.start_rate);
    increase_timer_ns = nanos(v.increase_timer_us);
  }
};

// Times are nanoseconds; kNeverNanos.count where nothing is due.
struct Recovery {
  staged::Rates rates;           // current and target rate, increase stages
  std::uint64_t byte_count = 0;  // sent since the last byte-counter stage
  std::int64_t increase_at = 0;  // next expiry of the increase timer

  static constexpr std::int64_t kNever = kNeverNanos.count;
  static std::int64_t plus(std::int64_t at, std::int64_t span) {
    return at > kNever - span ? kNever : at + span;
  }

  void begin(const RecoveryParams& p, const Event& event) {
    increase_at = kNever;
    std::uint64_t rate = p.start_rate_bps;
    if (event.handover != nullptr && event.handover->rate.bps != 0) {
      rate = std::clamp(event.handover->rate.bps, p.min_rate_bps, rate);
    }
    rates.current_bps = rate;
    rates.target_bps = rate;
    // Below the line rate there is something to climb even before the first cut.
    if (rate < p.increase.line_rate_bps) restart(p, event.now.count);
  }

  // After a cut.
  void restart(const RecoveryParams& p, std::int64_t now) {
    rates.timer_stage = 0;
    rates.byte_stage = 0;
    byte_count = 0;
    increase_at = plus(now, p.increase_timer_ns);
  }

  // An increase has happened since the last cut.
  bool increased(bool by_timer_too) const {
    return rates.byte_stage > 0 || (by_timer_too && rates.timer_stage > 0);
  }

  void lower(const RecoveryParams& p, double factor) {
    const auto lowered =
        static_cast<std::uint64_t>(static_cast<double>(rates.current_bps) * factor);
    rates.current_bps = std::max(p.min_rate_bps, lowered);
  }

  // Every expiry of the timer up to and including `until`.
  void run_timer(const RecoveryParams& p, std::int64_t until) {
    if (increase_at > until) return;
    const std::int64_t expiries = (until - increase_at) / p.increase_timer_ns + 1;
    staged::increase(rates, p.increase, staged::Cause::timer, static_cast<std::uint64_t>(expiries));
    increase_at += (expiries - 1) * p.increase_timer_ns;
    increase_at = plus(increase_at, p.increase_timer_ns);
  }

  void count_bytes(const RecoveryParams& p, std::uint64_t bytes) {
    // Before the first cut there is nothing to recover from: the limiter does not run.
    if (p.byte_counter == 0 || increase_at == kNever) return;
    const std::uint64_t room = ~std::uint64_t{0} - byte_count;
    byte_count += std::min(bytes, room);
    if (byte_count < p.byte_counter) return;
    staged::increase(rates, p.increase, staged::Cause::bytes, byte_count / p.byte_counter);
    byte_count %= p.byte_counter;
  }

  // Neither cut nor handed over so far: follows the start rate.
  void follow_start(const RecoveryParams& p) {
    rates.current_bps = p.start_rate_bps;
    rates.target_bps = p.start_rate_bps;
  }
  // Parameters may have changed since the last event; the rates keep their bounds at once.
  void enforce_bounds(const RecoveryParams& p) {
    rates.target_bps = std::clamp(rates.target_bps, p.min_rate_bps, p.increase.line_rate_bps);
    rates.current_bps = std::clamp(rates.current_bps, p.min_rate_bps, rates.target_bps);
  }

  bool climbing(const RecoveryParams& p) const {
    return increase_at != kNever && !staged::at_rest(rates, p.increase);
  }
};
static_assert(sizeof(Recovery) == 40);

}  // namespace paceline::cc
