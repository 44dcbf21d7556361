// One DCQCN sender under test, driven by hand.
#pragma once

#include <string_view>
#include <vector>

#include "cc/rate/dcqcn.h"
#include "cc_support.h"

namespace paceline::cc::test {

struct DcqcnSender {
  Dcqcn::Params params;
  Dcqcn::State state;
  Decision decision;

  DcqcnSender(std::string_view profile, std::uint64_t gbps,
              const std::vector<ParamOverride>& overrides = {}, std::int64_t start_ns = 0)
      : params(Dcqcn::make_params(values_of("dcqcn", profile, overrides, facts_at(gbps)),
                                  facts_at(gbps))) {
    on(start_ns, Signal::start);
  }

  void on(std::int64_t ns, Signal signal, std::uint64_t sent_bytes = 0) {
    Event event;
    event.now = Nanos{ns};
    event.signal = signal;
    event.sent_bytes = sent_bytes;
    Dcqcn::on_event(state, params, event, decision);
  }
  void cnp(std::int64_t ns, std::uint64_t sent_bytes = 0) { on(ns, Signal::cnp, sent_bytes); }
  void tick(std::int64_t ns, std::uint64_t sent_bytes = 0) { on(ns, Signal::tick, sent_bytes); }

  std::uint64_t rate() const { return decision.rate.bps; }
  std::uint64_t target() const { return state.rates.target_bps; }
  double alpha(std::int64_t ns) const { return Dcqcn::alpha_at(state, params, Nanos{ns}); }
};

inline constexpr std::int64_t kUs = 1000;
inline constexpr std::int64_t kMs = 1'000'000;

}  // namespace paceline::cc::test
