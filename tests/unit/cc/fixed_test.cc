#include "cc/rate/fixed.h"

#include "cc_support.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

Decision after(const std::vector<ParamOverride>& overrides, Signal signal) {
  const PortFacts facts = facts_at(100);
  const auto params = Fixed::make_params(values_of("fixed", "", overrides, facts), facts);
  Fixed::State state;
  Decision decision;
  decision.limiter = Limiter::grant;  // left behind by an earlier algorithm
  decision.ceiling = 17;
  Event event;
  event.now = Nanos{12'345};
  event.signal = signal;
  Fixed::on_event(state, params, event, decision);
  return decision;
}

}  // namespace

TEST_CASE("fixed: line rate without a window by default") {
  const Decision decision = after({}, Signal::start);
  CHECK(decision.rate == rate_from_gbps(100));
  CHECK(decision.window_bytes == kUnlimited);
  CHECK(decision.ceiling == kUnlimited);
  CHECK(decision.wake_at == kNeverNanos);
  CHECK(decision.wake_bytes == kUnlimited);
  CHECK(decision.limiter == Limiter::path);
  CHECK_FALSE(decision.request);
  CHECK_FALSE(decision.timed);
}

TEST_CASE("fixed: rate and window as set, down to one bit per second") {
  const Decision decision = after({{"rate_mbps", 12.5}, {"window_bytes", 65'536}}, Signal::start);
  CHECK(decision.rate.bps == 12'500'000);
  CHECK(decision.window_bytes == 65'536);
  CHECK(after({{"rate_mbps", 1e-9}}, Signal::start).rate.bps == 1);
}

TEST_CASE("fixed: congestion changes nothing") {
  for (const Signal signal : {Signal::cnp, Signal::timeout, Signal::nack, Signal::tick}) {
    CHECK(after({{"rate_mbps", 40'000}}, signal).rate == rate_from_gbps(40));
  }
  CHECK(find("fixed")->wants == 0);
  CHECK(find("fixed")->echo == EcnEcho::none);
}

TEST_CASE("fixed: a rate above the link is an error, not a clamp") {
  const ResolvedParams resolved = resolve_params(
      *find("fixed"), "", std::vector<ParamOverride>{{"rate_mbps", 100'001}}, facts_at(100));
  REQUIRE(std::holds_alternative<std::vector<ParamError>>(resolved));
  CHECK(std::get<std::vector<ParamError>>(resolved)[0].kind == ParamError::Kind::above_link_rate);
}
