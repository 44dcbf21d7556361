#include "dataplane/driver/virtual/world_probes.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline {

namespace {

using probing::HostClock;

static_assert(kProbePayload >= probing::kProbeBytes);

constexpr std::uint32_t kProtectionDomain = 0xFFFF'FFFF;  // of no application
constexpr std::uint64_t kClockStream = 0xC10C;
constexpr std::size_t kMostSamples = 1U << 20U;  // of all pairs

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

// Uniform in [-most, most].
double drawn(Random& random, double most) { return most * (2 * random.uniform() - 1); }

std::vector<HostClock> clocks_of(const config::Scenario& scenario, const fabric::FabricSpec& spec) {
  std::vector<HostClock> clocks(spec.nics());
  Random random(scenario.seed, kClockStream);
  const double offset_ns = static_cast<double>(scenario.probing.clock_offset.count) / 1e3;
  for (HostClock& clock : clocks) {
    clock.at_zero = Nanos{whole(drawn(random, offset_ns))};
    clock.drift_ppb = whole(drawn(random, scenario.probing.clock_drift_ppm * 1e3));
  }
  for (const config::FaultConfig& fault : scenario.faults) {
    const config::FaultKindInfo& kind = *config::find_fault_kind(fault.kind);
    if (!kind.of_clock) continue;
    const fabric::LinkSpec& link = spec.links[fault.links.front()];
    probing::ClockChange change;
    change.at = fault.at;
    if (kind.kind == config::FaultKind::clock_jump) {
      change.set_by = Nanos{whole(fault.severity * 1e3)};
      change.right_at = fault.until();
    } else {
      change.drift_ppb = whole(fault.severity * 1e3);
      change.steady_at = fault.until();
    }
    clocks[std::min(link.a, link.b) % spec.nics()].changes.push_back(change);
  }
  return clocks;
}

// How much faster than time the clock runs.
double drift_ppb_at(const HostClock& clock, Picos now) {
  std::int64_t sum = clock.drift_ppb;
  for (const probing::ClockChange& change : clock.changes) {
    if (now >= change.at && now < change.steady_at && now < change.right_at)
      sum += change.drift_ppb;
  }
  return static_cast<double>(sum);
}

ProbeQuantiles quantiles_of(std::vector<double>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  return {at(0.5), at(0.99), values.back()};
}

ProbedPair pair_of(const VirtualWorld& world, std::uint32_t from, std::uint32_t to,
                   const probing::PeerFigures& figures, std::vector<double>& all_there_ns) {
  ProbedPair out;
  out.from = from;
  out.to = to;
  for (const probing::PathCounts& path : figures.paths) out.counts += path;
  if (!figures.clock) return out;
  const probing::ClockReading& reading = *figures.clock;
  std::vector<double> there_ns;
  for (const probing::ProbeSample& sample : figures.samples) {
    // From before a clock was set: nothing arrives before it is sent.
    if (reading.one_way_back(sample.times) < 0 || reading.one_way_there(sample.times) < 0) continue;
    there_ns.push_back(reading.one_way_there(sample.times));
  }
  all_there_ns.insert(all_there_ns.end(), there_ns.begin(), there_ns.end());
  out.there_ns = quantiles_of(there_ns);
  const HostClock& own = world.probe(from)->clock();
  const HostClock& other = world.probe(to)->clock();
  const Nanos shown = own.at(world.now());
  out.clock = true;
  out.offset_ns = reading.offset_at(shown);
  out.true_offset_ns = static_cast<double>((other.at(world.now()) - shown).count);
  out.drift_ppb = reading.drift * 1e9;
  const double own_rate = 1 + drift_ppb_at(own, world.now()) * 1e-9;
  const double other_rate = 1 + drift_ppb_at(other, world.now()) * 1e-9;
  out.true_drift_ppb = (other_rate / own_rate - 1) * 1e9;
  out.uncertainty_ns = reading.least_one_way;
  out.restarts = reading.restarts;
  return out;
}

}  // namespace

void add_probes(const config::Scenario& scenario, const fabric::FabricSpec& spec,
                Slab<WorldHost>& hosts) {
  const std::vector<HostClock> clocks = clocks_of(scenario, spec);
  const auto count = static_cast<std::uint32_t>(hosts.size());
  for (std::uint32_t h = 0; h < count; ++h) {
    hosts[h].probe = std::make_unique<probing::ProbeEnd>(Picos{0}, hosts[h].engine,
                                                         kProtectionDomain, h + 1, clocks[h]);
  }
  const std::size_t pairs = std::max<std::size_t>(std::size_t{count} * (count - 1), 1);
  probing::ProbePlan plan;
  plan.session = static_cast<std::uint32_t>(mix64(scenario.seed));
  plan.paths = static_cast<std::uint16_t>(scenario.probing.paths);
  plan.kept = static_cast<std::uint32_t>(std::clamp<std::size_t>(kMostSamples / pairs, 16, 512));
  const double seconds = probing::kProbeBits /
                         (scenario.probing.share * static_cast<double>(scenario.fabric.rate.bps));
  plan.interval = Picos{std::max<std::int64_t>(whole(seconds * 1e12), 1)};
  for (std::uint32_t h = 0; h < count; ++h) {
    std::vector<probing::ProbePeer> peers;
    // Not all hosts begin with the same peer.
    for (std::uint32_t i = 1; i < count; ++i) {
      const std::uint32_t peer = (h + i) % count;
      transport::QpPath path;
      path.ip = wire::IpAddress::v4(spec.subnet_base + peer + 1);
      path.mac = wire::MacAddress::local(peer + 1);
      peers.push_back({path, hosts[peer].probe->qp_number(), hosts[peer].probe->qkey()});
    }
    plan.number = h;
    hosts[h].probe->begin(Picos{0}, plan, peers, kDefaultDataClass);
  }
}

ProbeReport report_probes(const VirtualWorld& world) {
  ProbeReport out;
  std::vector<double> there_ns, offset_ns, drift_ppb;
  for (std::uint32_t from = 0; from < world.hosts(); ++from) {
    const probing::ProbeEnd* const end = world.probe(from);
    if (end == nullptr) return out;
    out.totals += end->prober()->totals();
    for (std::uint32_t i = 1; i < world.hosts(); ++i) {
      const std::uint32_t to = (from + i) % world.hosts();
      const ProbedPair pair = pair_of(world, from, to, end->prober()->figures(i - 1), there_ns);
      out.restarts += pair.restarts;
      if (pair.clock) {
        offset_ns.push_back(std::abs(pair.offset_ns - pair.true_offset_ns));
        drift_ppb.push_back(std::abs(pair.drift_ppb - pair.true_drift_ppb));
      }
      out.pairs.push_back(pair);
    }
  }
  out.there_ns = quantiles_of(there_ns);
  out.offset_error_ns = quantiles_of(offset_ns);
  out.drift_error_ppb = quantiles_of(drift_ppb);
  return out;
}

}  // namespace paceline
