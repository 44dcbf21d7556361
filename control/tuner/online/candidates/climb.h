// Refinement of the incumbent, one parameter and one notch at a time. Never farther from the anchor
// than the trust region: the anchor is the preset that was adopted, or the champion, and follows
// the incumbent once an hour.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"

namespace paceline::tuner::online {

inline constexpr double kNotch = 1.25;

// The value one notch up or down: a factor of 1.25, rounded to three digits (whole numbers change
// by 1 at least), a step of 1 for counts. Nothing for flags, for zero, and where the parameter's
// range ends.
std::optional<double> one_notch(const cc::ParamSpec& spec, double value, bool up);
// How many notches lie between two values.
double notches_between(const cc::ParamSpec& spec, double a, double b);

// Parameters of an algorithm that have enough effect for a search, most effective first;
// indices into info.params. For an algorithm without such a list, all live ones except flags.
std::vector<std::size_t> tuned_params(const cc::AlgorithmInfo& info);

struct ClimbMove {
  std::size_t param = 0;
  bool up = true;
  double from = 0;
  double to = 0;
};

struct ClimbOptions {
  double trust_notches = 2;                   // from the anchor
  std::int64_t trust_ns = 3'600'000'000'000;  // for so long
};

// State of a climb: plain data, so that it can be saved.
struct ClimbState {
  std::vector<double> anchor;  // empty: the incumbent, from the next move on
  std::int64_t anchor_at_ns = 0;
  std::vector<std::uint8_t> tried;  // by 2 x place in tuned_params() + (up ? 0 : 1): not again
  std::uint32_t next = 0;           // the same number: where to continue
};

class Climb {
 public:
  Climb(const cc::AlgorithmInfo& info, ClimbOptions options)
      : info_(info), options_(options), params_(tuned_params(info)) {}

  // The next untried neighbour of `incumbent` within bounds and trust region; nothing if there is
  // none until the anchor moves or forget() is called.
  std::optional<ClimbMove> next(ClimbState& state, std::span<const double> incumbent,
                                std::int64_t now_ns) const;
  // `move` was the last of next(). Accepted: everything but its way back may be tried again, in the
  // same direction first.
  void judged(ClimbState& state, const ClimbMove& move, bool accepted) const;
  void forget(ClimbState& state) const;
  // The incumbent comes from elsewhere: the trust region begins there.
  void settle(ClimbState& state, std::span<const double> incumbent, std::int64_t now_ns) const;

 private:
  std::size_t slot(const ClimbMove& move) const;

  const cc::AlgorithmInfo& info_;
  ClimbOptions options_;
  std::vector<std::size_t> params_;
};

}  // namespace paceline::tuner::online
