#include "control/tuner/online/observation/change_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/analysis/statistics.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::tuner::online {

namespace {

struct Divergence {
  double nats = 0;
  double surprise = 0;  // 2 n KL over what chance exceeds once in a thousand times
};

// The quantile .999 of chi squared (Wilson and Hilferty, PNAS 17, 1931).
double chance(double degrees) {
  const double z = experiment::normal_quantile(0.999);
  const double a = 2 / (9 * degrees);
  const double root = 1 - a + z * std::sqrt(a);
  return degrees * root * root * root;
}

template <std::size_t N>
Divergence divergence_of(const std::array<std::uint64_t, N>& now,
                         const std::array<std::uint64_t, N>& before) {
  double n = 0;
  double m = 0;
  std::size_t classes = 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (now[i] + before[i] == 0) continue;
    ++classes;
    n += static_cast<double>(now[i]);
    m += static_cast<double>(before[i]);
  }
  Divergence out;
  if (classes < 2 || n == 0 || m == 0) return out;
  const double half = static_cast<double>(classes) / 2;
  for (std::size_t i = 0; i < N; ++i) {
    if (now[i] + before[i] == 0) continue;
    const double p = (static_cast<double>(now[i]) + 0.5) / (n + half);
    const double q = (static_cast<double>(before[i]) + 0.5) / (m + half);
    out.nats += p * det_log(p / q);
  }
  // Both are samples: together they count as many as their harmonic mean.
  const double samples = n * m / (n + m);
  out.surprise = 2 * samples * out.nats / chance(static_cast<double>(classes - 1));
  return out;
}

}  // namespace

std::optional<std::string> mix_change(const SignatureBuilder& before, const SignatureBuilder& now,
                                      const ChangeOptions& options) {
  const auto far = [&](const Divergence& d) {
    return d.nats > options.divergence && d.surprise > 1;
  };
  const Divergence sizes = divergence_of(now.mix().sizes, before.mix().sizes);
  if (far(sizes)) {
    return fmt::format("the mix of message sizes changed (divergence {:.2f}, more than {:.2f})",
                       sizes.nats, options.divergence);
  }
  const Divergence degrees = divergence_of(now.mix().degrees, before.mix().degrees);
  // Adjacent windows are alike, and so are fewer samples than their number: the deepest waves must
  // also differ by a factor of four.
  const auto apart = [&] {
    const std::uint32_t a = before.signature().degree;
    const std::uint32_t b = now.signature().degree;
    return a > b ? a - b : b - a;
  };
  if (far(degrees) && apart() >= 2) {
    return fmt::format("the mix of incast degrees changed (divergence {:.2f}, more than {:.2f})",
                       degrees.nats, options.divergence);
  }
  const double was = before.offered_bps();
  const double is = now.offered_bps();
  if (was > 0 && (is > was * options.load_ratio || is < was / options.load_ratio)) {
    return fmt::format("the offered load went from {:.3g} to {:.3g} Gb/s", was / 1e9, is / 1e9);
  }
  return std::nullopt;
}

void ChangeDetector::learn(const SignatureBuilder& reference) {
  reference_ = reference;
  current_ = {};
  suspected_ = 0;
}

std::optional<std::string> ChangeDetector::add(const Window& window) {
  if (!learned()) return std::nullopt;
  current_.add(window);
  if (current_.windows() < options_.span_windows) return std::nullopt;
  if (current_.messages() < options_.span_messages &&
      current_.windows() < options_.span_windows * options_.patience) {
    return std::nullopt;
  }
  auto change = mix_change(reference_, current_, options_);
  current_ = {};
  if (!change) {
    suspected_ = 0;
    return std::nullopt;
  }
  if (++suspected_ < options_.persist) return std::nullopt;
  *this = ChangeDetector(options_);
  return change;
}

void ChangeDetector::restore(const State& state) {
  reference_ = SignatureBuilder(state.reference);
  current_ = SignatureBuilder(state.current);
  suspected_ = state.suspected;
}

}  // namespace paceline::tuner::online
