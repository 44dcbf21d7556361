// One flow of an algorithm with telemetry: a FlowDriver whose acknowledgements bring the records of
// a path that the test describes.
#pragma once

#include "dataplane/base/protocol/int_stack.h"
#include "flow_driver.h"

namespace paceline::cc::test {

template <class Algorithm>
struct TelemetryFlow : FlowDriver<Algorithm> {
  using Base = FlowDriver<Algorithm>;
  using Base::Base;

  // Link `i` of the path sends at a share of its 100 Gb/s (12,500 bytes per us) from now on...
  void load(unsigned i, double share) { share_[i] = share; }
  // ... and has so many bytes queued.
  void queue(unsigned i, std::uint32_t bytes) { stack.hop[i].queue_bytes = bytes; }

  void pass_us(double us) {
    Base::pass_us(us);
    for (unsigned i = 0; i < kIntHops; ++i) {
      sent_[i] += share_[i] * 12'500 * us;
      stack.hop[i].sent_bytes = static_cast<std::uint64_t>(sent_[i]) & (kIntSentWrap - 1);
      stack.hop[i].time_ns = static_cast<std::uint32_t>(this->now.count) & (kIntTimeWrap - 1);
    }
  }

  void ack_told(std::uint32_t bytes) {
    REQUIRE(this->inflight >= bytes);
    this->inflight -= bytes;
    Event e = this->event(Signal::ack);
    e.acked_bytes = bytes;
    e.int_stack = &stack;
    this->deliver(e);
  }

  static IntStack two_links() {
    IntStack stack;
    stack.hops = 2;
    stack.path = 7;
    for (IntHop& hop : stack.hop) hop.rate_mbps = 100'000;
    return stack;
  }

  IntStack stack = two_links();

 private:
  std::array<double, kIntHops> share_{};
  std::array<double, kIntHops> sent_{};
};

}  // namespace paceline::cc::test
