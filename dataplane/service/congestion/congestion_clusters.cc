// Trials with clusters: two arms in force at a time, each for data that goes to its clusters'
// ports.
#include <fmt/format.h>

#include <algorithm>

#include "dataplane/service/congestion/congestion_desk.h"

namespace paceline::service {

namespace {

constexpr std::uint8_t kOutside = telemetry::kNoCluster;

std::uint8_t cluster_of_nic(const Trial& trial, std::size_t nic) {
  for (std::size_t c = 0; c < trial.clusters.size(); ++c) {
    const std::vector<std::size_t>& of = trial.clusters[c];
    if (std::find(of.begin(), of.end(), nic) != of.end()) return static_cast<std::uint8_t>(c);
  }
  return kOutside;
}

std::vector<wire::IpAddress> addresses_of(const attach::NicInfo& info) {
  std::vector<wire::IpAddress> out;
  for (std::size_t g = 0; g < info.gids.size(); ++g) {
    if (info.gid_kinds[g] != attach::GidKind::none) out.push_back({info.gids[g]});
  }
  return out;
}

}  // namespace

void CongestionDesk::pick_clusters(const ControlRequest& request, Trial& trial,
                                   std::vector<std::string>& errors) const {
  for (const std::vector<std::string>& names : request.clusters) {
    trial.clusters.push_back(pick(names, errors));
    const std::vector<std::size_t>& cluster = trial.clusters.back();
    trial.nics.insert(trial.nics.end(), cluster.begin(), cluster.end());
  }
  trial.arms.assign(trial.clusters.size(), 0);
  // Receivers are told by their addresses: workers that know nothing of each other may have some
  // twice.
  std::vector<std::pair<wire::IpAddress, std::size_t>> all;
  for (const std::size_t n : trial.nics) {
    const NicPlace& place = nics_[n].place;
    for (const wire::IpAddress& address :
         addresses_of(service_.worker(place.worker).nics().nic(place.nic).info)) {
      all.emplace_back(address, n);
    }
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!(all[i].first == all[i - 1].first)) continue;
    errors.push_back(
        fmt::format("clusters: {} and {} have the same address, so that senders "
                    "cannot tell one from the other",
                    nics_[all[i - 1].second].name, nics_[all[i].second].name));
  }
}

// By place in trial.nics.
std::vector<transport::ArmsByPeer> CongestionDesk::arms_by_peer(
    const Trial& trial, const std::vector<std::uint8_t>& arms) const {
  transport::ArmsByPeer common;
  std::copy(arms.begin(), arms.end(), common.arm_of.begin());
  for (const std::size_t n : trial.nics) {
    const NicPlace& place = nics_[n].place;
    for (const wire::IpAddress& address :
         addresses_of(service_.worker(place.worker).nics().nic(place.nic).info)) {
      common.places.push_back({address, cluster_of_nic(trial, n)});
    }
  }
  std::vector<transport::ArmsByPeer> out;
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    out.push_back(common);
    out.back().setups = {trial.champions[i].setup, trial.candidates[i].setup};
    out.back().own_cluster = cluster_of_nic(trial, trial.nics[i]);
  }
  return out;
}

// Whether the engines take both arms at a time: said before the first block, not in it.
std::vector<std::string> CongestionDesk::refusals_of(const Trial& trial) {
  std::vector<std::string> errors;
  const std::vector<transport::ArmsByPeer> by_peer = arms_by_peer(trial, trial.arms);
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const Nic& nic = nics_[trial.nics[i]];
    ServiceWorker& worker = service_.worker(nic.place.worker);
    std::string why;
    const bool ran = worker.call(nic.place.nic, [&](Picos) {
      why = worker.nics().nic(nic.place.nic).engine->reconfigure_refusal(by_peer[i]);
    });
    if (!ran) why = worker.name() + " has ended";
    if (!why.empty()) errors.push_back(nic.name + ": " + why);
  }
  return errors;
}

NicInForce CongestionDesk::in_force_after(const Change& change) const {
  NicInForce out{nics_[change.nic].in_force.generation + 1, change.arm->setup.primary.algorithm,
                 change.number, change.epoch};
  if (change.by_peer == nullptr) return out;
  out.clusters = change.clusters;
  out.own_cluster = change.by_peer->own_cluster;
  out.arm_of = change.by_peer->arm_of;
  return out;
}

CongestionDesk::Outcome CongestionDesk::use_arms(Trial& trial, const ControlRequest& request) {
  Outcome out;
  if (request.arms.size() != trial.clusters.size()) {
    out.errors.push_back(
        request.arms.empty()
            ? fmt::format("the trial \"{}\" has {} clusters: arms is needed, an arm for each",
                          trial.name, trial.clusters.size())
            : fmt::format("arms: {} of them, the trial \"{}\" has {} clusters", request.arms.size(),
                          trial.name, trial.clusters.size()));
    return out;
  }
  const std::vector<transport::ArmsByPeer> by_peer = arms_by_peer(trial, request.arms);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const std::uint8_t own = by_peer[i].own_arm();
    changes.push_back({trial.nics[i], own == 0 ? &trial.champions[i] : &trial.candidates[i], own,
                       request.epoch, &by_peer[i],
                       static_cast<std::uint8_t>(trial.clusters.size())});
  }
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  trial.arms = request.arms;
  trial.arm = *std::max_element(trial.arms.begin(), trial.arms.end());
  trial.epoch = request.epoch;
  if (request.renew) trial.renewed_ms = now_ms_;
  for (const std::size_t n : trial.nics) {
    out.nics.push_back({n, nics_[n].in_force.generation, true});
  }
  return out;
}

}  // namespace paceline::service
