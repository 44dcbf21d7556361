// The search for the setting of one collective operation and size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/collective/tune/trial_runner.h"

namespace paceline::tools {

struct SearchLimits {
  std::uint32_t evaluations = 48;  // most emulations of a cell
  double least_gain = 0.005;       // of a step that is taken
  std::uint32_t kept = 3;          // schedules that are emulated
  // A schedule that begins with more than this times the time of the best is not searched on.
  double contender = 1.5;
};

struct CellResult {
  Trial standard;  // the operation's default schedule by the settings of the scenario
  Trial best;
  std::vector<Trial> kept;  // where schedules began
  std::size_t evaluations = 0;
};

class CellSearch {
 public:
  // `runner` must outlive this. progress: evaluations so far.
  CellSearch(TrialRunner& runner, const TuneSpace& space, const SearchLimits& limits,
             std::function<void(std::size_t)> progress)
      : runner_(runner), space_(space), limits_(limits), progress_(std::move(progress)) {}

  // ranked: a setting of each schedule, in the order in which a model expects them to be fast.
  // start: where else to begin. A second search by the same runner reuses what the first has
  // emulated.
  // Nothing once the runner is stopped.
  std::optional<CellResult> run(const std::vector<TuneSetting>& ranked,
                                const std::optional<TuneSetting>& start);

 private:
  // `grain`: smaller chunks and more of them in flight, or the reverse. `split`: smaller chunks on
  // more channels, or the reverse.
  enum class Axis : std::uint8_t { chunk, channels, window, queue_pairs, grain, split };

  std::optional<std::vector<Trial>> emulate(std::vector<TuneSetting> settings);
  // Takes a better setting along one axis as long as there is one. Whether there was.
  bool walk(Trial& at, Axis axis);
  void descend(Trial& at);
  // The nearest setting that makes a difference.
  std::optional<TuneSetting> neighbour(const TuneSetting& at, Axis axis, bool up);
  // The next value of the axis, whether or not it makes a difference.
  bool advance(TuneSetting& setting, Axis axis, bool up) const;
  std::size_t left() const;

  TrialRunner& runner_;
  const TuneSpace& space_;
  SearchLimits limits_;
  std::function<void(std::size_t)> progress_;
};

}  // namespace paceline::tools
