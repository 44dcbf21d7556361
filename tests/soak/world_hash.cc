// What a run is known by beside its frames, and what changes during the run in the modes that
// change.
#include <stdexcept>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "tests/soak/world.h"

namespace paceline::soak {

transport::CcChoice choose_cc(cc::AlgorithmId id, Rate link_rate, std::uint32_t base_rtt_ns) {
  cc::PortFacts facts;
  facts.link_rate = link_rate;
  facts.mtu_bytes = kMtu;
  facts.full_packet_bytes =
      WireAccounting{}.wire_bytes(transport::EngineCore::kPlainHeaderBytes + kMtu + 8, kMtu);
  facts.base_rtt_ns = base_rtt_ns;
  auto resolved = cc::resolve_params(*cc::find(id), "", {}, facts);
  if (const auto* errors = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
    throw std::invalid_argument(errors->front().message);
  }
  return {id, std::get<std::vector<double>>(resolved)};
}

void World::note(const transport::Completion& c) {
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(stage_.now.count), c.wr_id, std::uint64_t{c.qp_number},
        static_cast<std::uint64_t>(c.opcode), static_cast<std::uint64_t>(c.status), c.bytes,
        std::uint64_t{c.has_immediate ? c.immediate : 0},
        std::uint64_t{c.invalidated ? c.invalidated_key : 0}}) {
    completed_.add(value);
  }
}

std::uint64_t World::outcome() const {
  test::RunHash hash = completed_;
  for (const auto& host : stage_.hosts) {
    const telemetry::EngineCounters& counters = host->engine.counters();
    telemetry::for_each(counters, [&hash](std::string_view name, std::uint64_t value) {
      if (value == 0) return;
      hash.add(name);
      hash.add(value);
    });
    for (const std::int64_t picos : host->engine.view().limiter_picos(stage_.now)) {
      hash.add(static_cast<std::uint64_t>(picos));
    }
  }
  return hash.value();
}

// Another algorithm for both hosts, or another limit for a queue pair of one.
void World::change() {
  constexpr cc::AlgorithmId kChoices[] = {cc::AlgorithmId::dcqcn, cc::AlgorithmId::cadence,
                                          cc::AlgorithmId::swift, cc::AlgorithmId::eqds,
                                          cc::AlgorithmId::fixed};
  const Rate link_rate = stage_.hosts[0]->port.info().link_rate;
  if (changes_.below(3) == 0) {
    transport::CcSetup setup;
    setup.primary = choose_cc(kChoices[changes_.below(std::size(kChoices))], link_rate, 5000);
    setup.fallback = choose_cc(cc::AlgorithmId::dcqcn, link_rate, 5000);
    for (auto& host : stage_.hosts) {
      host->engine.reconfigure(stage_.now, setup, 0,
                               static_cast<std::uint8_t>(host->engine.view().generation()));
      host->touched = true;
    }
    return;
  }
  Host& host = *stage_.hosts[changes_.below(2)];
  std::uint32_t qp = host.engine.view().next_qp(0);
  for (std::uint64_t skip = changes_.below(6); skip != 0; --skip)
    qp = host.engine.view().next_qp(qp);
  const Rate rate{changes_.below(2) == 0 ? 0 : link_rate.bps / (1 + changes_.below(20))};
  if (qp != 0) host.engine.limit_rate(stage_.now, qp, rate, 10'000);
  host.touched = true;
}

}  // namespace paceline::soak
