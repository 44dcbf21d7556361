// The plan of a live experiment: what is compared, where, in which blocks, and by which criteria.
// It is written before the first block and not changed afterwards; the schedule drawn from it is
// registered under one digest with it (schedule.h).
//
// Units: time in picoseconds (as everywhere), shares of one (0.05 is 5 %).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/live/blocks/block_metrics.h"
#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"

namespace paceline::experiment::live {

// The unit that is randomised. Units that are in different arms at the same time must not share
// queues: their difference would not be the effect of replacing one arm by the other everywhere.
enum class Design : std::uint8_t {
  switchback,      // all NICs together: blocks of time
  receiver_ports,  // groups of NICs; a channel has the arm of its receiver's port
  paired_rails,    // two groups that share nothing, crossed over in every pair
};
std::string_view to_text(Design design);  // as in the file

struct Cluster {
  std::string name;
  std::vector<std::string> nics;  // empty (switchback only): all there are
  std::uint32_t line = 0;         // of the file, for messages; 0: not written there
};
// The most that a service can tell apart (telemetry::kMostClusters).
inline constexpr std::size_t kMostReceiverClusters = 16;

// Time scales of effects that outlive a block. They determine wash-out and block length by default.
struct Timing {
  Picos fct_p999{0};  // of the slowest ordinary messages, measured
  Picos lease = picos_from_micros(172);
  Picos iteration{0};  // of the application; 0: it has none
  Picos rtt = picos_from_micros(20);
};

// max(5 fct_p999, 3 lease, 1 iteration, 10 RTT).
Picos washout_for(const Timing& timing);
// The shortest block that holds 30 iterations and whose wash-out is at most a tenth of it.
Picos block_for(Picos washout, const Timing& timing);

// Hard limits: the service judges them itself, every 100 ms, and goes back without asking.
struct HardLimits {
  double retransmitted_share = 1e-6;
  std::uint64_t retransmitted_packets = 10;
  double pause_share = 0.01;
  double stall_ms = 1;
  std::uint64_t drops_packets = 0;
};

// Soft limits: judged after every pair, one-sided at `alpha` by the always-valid bounds.
struct SoftLimit {
  BlockMetric metric = BlockMetric::goodput;
  double worse_by = 0.05;  // share, or (of metrics compared by difference) absolute
};

struct Plan {
  std::uint32_t schema = 1;
  std::string name = "experiment";
  Design design = Design::switchback;
  std::uint64_t seed = 1;
  std::vector<config::Arm> arms;  // two; the first is the champion
  std::vector<Cluster> clusters;  // switchback: one

  Timing timing;
  Picos block{0};
  Picos washout{0};
  // When the first block begins, nanoseconds since 1970; the others follow at fixed distances
  // (Runner::align). Hosts with the same plan switch together. 0: the first begins when asked.
  std::int64_t begin_unix_ns = 0;
  // Blocks that an arm's traces outlast. 0: none, and pairs AB or BA are drawn. m > 0: the design
  // of Bojinov, Simchi-Levi and Zhao, judged once, at its end.
  std::uint32_t carryover_blocks = 0;
  Picos stratum =
      picos_from_micros(3'600'000'000);  // AB and BA are balanced within; 0: coins throughout
  std::uint32_t whole_every = 4;  // with clusters, every n-th pair has all in one arm; 0: never

  std::uint32_t pairs_min = 12;
  std::uint32_t pairs_max = 120;
  double alpha = 0.05;
  double minimum_effect = 0.05;  // what would matter; within it the search is futile
  double power = 0.8;
  double expected_sd = 0;  // of log differences of pairs, from an A/A run; 0: not known

  BlockMetric primary = BlockMetric::log_slowdown;
  std::vector<BlockMetric> metrics;  // secondary and exploratory, primary and guards not among them
  std::vector<BlockMetric> placebos;
  std::vector<double> load_strata{0.5, 0.8};
  bool closed_loop = false;  // the offered load depends on the arm: its balance is only reported
  bool cuped = true;

  HardLimits hard;
  double soft_alpha = 0.01;
  std::vector<SoftLimit> soft;
  double telemetry_loss = 0.05;  // share of samples; beyond it a pair is discarded
  Picos hold{0};                 // of the trial; default: two blocks

  // For arms that are plug-ins: their code. Covered by the digest.
  struct Plugin {
    std::string name;
    std::string sha256;
  };
  std::vector<Plugin> plugins;

  // A calibrated A/A run of the same design, or the reason for doing without.
  std::string calibration;     // name of the A/A's results
  std::string no_calibration;  // the reason
};

// The guards of section "soft" when none are given: goodput -5 %, p99 of short messages +20 %,
// completed share -1 point, fairness -0.1, cost per packet +15 %, collective time +10 %.
std::vector<SoftLimit> default_soft_limits();

// True where both arms are the same configuration: an A/A experiment, which calibrates.
bool is_null_experiment(const Plan& plan);

// The plan as JSON on several lines, in a fixed order, complete: what the digest covers.
std::string plan_text(const Plan& plan);

}  // namespace paceline::experiment::live
