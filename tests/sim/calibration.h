// What the calibration tests share: scenarios and reference data from files, runs, and the rule by
// which a value of ours is held against the reference's.
//
// Public simulator: github.com/alibaba-edu/High-Precision-Congestion-Control at 9f4be2a; data in
// tests/sim/reference, discussion in docs/fidelity.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::calibration {

// Its clock counts whole nanoseconds: a full packet of 1048 B takes 83 of them where 100 Gb/s are
// 83.84. What the bottleneck's rate determines takes longer here by this factor.
inline constexpr double kClockCorrection = 83.84 / 83;

// configs/scenarios/calibration/NAME.toml under a profile of DCQCN.
config::Scenario scenario(const std::string& name, const std::string& profile);

// tests/sim/reference/NAME: columns src,dst,size_bytes,start_ns; sorted as plans are.
MessagePlan reference_flows(const std::string& name);
// The flow list that the scenario names.
MessagePlan scenario_flows(const config::Scenario& scenario);
// Two lists of the same flows at the same times.
bool same_flows(const MessagePlan& a, const MessagePlan& b);

// 16-to-1 incast of 1 MB with starts uniform in whole ns below 1 us: the reference's draws 0..4,
// and draws of our own from 5 on.
MessagePlan jittered_incast(std::uint32_t draw);

struct Incast {
  double fct_mean_us = 0;
  double last_us = 0;
  double max_queue_bytes = 0;
  double marked_acks = 0;
};

// Runs to the end with invariants checked; anything but a clean end is a test failure.
Incast run_incast(const config::Scenario& scenario, const MessagePlan& plan);
Incast mean(const std::vector<Incast>& runs);

// Mean and spread of the reference over ten jittered draws, times corrected for the clock.
struct Band {
  double mean = 0;
  double sd = 0;
  // 10 % covers what two programs may differ in, 3 sd what another ten draws may.
  double tolerance() const;
};
struct IncastBand {
  Band fct_mean_us, last_us, max_queue_bytes, marked_acks;
};
IncastBand reference_band(const std::string& cc);

// CHECKs that every figure lies within its tolerance.
void check_within(const Incast& ours, const IncastBand& reference);

std::string reference_path(const std::string& name);

}  // namespace paceline::calibration
