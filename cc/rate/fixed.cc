#include "cc/rate/fixed.h"

namespace paceline::cc {
namespace {

constexpr ParamSpec kFixedSpecs[] = {
    {"rate_mbps", "Mb/s", 0, 0, 3'200'000, true, "sending rate; 0 = line rate", "own"},
    {"window_bytes", "bytes", 0, 0, 1e15, true, "cap of the bytes in flight; 0 = none", "own"},
};
static_assert(std::size(kFixedSpecs) == Fixed::kParams);

}  // namespace

Fixed::Params Fixed::make_params(std::span<const double> values, const PortFacts& facts) {
  Params params;
  const double bps = values[kRateMbps] * 1e6;
  // Any positive rate is at least 1 b/s: a rate of 0 would mean "do not send".
  params.rate =
      bps > 0 ? max_rate(Rate{1}, Rate{static_cast<std::uint64_t>(bps)}) : facts.link_rate;
  const double window = values[kWindowBytes];
  params.window_bytes = window > 0 ? static_cast<std::uint64_t>(window) : kUnlimited;
  return params;
}

void Fixed::on_event(State&, const Params& params, const Event&, Decision& decision) {
  decision = Decision{};
  decision.rate = params.rate;
  decision.window_bytes = params.window_bytes;
}

AlgorithmInfo Fixed::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::fixed;
  info.name = "fixed";
  info.over_planes = true;
  info.summary = "constant rate, deaf to congestion";
  info.echo = EcnEcho::none;
  info.params = kFixedSpecs;
  return info;
}

}  // namespace paceline::cc
