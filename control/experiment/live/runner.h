// Runs an experiment, block by block: decides what to do next from what was reported. It knows no
// clock, no socket and no engine. Its driver (the daemon, or a plant in virtual time) calls
// next(now), does what it returns, reports, and calls again; next() gives the same answer until the
// report comes.
//
//   use_arms  put the arms in force, every cluster its own, with the epoch     -> armed(now)
//   wait      nothing before until_ns (renew the trial's hold meanwhile)       -> ask again then
//   sample    what every NIC has counted                                       -> sampled(...)
//   record    append the lines to blocks.jsonl, durably                        -> recorded()
//   pause     the champion everywhere until the environment is well again      -> environment(...)
//   conclude  end the trial, keeping the champion: a verdict changes nothing   -> concluded()
//   done      nothing more
//
// Trouble. A guard's trip ends the experiment (the service has already gone back to the champion).
// An environment in trouble, missing telemetry, or a sample that is not of the block's arm discards
// the pair: the current half and the other one. Pairs are not repeated, since the schedule is what
// was registered.
//
// After a crash of the driver: make a Runner from the stored records. A pair with one recorded
// block is discarded; a block without a record starts again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/live/analysis/analysis.h"

namespace paceline::experiment::live {

struct Action {
  enum class Kind : std::uint8_t { use_arms, wait, sample, record, pause, conclude, done };
  Kind kind = Kind::done;
  std::uint32_t block = 0;
  std::uint8_t epoch = 0;            // use_arms, pause
  std::vector<std::uint8_t> arms;    // use_arms, pause: by cluster
  std::uint64_t until_ns = 0;        // wait
  std::vector<BlockRecord> records;  // record
  std::string why;                   // pause, conclude
};
std::string_view to_text(Action::Kind kind);

class Runner {
 public:
  // `schedule` must be of `plan`. `stored`: what blocks.jsonl holds, empty at first. `calibrated`:
  // there is a calibrated A/A run of the same design.
  Runner(Plan plan, Schedule schedule, std::vector<BlockRecord> stored, bool calibrated);

  // For a plan with `begin`; call it at any time. Sets when the first block begins, on the clock of
  // `now_ns`. Block b begins b times (block + gap) later. A pair that starts late is discarded.
  void align(std::int64_t first_ns) { first_ns_ = first_ns; }

  // now_ns never runs backwards.
  Action next(std::uint64_t now_ns);

  void armed(std::uint64_t now_ns);
  void refused(const std::string& why);  // the arms could not be put in force: ends it

  // One entry per cluster, in the plan's order; `missing`: share of the samples due since the last
  // edge that did not come.
  struct EdgeSample {
    std::vector<NicSample> nics;
    double missing = 0;
    std::vector<std::pair<BlockMetric, double>> measured;  // by others, over the block
  };
  void sampled(std::vector<EdgeSample> samples);
  void recorded();
  void concluded();

  // At any time.
  void guard_tripped(const std::string& why);
  void environment(bool well, const std::string& why);
  void stop(const std::string& why);
  // Circumstances::host_late, so far.
  void host_late(double share) { circumstances_.host_late = share; }

  const std::vector<BlockRecord>& records() const { return records_; }
  const Plan& plan() const { return plan_; }
  const Schedule& schedule() const { return schedule_; }
  // The full analysis, as of now.
  LiveAnalysis analysis(const AnalysisOptions& options = {}) const;
  bool over() const { return state_ == State::done; }
  const Circumstances& circumstances() const { return circumstances_; }

 private:
  enum class State : std::uint8_t {
    begin,    // of block_: arms to be put in force
    washing,  // until washed_ns_
    first_edge,
    measuring,  // until end_ns_
    last_edge,
    recording,  // pending_ to be stored
    paused,
    concluding,
    done,
  };

  // Between two aligned blocks, for edges, files and arms: a twentieth of a block, 1 s at most.
  std::uint64_t gap_ns() const;
  // When block_ begins; of aligned blocks only.
  std::int64_t start_ns() const;
  std::uint32_t clusters() const { return schedule_.mechanism.clusters; }
  Action arms_action(Action::Kind kind) const;
  void resume();
  void discard(const std::string& why);  // the pair of block_
  void finish_block(std::vector<EdgeSample> samples);
  void look();  // after a pair
  void end(const std::string& why);

  Plan plan_;
  Schedule schedule_;
  std::vector<BlockRecord> records_;
  Circumstances circumstances_;
  std::optional<std::int64_t> first_ns_;  // see align()
  State state_ = State::begin;
  std::uint32_t block_ = 0;
  std::uint32_t next_block_ = 0;  // once pending_ is stored
  std::uint64_t washed_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::vector<EdgeSample> first_;
  std::vector<BlockRecord> pending_;
  std::string trouble_;  // of the environment; empty: well
  std::string why_;      // of the end
};

}  // namespace paceline::experiment::live
