// Which preset to try next: Thompson sampling (Thompson 1933; Gaussian rewards as in Agrawal and
// Goyal, AISTATS 2013) on differences of J to the incumbent, measured in block pairs. Old
// measurements count less (Garivier and Moulines, ALT 2011): each new pair discounts all older
// ones. Presets begin with the emulator's results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/tuner/online/candidates/paired_test.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tuner::online {

inline constexpr std::size_t kMostPresets = 8;

struct BanditOptions {
  double discount = 0.99;
  double noise_sd = 0.1;    // of a pair's difference, before any was seen ...
  double noise_weight = 4;  // ... with the weight of this many observations
};

// One preset against the incumbent. The incumbent is not among them: its difference is 0.
struct BanditArm {
  std::string name;
  std::vector<double> values;  // of all parameters
  double prior_mean = 0;
  double prior_sd = 0.3;
  double weight = 0;  // pairs, discounted
  double sum = 0;     // of differences, discounted
  PairedTest test;    // since the present incumbent is one
  bool out = false;   // dropped or rejected under this incumbent
};

class Bandit {
 public:
  explicit Bandit(std::vector<BanditArm> arms = {}, BanditOptions options = {})
      : arms_(std::move(arms)), options_(options) {}

  // Draws once from each arm that takes part. Returns the arm with the largest draw above 0, or
  // none: the incumbent is more likely the best.
  std::optional<std::size_t> draw(Random& random) const;
  void observe(std::size_t index, double difference);

  // `arm` has become the incumbent: the knowledge of the others is now relative to it. `former` is
  // the incumbent that it was measured against, and becomes an arm in its place.
  void promote(std::size_t index, const BanditArm& former);
  // The incumbent has become better by `gain` in another way.
  void shift(double gain);

  double mean(const BanditArm& arm) const;
  double sd(const BanditArm& arm) const;
  double noise_sd() const;  // of one pair
  const std::vector<BanditArm>& arms() const { return arms_; }
  std::vector<BanditArm>& arms() { return arms_; }

 private:
  std::vector<BanditArm> arms_;
  BanditOptions options_;
};

}  // namespace paceline::tuner::online
