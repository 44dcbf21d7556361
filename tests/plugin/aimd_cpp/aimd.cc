// aimd: additive increase, multiplicative decrease on congestion notification packets.
#include <paceline/cc.h>

#include <algorithm>
#include <cstdint>

namespace {

enum { kDecrease, kStep, kPeriod, kParamCount };

const paceline_cc_param kParams[kParamCount] = {
    {"decrease", "1", 0.7, 0.1, 0.99, 1, 0, "what a notification leaves of the rate", "own"},
    {"step_mbps", "Mb/s", 100, 1, 10000, 1, 0, "added in each period without one", "own"},
    {"period_us", "us", 20, 1, 10000, 1, 0,
     "least time between two decreases, and between two increases", "own"},
};

struct Derived {  // of one port and parameter set: constant
  double decrease;
  std::uint64_t step_bps, floor_bps, link_bps;
  std::int64_t period_ns;
};
static_assert(sizeof(Derived) <= PACELINE_CC_DERIVED_BYTES);

struct State {  // of one context; zeroes before START
  std::uint64_t rate_bps;
  std::int64_t cut_at;    // last decrease
  std::int64_t grown_at;  // end of the last period that was added for, or last decrease
};
static_assert(sizeof(State) <= PACELINE_CC_STATE_BYTES);

void derive(const double* values, const paceline_cc_port* port, void* out) {
  auto* d = static_cast<Derived*>(out);
  d->decrease = values[kDecrease];
  d->step_bps = static_cast<std::uint64_t>(values[kStep] * 1e6);
  d->period_ns = static_cast<std::int64_t>(values[kPeriod] * 1e3);
  d->link_bps = port->link_bps;
  d->floor_bps = port->link_bps / 1000;
}

// No exception may leave it.
void on_event(State& s, const Derived& d, const paceline_cc_event& e,
              paceline_cc_decision& out) noexcept {
  if (e.signal == PACELINE_CC_START) {
    s.rate_bps = d.link_bps;
    if (e.handover != nullptr && e.handover->rate_bps != 0) {
      s.rate_bps = std::min(s.rate_bps, e.handover->rate_bps);
    }
    s.cut_at = e.now_ns - d.period_ns;  // the first notification counts
    s.grown_at = e.now_ns;
  }
  if (e.signal == PACELINE_CC_CNP && e.now_ns - s.cut_at >= d.period_ns) {
    s.rate_bps = static_cast<std::uint64_t>(static_cast<double>(s.rate_bps) * d.decrease);
    s.cut_at = s.grown_at = e.now_ns;
  }
  const std::int64_t periods = (e.now_ns - s.grown_at) / d.period_ns;
  s.rate_bps += d.step_bps * static_cast<std::uint64_t>(periods);
  s.grown_at += periods * d.period_ns;
  s.rate_bps = std::max(std::min(s.rate_bps, d.link_bps), d.floor_bps);
  out.rate_bps = s.rate_bps;
  out.wake_at_ns = s.rate_bps < d.link_bps ? s.grown_at + d.period_ns : PACELINE_CC_NEVER;
}

void on_events(const paceline_cc_item* items, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    on_event(*static_cast<State*>(items[i].state), *static_cast<const Derived*>(items[i].derived),
             *items[i].event, *items[i].decision);
  }
}

paceline_cc_algorithm table() {
  paceline_cc_algorithm a{};
  a.size = sizeof a;
  a.abi_major = PACELINE_CC_ABI_MAJOR;
  a.abi_minor = PACELINE_CC_ABI_MINOR;
  a.name = "aimd";
  a.summary = "additive increase, multiplicative decrease on CNPs";
  a.context = PACELINE_CC_PER_QP;
  a.echo = PACELINE_CC_ECHO_CNP;
  a.wants = PACELINE_CC_WANT(PACELINE_CC_CNP);
  a.state_bytes = sizeof(State);
  a.derived_bytes = sizeof(Derived);
  a.param_count = kParamCount;
  a.param_size = sizeof(paceline_cc_param);
  a.params = kParams;
  a.derive = derive;
  a.on_events = on_events;
  return a;
}

}  // namespace

const paceline_cc_algorithm* paceline_cc_plugin(std::uint32_t host_abi) {
  static const paceline_cc_algorithm algorithm = table();
  return host_abi >> 16 == PACELINE_CC_ABI_MAJOR ? &algorithm : nullptr;
}
