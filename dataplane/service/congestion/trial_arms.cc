#include "dataplane/service/congestion/trial_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::service {

namespace {

std::uint8_t cluster_of_nic(const Trial& trial, std::size_t nic) {
  for (std::size_t c = 0; c < trial.clusters.size(); ++c) {
    const std::vector<std::size_t>& of = trial.clusters[c];
    if (std::find(of.begin(), of.end(), nic) != of.end()) return static_cast<std::uint8_t>(c);
  }
  return telemetry::kNoCluster;
}

}  // namespace

void check_addresses(const Trial& trial, const Champions& champions,
                     std::vector<std::string>& errors) {
  std::vector<std::pair<wire::IpAddress, std::size_t>> all;
  for (const std::size_t n : trial.nics) {
    for (const wire::IpAddress& address : champions.addresses(n)) all.emplace_back(address, n);
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!(all[i].first == all[i - 1].first)) continue;
    errors.push_back(
        fmt::format("clusters: {} and {} have the same address, so that senders "
                    "cannot tell one from the other",
                    champions.nic(all[i - 1].second).name, champions.nic(all[i].second).name));
  }
}

std::vector<transport::ArmsByPeer> arms_by_peer(const Trial& trial,
                                                const std::vector<std::uint8_t>& arms,
                                                const Champions& champions) {
  transport::ArmsByPeer common;
  std::copy(arms.begin(), arms.end(), common.arm_of.begin());
  for (const std::size_t n : trial.nics) {
    for (const wire::IpAddress& address : champions.addresses(n)) {
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

}  // namespace paceline::service
