#include "tests/perf/cc_events.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "cc/dispatch.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/scenario/scenario_setup.h"

namespace paceline::perf {
namespace {

constexpr std::int64_t kRttNs = 5'000;

cc::PortFacts facts() {
  cc::PortFacts f;
  f.link_rate = rate_from_gbps(100);
  f.mtu_bytes = 4096;
  f.full_packet_bytes = 4178;
  f.base_rtt_ns = kRttNs;
  return f;
}

// One context as the engine keeps it: state, parameters, the decision in force, byte counts.
class Context {
 public:
  Context(cc::AlgorithmId id, const char* name, const char* profile) : id_(id) {
    std::string error;
    const auto values = resolve_cc(name, profile, {}, facts(), error);
    if (!error.empty()) throw std::invalid_argument(error);
    block_ = cc::make_param_block(id, values, facts());
    cc::put_guard(block_, guard_);  // as an engine has one
    start_state(id_, state_.data(), block_, cc::Event{}, decision_);
  }

  // Sends at the rate in force, as far as backlog and ceiling allow, until `to`.
  void send_until(std::int64_t to) {
    const std::uint64_t wire =
        decision_.rate.bps / 1'000'000 * static_cast<std::uint64_t>(to - now_) / 8000;
    const std::uint64_t room = decision_.ceiling > sent_ ? decision_.ceiling - sent_ : 0;
    const std::uint64_t bytes = std::min({wire, room, backlog_});
    sent_ += bytes;
    since_event_ += bytes;
    backlog_ -= bytes;
    now_ = to;
  }

  cc::Event event(cc::Signal signal) const {
    cc::Event e;
    e.signal = signal;
    e.now = Nanos{now_};
    e.sent_total = sent_;
    e.backlog_bytes = backlog_;
    e.sent_bytes = since_event_;
    return e;
  }

  void deliver(const cc::Event& e) {
    cc::dispatch(id_, state_.data(), block_, e, decision_);
    since_event_ = 0;
    ++counts.by_signal[static_cast<std::size_t>(e.signal)];
    counts.rate_sum += decision_.rate.bps / 1'000'000;
  }

  bool fill(const cc::Event& e, RequestMessage& request) {
    return cc::fill_request(id_, state_.data(), block_, e, decision_, request);
  }

  cc::UplinkWant want() const {
    return cc::Cadence::uplink_want(*reinterpret_cast<const cc::Cadence::State*>(state_.data()),
                                    block_.as<cc::Cadence::Params>());
  }

  void post(std::uint64_t bytes) { backlog_ += bytes; }
  const cc::Decision& decision() const { return decision_; }
  std::int64_t now() const { return now_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t backlog() const { return backlog_; }

  // When the backlog will be gone at the rate in force; far away while nothing may be sent.
  std::int64_t drained_at() const {
    const std::uint64_t mbps = decision_.rate.bps / 1'000'000;
    if (mbps == 0 || decision_.ceiling <= sent_) return kNeverNanos.count;
    const std::uint64_t bytes = std::min(backlog_, decision_.ceiling - sent_);
    return now_ + static_cast<std::int64_t>(bytes * 8000 / mbps) + 1;
  }

  EventCounts counts;

 private:
  cc::AlgorithmId id_;
  cc::plugin::Guard guard_;
  alignas(cc::kStateAlignment) std::array<std::byte, cc::kStateBytes> state_{};
  cc::ParamBlock block_{};
  cc::Decision decision_{};
  std::int64_t now_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t since_event_ = 0;
  std::uint64_t backlog_ = 0;
};

}  // namespace

EventCounts drive_dcqcn(std::uint64_t events, const cc::AlgorithmInfo& which) {
  Context context(which.id, which.name.data(), "paper");
  Random random(1);
  std::int64_t cnp_at = 10'000;
  for (std::uint64_t i = 0; i < events; ++i) {
    if (context.backlog() < 100'000'000) context.post(1'000'000'000);
    const cc::Decision& d = context.decision();
    std::int64_t tick_at = d.wake_at.count;
    const std::uint64_t mbps = d.rate.bps / 1'000'000;
    if (d.wake_bytes != cc::kUnlimited) {
      const std::uint64_t ns = (d.wake_bytes + 1) * 8000 / std::max<std::uint64_t>(mbps, 1) + 1;
      tick_at = std::min(tick_at, context.now() + static_cast<std::int64_t>(ns));
    }
    if (cnp_at <= tick_at) {
      context.send_until(cnp_at);
      context.deliver(context.event(cc::Signal::cnp));
      // One spell in eight ends: then 2 ms without marks, time for additive and hyper increase.
      const bool spell_ends = random.below(8) == 0;
      cnp_at += static_cast<std::int64_t>(50'000 + random.below(100'000));
      if (spell_ends) cnp_at += 2'000'000;
    } else {
      context.send_until(std::max(tick_at, context.now() + 1));
      context.deliver(context.event(cc::Signal::tick));
    }
  }
  return context.counts;
}

EventCounts drive_cadence(std::uint64_t events) {
  Context context(cc::AlgorithmId::cadence, "cadence", "default");
  Random random(1);
  GrantMessage grant;
  std::int64_t grant_at = kNeverNanos.count;
  std::int64_t share_at = kNeverNanos.count;
  grant.rate_mbps = 12'000;

  // The engine's steps after an event: a REQUEST if asked for, and what the arbiter should know.
  cc::UplinkWant want;
  const auto deliver = [&](const cc::Event& e) {
    context.deliver(e);
    if (context.decision().request) {
      RequestMessage request;
      context.fill(e, request);
      ++context.counts.requests;
      // Answered after a round trip: a rate, or the confirmation that nothing is granted.
      if (random.below(4) == 0) {
        grant.rate_mbps = static_cast<std::uint32_t>(2'000 + random.below(40'000));
      }
      grant.timestamp_echo_ns = request.timestamp_ns;
      grant.limit_total =
          request.demand_bytes == 0 ? 0 : (context.sent() + request.demand_bytes + 64'000);
      grant_at = context.now() + kRttNs;
    }
    want = context.want();
    if (want.asks_start) share_at = context.now();
  };

  while (context.counts.total() < events) {
    if (context.backlog() == 0) {
      context.send_until(context.now() + 20'000);
      const std::uint64_t bytes = std::uint64_t{20'000} << random.below(9);
      context.post(bytes);
      cc::Event e = context.event(cc::Signal::message);
      e.message_bytes = bytes;
      deliver(e);
    }
    const std::int64_t tick_at = std::max(context.decision().wake_at.count, context.now() + 1);
    const std::int64_t done_at = context.drained_at();
    const std::int64_t next = std::min({tick_at, done_at, grant_at, share_at});
    if (next == kNeverNanos.count) throw std::logic_error("the channel waits for nothing");
    context.send_until(next);
    if (next == share_at) {
      // The arbiter's answer, and then news from it every few round trips.
      cc::UplinkShare share;
      share.rate_mbps = share.cap_mbps = static_cast<std::uint32_t>(1000 * (25 + random.below(75)));
      share.answers_start = want.asks_start;
      share.start_bytes = want.start_bytes;
      cc::Event e = context.event(cc::Signal::share);
      e.share = &share;
      share_at = context.now() + static_cast<std::int64_t>(10'000 + random.below(100'000));
      deliver(e);
    } else if (next == grant_at) {
      grant_at = kNeverNanos.count;
      GrantMessage sent = grant;
      grant.grant_seq = static_cast<std::uint16_t>(grant.grant_seq % 65'535 + 1);
      sent.grant_seq = grant.grant_seq;
      if (sent.limit_total == 0) sent.rate_mbps = 0;
      sent.lease_us = 60;
      cc::Event e = context.event(cc::Signal::grant);
      e.grant = &sent;
      deliver(e);
    } else if (next == done_at && context.backlog() == 0) {
      deliver(context.event(cc::Signal::idle));
    } else {
      deliver(context.event(cc::Signal::tick));
    }
  }
  return context.counts;
}

}  // namespace paceline::perf
