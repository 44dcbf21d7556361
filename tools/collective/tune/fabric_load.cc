#include "tools/collective/tune/fabric_load.h"

#include <map>
#include <utility>

#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/fabric_ideal.h"

namespace paceline::tools {

namespace {

// Two buffers, in bytes of a block: their difference in time is without latency.
constexpr std::uint64_t kSmallBlock = 64 << 10;
constexpr std::uint64_t kLargeBlock = 128 << 10;

}  // namespace

FabricLoad::FabricLoad(const config::Scenario& scenario)
    : scenario_(scenario), spec_(fabric_of(scenario_)), topology_(spec_) {}

std::vector<double> FabricLoad::times(const PlacedSchedule& placed, std::uint64_t bytes) const {
  MessagePlan plan;
  plan.collectives.resize(placed.round_count + 1);
  const auto& transfers = placed.schedule.transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const workload::Transfer& t = transfers[i];
    if (t.from == t.to || placed.inside(t)) continue;
    PlannedMessage message;
    message.src = placed.nics[t.from];
    message.dst = placed.nics[t.to];
    message.bytes = workload::transfer_bytes(placed.schedule, t, bytes);
    for (const std::uint32_t round : {placed.rounds[i], placed.round_count}) {
      message.collective = round;
      plan.messages.push_back(message);
    }
  }
  FabricIdeal(scenario_, spec_, topology_).fill(plan);
  std::vector<double> picos;
  for (const Collective& round : plan.collectives) {
    picos.push_back(static_cast<double>(round.ideal.count));
  }
  return picos;
}

double FabricLoad::nic_time(std::uint64_t bytes) const {
  const Rate nic{scenario_.fabric.rate.bps * scenario_.fabric.ports};
  return static_cast<double>(
      serialization_time(IdealClock(scenario_, 2).wire_bytes(bytes), nic).count);
}

std::vector<double> FabricLoad::paths(const PlacedSchedule& placed) const {
  const auto& transfers = placed.schedule.transfers;
  std::vector<double> factors(transfers.size(), 1);
  const bool spread =
      scenario_.fabric.load_balance != "ecmp" || scenario_.transport.multipath != "none";
  if (spread || spec_.switches == 1) return factors;
  const FabricIdeal ideal(scenario_, spec_, topology_);
  const double nic = nic_time(kLargeBlock) - nic_time(kSmallBlock);
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> known;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const workload::Transfer& t = transfers[i];
    if (t.from == t.to || placed.inside(t)) continue;
    const std::pair pair{placed.nics[t.from], placed.nics[t.to]};
    const auto [at, added] = known.try_emplace(pair);
    if (added) {
      const Picos more = ideal.fct(pair.first, pair.second, kLargeBlock) -
                         ideal.fct(pair.first, pair.second, kSmallBlock);
      at->second = static_cast<double>(more.count) / nic;
    }
    factors[i] = at->second;
  }
  return factors;
}

PortLoads FabricLoad::ports(const PlacedSchedule& placed) const {
  const std::uint64_t blocks = placed.schedule.blocks;
  const std::vector<double> small = times(placed, blocks * kSmallBlock);
  const std::vector<double> large = times(placed, blocks * kLargeBlock);
  const double buffer = nic_time(blocks * (kLargeBlock - kSmallBlock));
  PortLoads ports;
  for (std::size_t i = 0; i < small.size(); ++i) {
    ports.rounds.push_back((large[i] - small[i]) / buffer);
  }
  ports.all = ports.rounds.back();
  ports.rounds.pop_back();
  ports.paths = paths(placed);
  return ports;
}

}  // namespace paceline::tools
