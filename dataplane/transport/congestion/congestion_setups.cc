// With two arms at a time, the receiving half of the port uses the arm of the port's own cluster:
// senders of any cluster use that arm towards it. There is one uplink, so one arbiter serves all
// contexts: that of the port's own arm if it is proactive, else that of the other arm. Two
// different proactive algorithms would need an arbiter that speaks for both, and are refused.
#include "dataplane/transport/congestion/congestion_setups.h"

#include "cc/dispatch.h"
#include "cc/registry.h"

namespace paceline::transport {

namespace {

std::string wrong_values(const char* which, const CcChoice& choice) {
  const cc::AlgorithmInfo* info = cc::find(choice.algorithm);
  if (info == nullptr) return std::string(which) + ": no such algorithm";
  if (choice.values.size() == info->params.size()) return {};
  return std::string(which) + ": " + std::string(info->name) + " has " +
         std::to_string(info->params.size()) + " parameters, given are " +
         std::to_string(choice.values.size());
}

}  // namespace

CongestionSetups::CongestionSetups(EngineCore& core, PluginWatch& watch)
    : core_(core), watch_(watch), setup_{core.config.primary, core.config.fallback} {
  take_values(setup_, core_.params);
  proactive_ = grants_ = is_proactive(setup_.primary.algorithm);
}

bool CongestionSetups::is_proactive(cc::AlgorithmId id) {
  const cc::AlgorithmInfo* info = cc::find(id);
  return info != nullptr && info->proactive;
}

bool CongestionSetups::has_channels(cc::AlgorithmId id) {
  return cc::find(id)->key == cc::ContextKey::per_peer_class;
}

std::string CongestionSetups::refusal(const CcSetup& setup) const {
  if (std::string wrong = wrong_values("primary", setup.primary); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_values("fallback", setup.fallback); !wrong.empty()) return wrong;
  if (is_proactive(setup.fallback.algorithm)) return "fallback: must be a reactive algorithm";
  if (cc::is_plugin(setup.fallback.algorithm)) return "fallback: must be a built-in algorithm";
  return {};
}

std::string CongestionSetups::refusal(const ArmsByPeer& arms) const {
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
           " cannot share the uplink: two different proactive "
           "algorithms would each need an arbiter of their own";
  }
  for (const ArmsByPeer::Place& place : arms.places) {
    if (place.cluster >= telemetry::kMostClusters) {
      return "cluster " + std::to_string(place.cluster) + " of " +
             std::to_string(telemetry::kMostClusters) + " at most";
    }
  }
  return {};
}

CongestionSetups::Before CongestionSetups::before() const {
  return {proactive_, grants_, own().primary.algorithm, on(governing_arm()).primary.algorithm};
}

CongestionSetups::Before CongestionSetups::install(const CcSetup& setup, std::uint8_t arm,
                                                   std::uint8_t epoch) {
  const Before replaced = before();
  setup_ = setup;
  if (second_ != nullptr) {
    second_->in_force = false;
    second_->clusters.clear();
  }
  own_arm_ = 0;
  arm_ = arm;
  epoch_ = epoch;
  take_values(setup_, core_.params);
  begin_generation();
  return replaced;
}

CongestionSetups::Before CongestionSetups::install(const ArmsByPeer& arms, std::uint8_t epoch) {
  const Before replaced = before();
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
  begin_generation();
  return replaced;
}

void CongestionSetups::begin_generation() {
  ++generation_;
  for (std::uint32_t i = 0; second_ != nullptr && i < core_.peers.size(); ++i) {
    place(core_.peers[i]);
  }
  grants_ = is_proactive(own().primary.algorithm);
  proactive_ = is_proactive(on(governing_arm()).primary.algorithm);
}

// The values of the primary algorithm go last: where the fallback is the same algorithm, it is not
// used.
void CongestionSetups::take_values(const CcSetup& setup, ParamTable& into) {
  for (const CcChoice* choice : {&setup.fallback, &setup.primary}) {
    cc::ParamBlock params = cc::make_param_block(choice->algorithm, choice->values, core_.facts);
    watch_.watch(params, core_.config.plugin_clock);
    into.put(params, core_.config.params);
  }
  if (watch_.any()) core_.control_active = true;
}

std::uint8_t CongestionSetups::governing_arm() const {
  if (second_ == nullptr || !second_->in_force) return 0;
  if (is_proactive(on(own_arm_).primary.algorithm)) return own_arm_;
  const auto other = static_cast<std::uint8_t>(1 - own_arm_);
  return is_proactive(on(other).primary.algorithm) ? other : own_arm_;
}

void CongestionSetups::place(Peer& peer) const {
  if (second_ == nullptr) return;
  peer.cluster = second_->in_force ? second_->clusters.find(peer.ip) : telemetry::kNoCluster;
  peer.setup_slot =
      peer.cluster < second_->arm_of.size() ? second_->arm_of[peer.cluster] : std::uint8_t{0};
}

}  // namespace paceline::transport
