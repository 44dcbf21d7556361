// Swift, transition by transition.
#include "cc/window/swift.h"

#include <cmath>

#include "cc_support.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

struct SwiftFlow {
  explicit SwiftFlow(const std::vector<ParamOverride>& overrides = {}) {
    PortFacts facts = facts_at(100);
    facts.base_rtt_ns = 10'000;
    facts.full_packet_bytes = 4178;
    params = Swift::make_params(values_of("swift", "", overrides, facts), facts);
    event(Signal::start);
  }

  void event(Signal signal, std::uint32_t rtt_ns = 0, double packets = 0) {
    Event e;
    e.now = now;
    e.signal = signal;
    e.rtt_ns = rtt_ns;
    e.acked_bytes = signal == Signal::ack ? static_cast<std::uint32_t>(packets * 4178) : 0;
    e.lost_bytes = signal == Signal::nack ? 4178 : 0;
    Swift::on_event(state, params, e, decision);
  }
  void pass(std::int64_t ns) { now = now + Nanos{ns}; }

  Swift::Params params;
  Swift::State state{};
  Decision decision;
  Nanos now{1'000'000};
};

}  // namespace

TEST_CASE("swift: a new flow fills the unloaded path, at line rate") {
  const SwiftFlow flow;
  // 100 Gb/s times 10 us: 125,000 bytes.
  CHECK(flow.decision.window_bytes == 125'000);
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(flow.decision.limiter == Limiter::window);
}

TEST_CASE("swift: the target falls from the whole range to none as the window grows") {
  const SwiftFlow flow;
  CHECK(Swift::target_ns(flow.params, 0.1) == Approx(125'000));
  CHECK(Swift::target_ns(flow.params, 0.01) == Approx(125'000));  // no more than the range
  CHECK(Swift::target_ns(flow.params, 100) == Approx(25'000));
  CHECK(Swift::target_ns(flow.params, 1000) == Approx(25'000));
  CHECK(Swift::target_ns(flow.params, 4) > Swift::target_ns(flow.params, 9));
  // Halfway in 1 / sqrt(window).
  const double middle = (1 / std::sqrt(0.1) + 0.1) / 2;
  CHECK(Swift::target_ns(flow.params, 1 / (middle * middle)) == Approx(75'000));
  // Longer paths.
  const SwiftFlow far({{"hops", 5}, {"hop_scale_us", 2}, {"flow_scale_range_us", 0}});
  CHECK(Swift::target_ns(far.params, 1) == Approx(33'000));
}

TEST_CASE("swift: a packet more per round trip below the target") {
  SwiftFlow flow;
  const double before = flow.state.window;
  // A whole window acknowledged in pieces.
  for (int i = 0; i < 10; ++i) flow.event(Signal::ack, 12'000, before / 10);
  CHECK(flow.state.window == Approx(before + 1).epsilon(0.01));
  // Below one packet: a packet per packet.
  SwiftFlow small({{"start_window", 0.5}});
  small.event(Signal::ack, 12'000, 0.25);
  CHECK(small.state.window == Approx(0.75).epsilon(0.01));
}

TEST_CASE("swift: above the target it falls by the excess, once per round trip") {
  SwiftFlow flow({{"start_window", 200}});
  flow.event(Signal::ack, 50'000, 1);  // target 25 us: excess one half
  CHECK(flow.state.window == Approx(200 * (1 - 0.8 * 0.5)));
  const double once = flow.state.window;
  flow.pass(49'999);
  flow.event(Signal::ack, 50'000, 1);
  CHECK(flow.state.window == once);
  flow.pass(1);
  flow.event(Signal::ack, 50'000, 1);
  CHECK(flow.state.window < once);
  // Never by more than max_decrease.
  SwiftFlow jammed({{"start_window", 200}});
  jammed.event(Signal::ack, 10'000'000, 1);
  CHECK(jammed.state.window == Approx(100));
}

TEST_CASE("swift: a loss halves it, at most once per round trip; timeouts reset it") {
  SwiftFlow flow({{"start_window", 64}, {"reset_timeouts", 3}});
  flow.event(Signal::nack);
  flow.event(Signal::nack);
  CHECK(flow.state.window == Approx(32));
  flow.pass(100'000);
  flow.event(Signal::timeout);
  CHECK(flow.state.window == Approx(16));
  flow.pass(100'000);
  flow.event(Signal::timeout);
  flow.pass(100'000);
  flow.event(Signal::timeout);
  CHECK(flow.state.window == Approx(0.001));
  // Something got through: the count begins again.
  flow.event(Signal::ack, 12'000, 1);
  CHECK(flow.state.timeouts == 0);
}

TEST_CASE("swift: less than a packet per round trip is paced") {
  SwiftFlow flow({{"start_window", 0.25}});
  flow.event(Signal::ack, 200'000, 0);  // above any target: shrinks
  const double bits = 8 * 4178.0;
  CHECK(flow.decision.window_bytes == 4178);
  CHECK(static_cast<double>(flow.decision.rate.bps) ==
        Approx(flow.state.window * bits / 200e-6).epsilon(1e-6));
  CHECK(flow.decision.limiter == Limiter::path);
}

TEST_CASE("swift: a handover begins at the smaller of the two rates") {
  SwiftFlow flow;
  Handover handover;
  handover.rate = rate_from_gbps(10);
  Event e;
  e.now = flow.now;
  e.signal = Signal::start;
  e.handover = &handover;
  Swift::on_event(flow.state, flow.params, e, flow.decision);
  CHECK(flow.decision.window_bytes == 12'500);
}

TEST_CASE("swift: a slow far host shrinks the endpoint window, and the smaller of the two holds") {
  SwiftFlow flow({{"start_window", 64}});
  const auto host_delay = [&flow](std::uint32_t us, double packets) {
    Event e;
    e.now = flow.now;
    e.signal = Signal::ack;
    e.rtt_ns = 12'000;
    e.host_delay_ns = us * 1000;
    e.acked_bytes = static_cast<std::uint32_t>(packets * 4178);
    Swift::on_event(flow.state, flow.params, e, flow.decision);
  };
  host_delay(99, 0);
  CHECK(flow.decision.window_bytes == 64 * 4178);
  host_delay(200, 0);  // twice the target: excess one half
  CHECK(flow.state.endpoint == Approx(64 * (1 - 0.8 * 0.5)));
  CHECK(flow.state.window == Approx(64));
  CHECK(flow.decision.window_bytes == static_cast<std::uint64_t>(flow.state.endpoint * 4178));
  const double once = flow.state.endpoint;
  flow.pass(211'999);  // the round trip includes the far host
  host_delay(200, 0);
  CHECK(flow.state.endpoint == once);
  flow.pass(1);
  host_delay(200, 0);
  CHECK(flow.state.endpoint == Approx(once * 0.6));
  flow.pass(10'012'000);
  host_delay(10'000, 0);  // by max_decrease at most
  CHECK(flow.state.endpoint == Approx(once * 0.3));
  host_delay(0, once * 0.3);
  CHECK(flow.state.endpoint == Approx(once * 0.3 + 1));
  // Without a target there is no such window.
  SwiftFlow deaf({{"start_window", 64}, {"endpoint_target_us", 0}});
  Event e;
  e.now = deaf.now;
  e.signal = Signal::ack;
  e.rtt_ns = 12'000;
  e.host_delay_ns = 1'000'000;
  Swift::on_event(deaf.state, deaf.params, e, deaf.decision);
  CHECK(deaf.decision.window_bytes == 64 * 4178);
}
