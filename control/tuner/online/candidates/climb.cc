#include "control/tuner/online/candidates/climb.h"

#include <algorithm>
#include <cmath>

#include "cc/params.h"
#include "control/experiment/text/number_text.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::tuner::online {

namespace {

constexpr int kDigits = 3;

struct TunedNames {
  std::string_view algorithm;
  std::vector<std::string_view> params;
};

const std::vector<std::string_view>* tuned_names(std::string_view algorithm) {
  static const std::vector<TunedNames> kTuned{
      {"dcqcn",
       {"additive_increase_mbps", "increase_timer_us", "decrease_period_us", "alpha_gain",
        "alpha_period_us", "hyper_increase_mbps", "fast_recovery_stages"}},
      {"cadence", {"eta", "small_message", "hysteresis", "a_max", "lease_min"}},
      {"swift", {"base_target_us", "increase", "decrease", "max_decrease", "flow_scale_range_us"}},
  };
  for (const TunedNames& each : kTuned) {
    if (each.algorithm == algorithm) return &each.params;
  }
  return nullptr;
}

}  // namespace

std::optional<double> one_notch(const cc::ParamSpec& spec, double value, bool up) {
  if (spec.unit == "flag" || value <= 0) return std::nullopt;
  double next = 0;
  if (spec.unit == "count") {
    next = up ? value + 1 : value - 1;
  } else {
    next = experiment::rounded(up ? value * kNotch : value / kNotch, kDigits);
    if (cc::is_whole_unit(spec.unit)) {
      next = up ? std::max(value + 1, std::ceil(next)) : std::min(value - 1, std::floor(next));
    }
  }
  if (next < spec.min || next > spec.max || next == value) return std::nullopt;
  return next;
}

double notches_between(const cc::ParamSpec& spec, double a, double b) {
  if (spec.unit == "count") return std::abs(a - b);
  if (a <= 0 || b <= 0) return a == b ? 0 : 1e9;
  return std::abs(det_log(a / b)) / det_log(kNotch);
}

std::vector<std::size_t> tuned_params(const cc::AlgorithmInfo& info) {
  std::vector<std::size_t> out;
  if (const auto* names = tuned_names(info.name)) {
    for (const std::string_view name : *names) {
      const int index = cc::find_param(info.params, name);
      if (index >= 0 && info.params[static_cast<std::size_t>(index)].live) {
        out.push_back(static_cast<std::size_t>(index));
      }
    }
    return out;
  }
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (info.params[i].live && info.params[i].unit != "flag") out.push_back(i);
  }
  return out;
}

std::optional<ClimbMove> Climb::next(ClimbState& state, std::span<const double> incumbent,
                                     std::int64_t now_ns) const {
  const std::size_t slots = params_.size() * 2;
  if (state.tried.size() != slots) state.tried.assign(slots, 0);
  if (state.anchor.size() != incumbent.size()) {
    settle(state, incumbent, now_ns);
  } else if (now_ns - state.anchor_at_ns >= options_.trust_ns) {
    state.anchor.assign(incumbent.begin(), incumbent.end());
    state.anchor_at_ns = now_ns;
  }
  for (std::size_t step = 0; step < slots; ++step) {
    const std::size_t at = (state.next + step) % slots;
    if (state.tried[at] != 0) continue;
    ClimbMove move;
    move.param = params_[at / 2];
    move.up = at % 2 == 0;
    move.from = incumbent[move.param];
    const cc::ParamSpec& spec = info_.params[move.param];
    const auto to = one_notch(spec, move.from, move.up);
    // Rounding to three digits makes a notch up to half a percent larger.
    constexpr double kRounding = 0.05;
    if (!to ||
        notches_between(spec, *to, state.anchor[move.param]) > options_.trust_notches + kRounding) {
      continue;
    }
    move.to = *to;
    state.next = static_cast<std::uint32_t>(at);
    return move;
  }
  return std::nullopt;
}

std::size_t Climb::slot(const ClimbMove& move) const {
  const auto place = std::find(params_.begin(), params_.end(), move.param) - params_.begin();
  return static_cast<std::size_t>(place) * 2 + (move.up ? 0 : 1);
}

void Climb::judged(ClimbState& state, const ClimbMove& move, bool accepted) const {
  const std::size_t at = slot(move);
  if (accepted) {
    std::fill(state.tried.begin(), state.tried.end(), std::uint8_t{0});
    state.tried[at ^ 1U] = 1;
    return;
  }
  state.tried[at] = 1;
  state.next = static_cast<std::uint32_t>((at + 1) % state.tried.size());
}

void Climb::forget(ClimbState& state) const {
  std::fill(state.tried.begin(), state.tried.end(), std::uint8_t{0});
}

void Climb::settle(ClimbState& state, std::span<const double> incumbent,
                   std::int64_t now_ns) const {
  state.anchor.assign(incumbent.begin(), incumbent.end());
  state.anchor_at_ns = now_ns;
  state.tried.assign(params_.size() * 2, 0);
  state.next = 0;
}

}  // namespace paceline::tuner::online
