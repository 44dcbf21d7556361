// Trials of a candidate against the champion: by name, by NIC, and how long each is held. Pure.
//
// Time is milliseconds since the start of the service, as tick() was told; it is as fine as ticks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/service/congestion/cc_change.h"
#include "dataplane/service/congestion/guard_judge.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::service {

struct Trial {
  std::string name;
  std::vector<std::size_t> nics;
  // Two arms at a time, each for the ports of its clusters: the NICs of each cluster, which
  // together are `nics`; and the arms in force. Empty: the trial's NICs have one arm at a time.
  std::vector<std::vector<std::size_t>> clusters;
  std::vector<std::uint8_t> arms;
  std::vector<CcArm> champions;  // by place in `nics`
  std::vector<CcArm> candidates;
  GuardLimits limits{};
  std::uint32_t hold_ms = 0;
  std::uint64_t renewed_ms = 0;
  std::uint8_t arm = 0;  // with clusters: 1 while any of them has arm 1
  std::uint8_t epoch = 0;
  TrialState state = TrialState::running;
  std::string why;
};

class TrialTable {
 public:
  static constexpr std::size_t kMostTrials = 32;

  const std::list<Trial>& all() const { return trials_; }
  // Null: there is none.
  const Trial* find(std::string_view name) const;
  Trial* find(std::string_view name);
  // The trial that runs on a NIC.
  const Trial* running_on(std::size_t nic) const;
  Trial* running_on(std::size_t nic);

  // Why no trial of this name can be added.
  std::vector<std::string> refusals(const std::string& name) const;
  // Its hold begins.
  void add(Trial trial);
  void remove(const Trial& trial);
  void renew(Trial& trial) const { trial.renewed_ms = now_ms_; }
  void end(Trial& trial, TrialState state, std::string why) const;

  void tick(std::uint64_t now_ms) { now_ms_ = now_ms; }
  std::uint64_t remaining_ms(const Trial& trial) const;
  // Running trials that were not renewed in time.
  std::vector<Trial*> expired();

 private:
  std::list<Trial> trials_;
  std::uint64_t now_ms_ = 0;
};

}  // namespace paceline::service
