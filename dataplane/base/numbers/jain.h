// Jain's fairness index of n allocations: (sum x)^2 / (n * sum x^2) (Jain, Chiu and Hawe, DEC
// technical report 301, 1984). 1 when all are equal, k/n when k of n share everything equally.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

class JainIndex {
 public:
  // One participant's share, >= 0, in any unit. Participants that got nothing must be added too.
  constexpr void add(double share) {
    ++count_;
    sum_ += share;
    squares_ += share * share;
  }

  constexpr std::uint64_t count() const { return count_; }

  // In [1/n, 1] except for rounding; 1 if there are no members or all have 0.
  constexpr double value() const {
    if (squares_ == 0.0) return 1.0;
    return sum_ * sum_ / (static_cast<double>(count_) * squares_);
  }

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0.0;
  double squares_ = 0.0;
};

constexpr double jain_index(std::span<const double> shares) {
  JainIndex index;
  for (const double share : shares) index.add(share);
  return index.value();
}

}  // namespace paceline
