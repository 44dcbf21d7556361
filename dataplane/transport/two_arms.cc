// Two arms at a time (arms.h): whose context has which, and what the port's own halves follow.
//
// The receiving half is of the port's own cluster: senders of any cluster use towards it the arm
// that it has itself. The governor of the uplink is one for all contexts, since the uplink is: that
// of the port's own arm where it is proactive, else that of the other one. Two proactive algorithms
// at a time would need a governor that speaks for both, and are refused.
#include <memory>
#include <string>

#include "cc/registry.h"
#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/engine.h"

namespace paceline::transport {

std::string ControlPlane::refusal(const ArmsByPeer& arms) const {
  bool proactive[2] = {false, false};
  for (std::size_t arm = 0; arm < arms.setups.size(); ++arm) {
    const CcSetup& setup = arms.setups[arm];
    if (std::string wrong = refusal(setup); !wrong.empty()) {
      return "arm " + std::to_string(arm) + ": " + wrong;
    }
    proactive[arm] = is_proactive(setup.primary.algorithm);
  }
  const auto name = [&](std::size_t arm) {
    return std::string(cc::find(arms.setups[arm].primary.algorithm)->name);
  };
  if (proactive[0] && proactive[1] && name(0) != name(1)) {
    return name(0) + " and " + name(1) +
           " cannot share the uplink at a time: of two proactive "
           "algorithms each has a governor of its own";
  }
  for (const ArmsByPeer::Place& place : arms.places) {
    if (place.cluster >= telemetry::kMostClusters) {
      return "cluster " + std::to_string(place.cluster) + " of " +
             std::to_string(telemetry::kMostClusters) + " at most";
    }
  }
  return {};
}

void ControlPlane::reconfigure(const ArmsByPeer& arms, std::uint8_t epoch) {
  const Before before = before_change();
  if (second_ == nullptr) second_ = std::make_unique<SecondArm>();
  if (core_.second_params == nullptr) core_.second_params = std::make_unique<ParamTable>();
  if (core_.packets_to == nullptr) core_.packets_to = std::make_unique<EngineCore::ByCluster>();
  setup_ = arms.setups[0];
  second_->setup = arms.setups[1];
  second_->arm_of = arms.arm_of;
  second_->clusters.set(arms.places);
  second_->in_force = true;
  own_arm_ = arms.own_arm();
  epoch_ = epoch;
  take_values(setup_, core_.params);
  take_values(second_->setup, *core_.second_params);
  begin_change(before);
}

// Whose governor the uplink has.
std::uint8_t ControlPlane::governing_arm() const {
  if (second_ == nullptr || !second_->in_force) return 0;
  if (is_proactive(setup_on(own_arm_).primary.algorithm)) return own_arm_;
  const auto other = static_cast<std::uint8_t>(1 - own_arm_);
  return is_proactive(setup_on(other).primary.algorithm) ? other : own_arm_;
}

void ControlPlane::place(Peer& peer) const {
  if (second_ == nullptr) return;
  peer.cluster = second_->in_force ? second_->clusters.find(peer.ip) : telemetry::kNoCluster;
  peer.arm =
      peer.cluster < second_->arm_of.size() ? second_->arm_of[peer.cluster] : std::uint8_t{0};
}

void EngineCore::count_by_cluster(std::uint32_t peer, std::uint64_t ClusterPackets::*which) {
  const std::uint8_t cluster = peers[peer].cluster;
  if (cluster < packets_to->size()) ++((*packets_to)[cluster].*which);
}

std::uint8_t Engine::cluster_of(std::uint32_t qp_number, std::uint32_t address_handle) const {
  EngineCore& core = const_cast<EngineCore&>(core_);
  const QueuePair* const qp = core.find_qp(qp_number);
  if (qp == nullptr) return telemetry::kNoCluster;
  std::uint32_t peer = qp->peer;
  if (qp->config.type == QpType::ud) {
    const AddressHandle* const handle = core.handles.find(address_handle);
    peer = handle == nullptr ? kNoIndex : handle->peer;
  }
  return peer == kNoIndex ? telemetry::kNoCluster : core_.peers[peer].cluster;
}

std::uint64_t Engine::sent_to(std::size_t cluster) const {
  return core_.packets_to == nullptr ? 0 : (*core_.packets_to)[cluster].sent;
}

std::uint64_t Engine::retransmitted_to(std::size_t cluster) const {
  return core_.packets_to == nullptr ? 0 : (*core_.packets_to)[cluster].again;
}

}  // namespace paceline::transport
