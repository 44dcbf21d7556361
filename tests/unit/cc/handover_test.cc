// Taking over a live connection: no algorithm begins faster than it went before, nor faster than it
// would have begun by itself.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "cc/dispatch.h"
#include "cc/params.h"
#include "cc/registry.h"

namespace paceline::cc {
namespace {

constexpr std::uint32_t kRttNs = 8000;

PortFacts handover_facts() {
  PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  facts.mtu_bytes = 4096;
  facts.full_packet_bytes = 4178;
  facts.base_rtt_ns = kRttNs;
  return facts;
}

ParamBlock handover_block(const AlgorithmInfo& info, std::vector<ParamOverride> overrides = {}) {
  auto resolved = resolve_params(info, "", overrides, handover_facts());
  const auto* values = std::get_if<std::vector<double>>(&resolved);
  REQUIRE(values != nullptr);
  return make_param_block(info.id, *values, handover_facts());
}

struct Started {
  alignas(kStateAlignment) std::byte state[kStateBytes];
  Decision decision;
};

void begin(const ParamBlock& block, const Handover* handover, Started& started) {
  Event event;
  event.now = Nanos{1'000'000};
  event.handover = handover;
  start_state(block.id, started.state, block, event, started.decision);
}

// What a decision lets through in a round trip, bytes.
double per_round_trip(const Decision& d) {
  const double at_rate = static_cast<double>(d.rate.bps) * kRttNs * 1e-9 / 8;
  return d.window_bytes == kUnlimited ? at_rate
                                      : std::min(at_rate, static_cast<double>(d.window_bytes));
}

TEST_CASE("handover: reactive algorithms begin at the smaller of the two rates", "[cc][handover]") {
  for (const AlgorithmId id : {AlgorithmId::dcqcn, AlgorithmId::swift}) {
    const AlgorithmInfo& info = *find(id);
    CAPTURE(std::string(info.name));
    const ParamBlock block = handover_block(info);
    Started alone;
    begin(block, nullptr, alone);
    const double own = per_round_trip(alone.decision);
    for (const std::uint64_t mbps : {200U, 1000U, 20'000U, 99'000U, 100'000U, 400'000U}) {
      CAPTURE(mbps);
      Handover handover;
      handover.rate = rate_from_mbps(mbps);
      handover.srtt_ns = kRttNs;
      Started taken;
      begin(block, &handover, taken);
      const double handed = static_cast<double>(mbps) * kRttNs / 8000;
      // Below a packet per round trip Swift goes by rate, and its window is the packet.
      CHECK(per_round_trip(taken.decision) <= std::min(own, handed) * 1.001);
      CHECK(per_round_trip(taken.decision) >= std::min(own, handed) * 0.95);
    }
    // Nothing known: as by itself.
    Handover nothing;
    Started fresh;
    begin(block, &nothing, fresh);
    CHECK(fresh.decision.rate == alone.decision.rate);
    CHECK(fresh.decision.window_bytes == alone.decision.window_bytes);
  }
}

TEST_CASE("handover: a start rate below what was handed over stays the bound", "[cc][handover]") {
  const ParamBlock dcqcn = handover_block(*find(AlgorithmId::dcqcn), {{"start_rate", 0.1}});
  Handover handover;
  handover.rate = rate_from_gbps(40);
  Started taken;
  begin(dcqcn, &handover, taken);
  CHECK(taken.decision.rate == rate_from_gbps(10));
}

// It sends nothing before it has asked; then its path rate is what bounds it.
TEST_CASE("handover: cadence takes the rate for what the path carries", "[cc][handover]") {
  const ParamBlock block = handover_block(*find(AlgorithmId::cadence));
  Handover handover;
  handover.rate = rate_from_gbps(7);
  handover.min_rtt_ns = 4000;
  Started taken;
  begin(block, &handover, taken);
  CHECK(taken.decision.rate.bps == 0);
  auto& state = *reinterpret_cast<Cadence::State*>(taken.state);
  CHECK(state.path_mbps == 7000);
  CHECK(state.path_mbps < 100'000);
  handover.rate = rate_from_gbps(200);
  begin(block, &handover, taken);
  CHECK(state.path_mbps == 100'000);
  CHECK(state.path_mbps == 100'000);
}

// A constant rate is what it is for.
TEST_CASE("handover: fixed keeps its rate", "[cc][handover]") {
  const ParamBlock block = handover_block(*find(AlgorithmId::fixed), {{"rate_mbps", 5000}});
  Handover handover;
  handover.rate = rate_from_gbps(1);
  Started taken;
  begin(block, &handover, taken);
  CHECK(taken.decision.rate == rate_from_gbps(5));
}

TEST_CASE("values changed under way: swift's window keeps its bounds with the next tick",
          "[cc][handover]") {
  const ParamBlock wide = handover_block(*find(AlgorithmId::swift));
  const ParamBlock narrow = handover_block(*find(AlgorithmId::swift), {{"max_window", 3}});
  Started s;
  begin(wide, nullptr, s);
  CHECK(s.decision.window_bytes > 3 * 4178);
  Event tick;
  tick.signal = Signal::tick;
  tick.now = Nanos{1'001'000};
  dispatch(AlgorithmId::swift, s.state, narrow, tick, s.decision);
  CHECK(s.decision.window_bytes == 3 * 4178);
}

}  // namespace
}  // namespace paceline::cc
