#include "dataplane/service/control/probe_controller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "dataplane/attach/text.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/driver/clock/unix_time.h"

namespace paceline::service {

namespace {

using Json = ProbeController::Json;
using probing::ProbeEnd;

// The most samples over all pairs of a service: some 50 bytes each.
constexpr std::size_t kMostSamples = 1U << 20U;

// The topmost bit clear: with it a Q_Key means something else.
std::uint32_t draw_qkey() {
  std::uint32_t key = 0;
  if (::getrandom(&key, sizeof key, 0) != sizeof key) key = 1;
  return key & 0x7FFF'FFFF;
}

std::int64_t whole(double ns) { return static_cast<std::int64_t>(std::llround(ns)); }

// Quantiles by nearest rank.
Json quantiles(std::vector<double>& values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
    return whole(values[std::max<std::size_t>(rank, 1) - 1]);
  };
  return {{"p50", at(0.5)}, {"p99", at(0.99)}};
}

// From now on the clock shows this, or what is given for this NIC's clock.
probing::HostClock clock_of(Picos now, Nanos shows, const std::string& nic,
                            const std::vector<ClockFault>& faults) {
  probing::HostClock clock;
  for (const ClockFault& fault : faults) {
    if (fault.nic != nic) continue;
    clock.drift_ppb = whole(fault.drift_ppb);
    shows.count += whole(fault.offset_ns);
    clock.set_by = Nanos{whole(fault.jump_ns)};
    if (fault.jump_ns != 0) clock.set_at = now + Picos{whole(fault.jump_after_us * 1e6) + 1};
  }
  clock.at_zero = shows - clock.at(now);
  return clock;
}

template <class Figure>
Json quantiles_of(const std::vector<probing::ProbeSample>& samples, Figure&& figure) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const probing::ProbeSample& sample : samples) {
    if (const std::optional<double> value = figure(sample)) values.push_back(*value);
  }
  return quantiles(values);
}

double fabric_of(const probing::ProbeSample& sample) {
  return static_cast<double>(sample.fabric());
}

Json path_json(const probing::PeerFigures& figures, std::uint16_t path) {
  const probing::PathCounts& counts = figures.paths[path];
  return {{"port", ProbeEnd::kFirstPort + path},
          {"sent", counts.sent},
          {"answered", counts.answered},
          {"lost", counts.lost},
          {"fabric_ns", quantiles_of(figures.samples,
                                     [&](const probing::ProbeSample& s) -> std::optional<double> {
                                       if (s.path != path) return std::nullopt;
                                       return fabric_of(s);
                                     })}};
}

// One-way delays are computed with the clocks as they are known now.
Json peer_json(const wire::IpAddress& address, const probing::PeerFigures& figures, Nanos now) {
  using Sample = probing::ProbeSample;
  using Value = std::optional<double>;
  probing::PathCounts all;
  Json paths = Json::array();
  for (std::size_t i = 0; i < figures.paths.size(); ++i) {
    all.sent += figures.paths[i].sent;
    all.answered += figures.paths[i].answered;
    all.lost += figures.paths[i].lost;
    paths.push_back(path_json(figures, static_cast<std::uint16_t>(i)));
  }
  const auto& clock = figures.clock;
  const auto& samples = figures.samples;
  Json out(
      {{"address", wire::to_text(address)},
       {"sent", all.sent},
       {"answered", all.answered},
       {"lost", all.lost},
       {"fabric_ns", quantiles_of(samples, [](const Sample& s) -> Value { return fabric_of(s); })},
       {"host_ns", quantiles_of(samples, [](const Sample& s) -> Value {
          return static_cast<double>(s.host());
        })}});
  out["there_ns"] = out["back_ns"] = out["offset_ns"] = out["drift_ppb"] = nullptr;
  out["uncertainty_ns"] = nullptr;
  if (clock) {
    out["there_ns"] = quantiles_of(
        samples, [&](const Sample& s) -> Value { return clock->one_way_there(s.times); });
    out["back_ns"] = quantiles_of(
        samples, [&](const Sample& s) -> Value { return clock->one_way_back(s.times); });
    out["offset_ns"] = whole(clock->offset_at(now));
    out["drift_ppb"] = whole(clock->drift * 1e9);
    out["uncertainty_ns"] = whole(clock->least_one_way);
  }
  out["clock_probes"] = clock ? clock->probes : 0;
  out["clock_restarts"] = clock ? clock->restarts : 0;
  out["paths"] = std::move(paths);
  return out;
}

}  // namespace

bool ProbeController::is_of(const ControlClient& client, std::vector<std::string>& errors) const {
  if (!ends_.empty() && client_.number == client.number) return true;
  errors.emplace_back(ends_.empty() ? "nothing is open: probe_open comes first"
                                    : fmt::format("process {} probes", client_.process));
  return false;
}

Json ProbeController::open(const ControlClient& client, const ProbeRequest& request,
                           std::vector<std::string>& errors) {
  if (!ends_.empty()) {
    errors.push_back(fmt::format("process {} probes already", client_.process));
    return {};
  }
  for (const ClockFault& clock : request.clocks) {
    if (!service_.find_nic(clock.nic)) {
      errors.push_back(fmt::format("clocks: there is no NIC {} here", clock.nic));
    }
  }
  if (!errors.empty()) return {};
  client_ = client;
  for (const NicPlace place : service_.nics()) {
    const attach::NicInfo info = service_.nic_info(place);
    ends_.push_back(
        {place, std::string(attach::text_of(info.name)), wire::IpAddress{info.gids[0]}, {}});
  }
  Json nics = Json::array();
  for (std::size_t w = 0; w < service_.workers(); ++w) {
    ServiceWorker& worker = service_.worker(w);
    std::vector<std::unique_ptr<ProbeEnd>> made;
    const auto make = [&](Picos now) {
      const Nanos time_of_day{static_cast<std::int64_t>(unix_nanos())};
      for (const End& end : ends_) {
        if (end.place.worker != w) continue;
        probing::HostClock shown = clock_of(now, time_of_day, end.name, request.clocks);
        shown.changes = changes_of(end.name, now);
        made.push_back(std::make_unique<ProbeEnd>(now, *worker.nics().nic(end.place.nic).engine,
                                                  service_.next_pd(), draw_qkey(), shown));
        nics.push_back({{"name", end.name},
                        {"address", wire::to_text(end.address)},
                        {"qp_number", made.back()->qp_number()},
                        {"qkey", made.back()->qkey()}});
        if (made.back()->qp_number() == 0) errors.push_back(end.name + ": no more queue pairs");
      }
      worker.use_probes(std::move(made));
    };
    if (!worker.call(0, make)) errors.emplace_back("a worker has ended");
  }
  if (!errors.empty()) close();
  return {{"nics", std::move(nics)}};
}

// Faults have times of a steady clock: the worker's differs by what both show now.
std::vector<probing::ClockChange> ProbeController::changes_of(const std::string& nic,
                                                              Picos now) const {
  const Picos behind = now - FaultBook::steady_now();
  const auto of_worker = [&](Picos time) { return time == kNever ? kNever : time + behind; };
  std::vector<probing::ClockChange> out;
  for (const FaultBook::Entry& entry : service_.faults().of_clock(nic)) {
    const config::FaultKindInfo& kind = *config::find_fault_kind(entry.fault.action);
    const double severity = entry.fault.severity.value_or(kind.usual);
    probing::ClockChange& change = out.emplace_back();
    change.at = of_worker(entry.from);
    if (kind.kind == config::FaultKind::clock_jump) {
      change.set_by = Nanos{whole(severity * 1e3)};
    } else {
      change.drift_ppb = whole(severity * 1e3);
    }
    change.steady_at = of_worker(entry.until);
    change.right_at = of_worker(entry.right_at);
  }
  return out;
}

void ProbeController::change_clocks() {
  for (const End& end : ends_) {
    service_.worker(end.place.worker).call(end.place.nic, [&](Picos now) {
      end_of(end).change_clock(changes_of(end.name, now));
    });
  }
}

Json ProbeController::begin(const ControlClient& client, const ProbeRequest& request,
                            std::vector<std::string>& errors) {
  if (!is_of(client, errors)) return {};
  if (begun_) errors.emplace_back("it has begun");
  std::vector<wire::IpAddress> addresses;
  for (const ProbeTarget& peer : request.peers) {
    const auto address = wire::ip_address_from_text(peer.address);
    if (!address) errors.push_back(fmt::format("peers: {}: no address", peer.address));
    addresses.push_back(address.value_or(wire::IpAddress{}));
  }
  if (!errors.empty()) return {};
  begun_ = true;
  const std::size_t pairs = std::max<std::size_t>(ends_.size() * request.peers.size(), 1);
  probing::ProbePlan plan;
  plan.session = request.session;
  plan.paths = static_cast<std::uint16_t>(request.paths);
  plan.kept = static_cast<std::uint32_t>(std::clamp<std::size_t>(kMostSamples / pairs, 16, 512));
  double slowest_us = 0;
  for (std::size_t e = 0; e < ends_.size(); ++e) {
    End& end = ends_[e];
    ServiceWorker& worker = service_.worker(end.place.worker);
    std::vector<probing::ProbePeer> peers;
    // Not all NICs begin with the same peer.
    for (std::size_t i = 0; i < request.peers.size(); ++i) {
      const std::size_t at = (e + i) % request.peers.size();
      const auto path = worker.nics().path_to(end.place.nic, addresses[at]);
      if (!path || addresses[at] == end.address) continue;
      peers.push_back({*path, request.peers[at].qp_number, request.peers[at].qkey});
      end.peers.push_back(addresses[at]);
    }
    const auto link =
        static_cast<double>(worker.nics().nic(end.place.nic).congestion.facts.link_rate.bps);
    const double seconds =
        std::max(1 / (request.rate * static_cast<double>(std::max<std::size_t>(peers.size(), 1))),
                 probing::kProbeBits / (request.share * link));
    slowest_us = std::max(slowest_us, seconds * 1e6);
    plan.number = static_cast<std::uint32_t>(e);
    plan.interval = Picos{std::max<std::int64_t>(whole(seconds * 1e12), 1)};
    worker.call(end.place.nic, [&](Picos now) {
      end_of(end).begin(now, plan, peers, static_cast<std::uint8_t>(request.traffic_class));
    });
  }
  spdlog::info("process {} probes {} NICs from {}", client.process, request.peers.size(),
               ends_.size());
  return {{"interval_us", slowest_us}};
}

// Figures are copied on the worker's thread and evaluated on this one. Both clocks are read several
// times; the answer has the pair of readings that are closest in time.
Json ProbeController::figures_of(const End& end) {
  constexpr std::size_t kReadings = 8;
  std::vector<probing::PeerFigures> figures(end.peers.size());
  Nanos now{};
  Nanos raw{};
  std::int64_t closest = std::numeric_limits<std::int64_t>::max();
  std::uint64_t refused = 0;
  ServiceWorker& worker = service_.worker(end.place.worker);
  for (std::size_t i = 0; i < std::max(figures.size(), kReadings); ++i) {
    worker.call(end.place.nic, [&](Picos at) {
      const ProbeEnd& from = end_of(end);
      const Nanos shown = from.clock().at(at);
      const Nanos system = raw_monotonic_time();
      if ((system - shown).count < closest) {
        closest = (system - shown).count;
        now = shown;
        raw = system;
      }
      refused = from.refused();
      if (i < figures.size()) figures[i] = from.prober()->figures(static_cast<std::uint32_t>(i));
    });
  }
  Json peers = Json::array();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    peers.push_back(peer_json(end.peers[i], figures[i], now));
  }
  return {{"name", end.name},
          {"address", wire::to_text(end.address)},
          {"refused", refused},
          {"clock", {{"now_ns", now.count}, {"raw_ns", raw.count}}},
          {"peers", std::move(peers)}};
}

Json ProbeController::figures(const ControlClient& client, std::vector<std::string>& errors) {
  if (!is_of(client, errors)) return {};
  Json nics = Json::array();
  for (const End& end : ends_) nics.push_back(figures_of(end));
  return {{"nics", std::move(nics)}};
}

void ProbeController::end_all_of(const ControlClient& client) {
  if (!ends_.empty() && client_.number == client.number) close();
}

void ProbeController::close() {
  for (std::size_t w = 0; w < service_.workers(); ++w) {
    ServiceWorker& worker = service_.worker(w);
    const auto drop = [&](Picos) { worker.use_probes({}); };
    if (!worker.call(0, drop)) drop(Picos{0});
  }
  ends_.clear();
  begun_ = false;
}

}  // namespace paceline::service
