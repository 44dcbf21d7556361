// Congestion control of a world changed under way, by its control callback.
#include <numeric>
#include <stdexcept>

#include "dataplane/driver/virtual/virtual_world.h"
#include "dataplane/driver/virtual/world_host.h"

namespace paceline {

void VirtualWorld::reconfigure(const transport::CcSetup& setup, std::uint8_t arm,
                               std::uint8_t epoch) {
  std::vector<std::uint32_t> all(hosts());
  std::iota(all.begin(), all.end(), 0U);
  reconfigure(setup, arm, epoch, all);
}

void VirtualWorld::reconfigure(const transport::CcSetup& setup, std::uint8_t arm,
                               std::uint8_t epoch, std::span<const std::uint32_t> hosts) {
  if (!controlling_) {
    throw std::logic_error("a world is changed only by its control callback");
  }
  for (const std::uint32_t h : hosts) {
    if (h >= hosts_->size()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": allowed is 0 to " +
                                  std::to_string(hosts_->size() - 1));
    }
    const std::string refusal = engine(h).reconfigure_refusal(setup);
    if (!refusal.empty()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": " + refusal);
    }
  }
  for (const std::uint32_t h : hosts) {
    (*hosts_)[h].engine.reconfigure(now_, setup, arm, epoch);
    parts_.front()->schedule_host(h, now_);
  }
}

void VirtualWorld::reconfigure_by_receiver(const std::array<transport::CcSetup, 2>& setups,
                                           std::span<const std::uint8_t> arms, std::uint8_t epoch) {
  if (!controlling_) {
    throw std::logic_error("a world is changed only by its control callback");
  }
  if (arms.size() != hosts_->size()) {
    throw std::invalid_argument("arms of " + std::to_string(arms.size()) + " hosts, there are " +
                                std::to_string(hosts_->size()));
  }
  transport::ArmsByPeer by_peer;
  by_peer.setups = setups;
  by_peer.arm_of[1] = 1;  // a cluster for each arm
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    if (arms[h] == telemetry::kNoCluster) continue;
    by_peer.places.push_back({wire::IpAddress::v4(setup_.fabric.subnet_base + h + 1), arms[h]});
  }
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    const std::string refusal = engine(h).reconfigure_refusal(by_peer);
    if (!refusal.empty()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": " + refusal);
    }
  }
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    by_peer.own_cluster = arms[h];
    (*hosts_)[h].engine.reconfigure(now_, by_peer, epoch);
    parts_.front()->schedule_host(h, now_);
  }
}

transport::CcSetup VirtualWorld::cc_setup(const config::CcConfig& cc) const {
  config::Scenario scenario = scenario_;
  scenario.cc = cc;
  WorldPlan plan = plan_world(scenario);
  if (!plan.error.empty()) throw std::invalid_argument(plan.error);
  return {std::move(plan.engine.primary), std::move(plan.engine.fallback)};
}

}  // namespace paceline
