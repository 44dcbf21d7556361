// Emulates settings of one collective operation and size, each once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/config/scenario.h"
#include "tools/collective/tune/tune_setting.h"
#include "tools/task/run/workers.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::tools {

// The group of ranks on its fabric.
struct TuneGroup {
  config::Scenario scenario;           // of kind "job"
  std::vector<std::uint32_t> nics;     // by rank
  std::vector<std::uint32_t> servers;  // by rank
  workload::GroupShape shape;
};

// One emulation.
struct Trial {
  TuneSetting setting;
  double took_us = 0;     // mean of the counted iterations
  double message_us = 0;  // of the median message
  std::string problem;    // the reason if there is no time
  bool better_than(const Trial& other) const {
    return problem.empty() && (!other.problem.empty() || took_us < other.took_us);
  }
};

class TrialRunner {
 public:
  // Both must outlive this. Results do not depend on which worker executes an emulation.
  TrialRunner(const TuneGroup& group, workload::CollectiveOp op, std::uint64_t bytes,
              std::uint32_t iterations, const Workers& workers, const std::atomic<bool>& stop);

  // Trials in the order of the settings; equivalent settings share one emulation. Fewer than the
  // settings only if `stop` was set.
  std::vector<Trial> run(std::span<const TuneSetting> settings);

  // Settings that would send the same messages on the same queue pairs.
  bool same(const TuneSetting& a, const TuneSetting& b) { return key_of(a) == key_of(b); }
  bool stopped() const { return stop_.load(); }
  std::size_t emulations() const { return known_.size(); }
  // One emulation, and the scenario that it runs.
  Trial emulate(const TuneSetting& setting, const std::atomic<bool>& stop) const;
  config::Scenario scenario_of(const TuneSetting& setting) const;
  workload::CollectiveOp op() const { return op_; }
  const TuneGroup& group() const { return group_; }

 private:
  // Schedule, parts (0: it cannot run), channels in use, parts in flight, queue pairs, and whether
  // source ports are planned.
  using Key =
      std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, bool>;

  Key key_of(const TuneSetting& setting);
  const TuneGroup& group_;
  workload::CollectiveOp op_;
  std::uint64_t bytes_;
  std::uint32_t iterations_;
  Workers workers_;
  const std::atomic<bool>& stop_;
  std::map<std::string, config::Read<workload::Schedule>> schedules_;
  std::map<Key, Trial> known_;
};

}  // namespace paceline::tools
