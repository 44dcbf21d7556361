// One flow of an algorithm, fed event by event: what the unit tests of windows and rates share.
#pragma once

#include <string>
#include <vector>

#include "cc_support.h"

namespace paceline::cc::test {

// At 100 Gb/s with 10 us of unloaded round trip 125,000 bytes fill the path; packets of 5,000 make
// that 25 of them.
inline PortFacts shelf_facts() {
  PortFacts facts = facts_at(100);
  facts.base_rtt_ns = 10'000;
  facts.full_packet_bytes = 5'000;
  return facts;
}

template <class Algorithm>
struct FlowDriver {
  explicit FlowDriver(const std::vector<ParamOverride>& overrides = {},
                      const std::string& profile = "") {
    const PortFacts facts = shelf_facts();
    params =
        Algorithm::make_params(values_of(Algorithm::info().name, profile, overrides, facts), facts);
    deliver(Signal::start);
  }

  Event event(Signal signal) const {
    Event e;
    e.now = now;
    e.signal = signal;
    e.sent_total = sent;
    e.inflight_bytes = inflight;
    return e;
  }

  void deliver(const Event& e) { Algorithm::on_event(state, params, e, decision); }
  void deliver(Signal signal) { deliver(event(signal)); }

  void pass_us(double us) { now = now + Nanos{static_cast<std::int64_t>(us * 1000)}; }

  void send(std::uint64_t bytes) {
    sent += bytes;
    inflight += bytes;
  }

  // So many of the bytes in flight are acknowledged, with a sample (0: none) and marks.
  void ack(std::uint32_t bytes, double rtt_us, std::uint32_t marked = 0) {
    REQUIRE(inflight >= bytes);
    inflight -= bytes;
    Event e = event(Signal::ack);
    e.acked_bytes = bytes;
    e.marked_bytes = marked;
    e.rtt_ns = static_cast<std::uint32_t>(rtt_us * 1000);
    deliver(e);
  }

  void lose(std::uint32_t bytes) {
    inflight -= bytes;
    Event e = event(Signal::nack);
    e.lost_bytes = bytes;
    deliver(e);
  }

  // Keeps the window full for a round trip, acknowledged packet by packet, a share of the bytes of
  // each marked.
  void round_trip(double rtt_us, double marked_share = 0) {
    const auto packets = static_cast<unsigned>(state.window / 5'000);
    fill();
    pass_us(rtt_us);
    for (unsigned i = 0; i < packets && inflight >= 5'000; ++i) {
      ack(5'000, rtt_us, static_cast<std::uint32_t>(5'000 * marked_share));
      fill();
    }
  }
  void fill() {
    while (static_cast<double>(inflight) + 5'000 <= state.window) send(5'000);
  }

  typename Algorithm::Params params;
  typename Algorithm::State state{};
  Decision decision;
  Nanos now{1'000'000};
  std::uint64_t sent = 0;
  std::uint64_t inflight = 0;
};

// The decision of a flow that was handed over at a rate.
template <class Algorithm>
Decision handed_over(std::uint64_t gbps) {
  FlowDriver<Algorithm> flow;
  Handover handover;
  handover.rate = rate_from_gbps(gbps);
  Event e = flow.event(Signal::start);
  e.handover = &handover;
  flow.deliver(e);
  return flow.decision;
}

}  // namespace paceline::cc::test
