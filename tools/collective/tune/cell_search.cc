#include "tools/collective/tune/cell_search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace paceline::tools {

namespace {

// The first of the fastest trials.
const Trial& fastest(const std::vector<Trial>& trials) {
  const Trial* best = &trials.front();
  for (const Trial& trial : trials) {
    if (trial.better_than(*best)) best = &trial;
  }
  return *best;
}

// Whether there was one.
bool take_next(std::uint32_t& value, const std::vector<std::uint32_t>& values, bool up) {
  if (up) {
    const auto next = std::upper_bound(values.begin(), values.end(), value);
    if (next == values.end()) return false;
    value = *next;
  } else {
    const auto from = std::lower_bound(values.begin(), values.end(), value);
    if (from == values.begin()) return false;
    value = *std::prev(from);
  }
  return true;
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

bool CellSearch::advance(TuneSetting& setting, Axis axis, bool up) const {
  switch (axis) {
    case Axis::chunk:
      return take_next(setting.chunk_bytes, space_.chunks, up);
    case Axis::channels:
      return take_next(setting.channels, space_.channels, up);
    case Axis::window:
      return take_next(setting.window, space_.windows, up);
    case Axis::queue_pairs:
      return take_next(setting.queue_pairs, space_.queue_pairs, up);
    case Axis::grain:
      return take_next(setting.chunk_bytes, space_.chunks, up) &&
             take_next(setting.window, space_.windows, !up);
    case Axis::split: {  // continues with one of them if the other has no more values
      const bool chunks = take_next(setting.chunk_bytes, space_.chunks, up);
      return take_next(setting.channels, space_.channels, !up) || chunks;
    }
  }
  return false;
}

std::optional<TuneSetting> CellSearch::neighbour(const TuneSetting& at, Axis axis, bool up) {
  TuneSetting next = at;
  while (advance(next, axis, up)) {
    if (!runner_.same(next, at)) return next;
  }
  return std::nullopt;
}

bool CellSearch::walk(Trial& at, Axis axis) {
  std::vector<bool> ways{false, true};  // upwards
  for (bool moved = false;; moved = true) {
    std::vector<TuneSetting> next;
    std::vector<bool> taken;
    for (const bool up : ways) {
      auto found = neighbour(at.setting, axis, up);
      if (!found || next.size() == left()) continue;
      next.push_back(std::move(*found));
      taken.push_back(up);
    }
    if (next.empty()) return moved;
    const auto trials = emulate(std::move(next));
    if (!trials) return moved;
    const Trial& best = fastest(*trials);
    if (!best.problem.empty() || best.took_us > at.took_us * (1 - limits_.least_gain)) return moved;
    ways = {taken[static_cast<std::size_t>(&best - trials->data())]};
    at = best;
  }
}

void CellSearch::descend(Trial& at) {
  constexpr std::array kAxes{Axis::chunk, Axis::channels,    Axis::window,
                             Axis::grain, Axis::queue_pairs, Axis::split};
  // Until every axis has been walked since the last step that was taken.
  std::size_t since = 0;
  for (std::size_t i = 0; since < kAxes.size() && left() > 0; i = (i + 1) % kAxes.size()) {
    since = walk(at, kAxes[i]) ? 1 : since + 1;
  }
}

std::optional<CellResult> CellSearch::run(const std::vector<TuneSetting>& ranked,
                                          const std::optional<TuneSetting>& start) {
  const config::JobConfig& job = runner_.group().scenario.workload.job;
  const std::string standard(workload::schedule_names(runner_.op()).front());
  std::vector<TuneSetting> first{setting_of(job, standard)};
  const auto kept = static_cast<std::ptrdiff_t>(std::min<std::size_t>(limits_.kept, ranked.size()));
  first.insert(first.end(), ranked.begin(), ranked.begin() + kept);
  if (start) {
    first.push_back(*start);
    // Tries the other schedules from there, too: a schedule that is faster with this chunk shows at
    // once.
    for (std::ptrdiff_t i = 0; i < kept; ++i) {
      first.push_back(*start);
      first.back().schedule = ranked[static_cast<std::size_t>(i)].schedule;
    }
  }
  if (space_.ports) {
    for (const TuneSetting& setting : std::vector(first)) {
      first.push_back(setting);
      first.back().planned_ports = true;
    }
  }
  const auto begun = emulate(std::move(first));
  if (!begun) return std::nullopt;
  CellResult result;
  result.standard = begun->front();
  result.kept.assign(begun->begin() + 1, begun->begin() + 1 + kept);
  result.best = fastest(*begun);
  // The fastest trial of each schedule, the best one first.
  std::vector<Trial> sorted = *begun;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Trial& a, const Trial& b) { return a.better_than(b); });
  std::vector<Trial> roots;
  for (const Trial& trial : sorted) {
    const bool near = trial.took_us <= result.best.took_us * limits_.contender;
    const bool there = std::any_of(roots.begin(), roots.end(), [&](const Trial& root) {
      return root.setting.schedule == trial.setting.schedule;
    });
    if (trial.problem.empty() && near && !there) roots.push_back(trial);
  }
  for (Trial& root : roots) {
    descend(root);
    if (root.better_than(result.best)) result.best = root;
  }
  result.evaluations = runner_.emulations();
  if (runner_.stopped()) return std::nullopt;
  return result;
}

}  // namespace paceline::tools
