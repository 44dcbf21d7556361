#include "tools/collective/tune/cell_search.h"

#include <algorithm>
#include <array>
#include <utility>

namespace paceline::tools {

namespace {

// The first of the fastest.
const Trial& fastest(const std::vector<Trial>& trials) {
  const Trial* best = &trials.front();
  for (const Trial& trial : trials) {
    if (trial.better_than(*best)) best = &trial;
  }
  return *best;
}

}  // namespace

std::size_t CellSearch::left() const {
  return limits_.evaluations - std::min<std::size_t>(limits_.evaluations, runner_.emulations());
}

std::optional<std::vector<Trial>> CellSearch::emulate(std::vector<TuneSetting> settings) {
  std::vector<Trial> trials = runner_.run(settings);
  if (trials.size() != settings.size()) return std::nullopt;
  progress_(runner_.emulations());
  return trials;
}

// The nearest value of the axis that makes a difference.
std::optional<TuneSetting> CellSearch::neighbour(const TuneSetting& at, Axis axis,
                                                 const std::vector<std::uint32_t>& values,
                                                 bool up) {
  TuneSetting next = at;
  const auto other = [&](std::uint32_t value) {
    next.*axis = value;
    return !runner_.same(next, at);
  };
  if (up) {
    const auto from = std::upper_bound(values.begin(), values.end(), at.*axis);
    if (std::find_if(from, values.end(), other) == values.end()) return std::nullopt;
  } else {
    const auto from =
        std::make_reverse_iterator(std::lower_bound(values.begin(), values.end(), at.*axis));
    if (std::find_if(from, values.rend(), other) == values.rend()) return std::nullopt;
  }
  return next;
}

bool CellSearch::walk(Trial& at, Axis axis, Values values) {
  bool moved = false;
  bool up = true;
  bool down = true;
  while (up || down) {
    std::vector<TuneSetting> next;
    for (const bool upwards : {true, false}) {
      if (!(upwards ? up : down)) continue;
      auto found = neighbour(at.setting, axis, space_.*values, upwards);
      if (found) next.push_back(std::move(*found));
    }
    while (!next.empty() && left() < next.size()) next.pop_back();
    if (next.empty()) return moved;
    const auto trials = emulate(std::move(next));
    if (!trials) return moved;
    const Trial& best = fastest(*trials);
    if (!best.problem.empty() || best.took_us > at.took_us * (1 - limits_.least_gain)) return moved;
    up = best.setting.*axis > at.setting.*axis;
    down = !up;
    at = best;
    moved = true;
  }
  return moved;
}

void CellSearch::descend(Trial& at) {
  constexpr std::array<std::pair<Axis, Values>, 4> kAxes{{
      {&TuneSetting::chunk_bytes, &TuneSpace::chunks},
      {&TuneSetting::channels, &TuneSpace::channels},
      {&TuneSetting::window, &TuneSpace::windows},
      {&TuneSetting::queue_pairs, &TuneSpace::queue_pairs},
  }};
  // Until every axis has been walked since the last step that was taken.
  std::size_t since = 0;
  for (std::size_t i = 0; since < kAxes.size() && left() > 0; i = (i + 1) % kAxes.size()) {
    since = walk(at, kAxes[i].first, kAxes[i].second) ? 1 : since + 1;
  }
}

std::optional<CellResult> CellSearch::run(const std::vector<std::string>& ranked,
                                          const std::optional<TuneSetting>& start) {
  const config::JobConfig& job = runner_.group().scenario.workload.job;
  const std::string standard(workload::schedule_names(runner_.op()).front());
  std::vector<TuneSetting> first{setting_of(job, standard)};
  for (std::size_t i = 0; i < std::min<std::size_t>(limits_.kept, ranked.size()); ++i) {
    if (ranked[i] != standard) first.push_back(setting_of(job, ranked[i]));
  }
  const std::size_t schedules = first.size();
  if (start) first.push_back(*start);
  const auto begun = emulate(std::move(first));
  if (!begun) return std::nullopt;
  CellResult result;
  result.standard = begun->front();
  result.kept.assign(begun->begin(), begun->begin() + static_cast<std::ptrdiff_t>(schedules));
  result.best = fastest(*begun);
  std::vector<Trial> roots{result.best};
  for (const Trial& trial : *begun) {
    const bool near = trial.took_us <= result.best.took_us * limits_.contender;
    if (trial.problem.empty() && near && trial.setting.schedule != result.best.setting.schedule) {
      roots.push_back(trial);
    }
  }
  std::stable_sort(roots.begin() + 1, roots.end(),
                   [](const Trial& a, const Trial& b) { return a.better_than(b); });
  for (Trial& root : roots) {
    if (root.problem.empty()) descend(root);
    if (root.better_than(result.best)) result.best = root;
  }
  result.evaluations = runner_.emulations();
  if (runner_.stopped()) return std::nullopt;
  return result;
}

}  // namespace paceline::tools
