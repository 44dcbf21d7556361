#include "control/tuner/online/candidates/bandit.h"

#include <cmath>
#include <utility>

#include "dataplane/base/numbers/distributions.h"

namespace paceline::tuner::online {

double Bandit::noise_sd() const {
  double squares = options_.noise_weight * options_.noise_sd * options_.noise_sd;
  double count = options_.noise_weight;
  for (const BanditArm& arm : arms_) {
    if (arm.test.n < 2) continue;
    squares += arm.test.squares;
    count += static_cast<double>(arm.test.n - 1);
  }
  return std::sqrt(squares / count);
}

double Bandit::sd(const BanditArm& arm) const {
  const double noise = noise_sd();
  return 1 / std::sqrt(1 / (arm.prior_sd * arm.prior_sd) + arm.weight / (noise * noise));
}

double Bandit::mean(const BanditArm& arm) const {
  const double noise = noise_sd();
  const double prior = 1 / (arm.prior_sd * arm.prior_sd);
  const double seen = 1 / (noise * noise);
  return (arm.prior_mean * prior + arm.sum * seen) / (prior + arm.weight * seen);
}

std::optional<std::size_t> Bandit::draw(Random& random) const {
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (arms_[i].out) continue;
    const double drawn = mean(arms_[i]) + sd(arms_[i]) * standard_normal(random);
    if (drawn > most) {
      most = drawn;
      best = i;
    }
  }
  return best;
}

void Bandit::observe(std::size_t index, double difference) {
  for (BanditArm& arm : arms_) {
    arm.weight *= options_.discount;
    arm.sum *= options_.discount;
  }
  BanditArm& arm = arms_[index];
  arm.weight += 1;
  arm.sum += difference;
  arm.test.add(difference);
}

void Bandit::promote(std::size_t index, const BanditArm& former) {
  const double gain = mean(arms_[index]);
  const double doubt = sd(arms_[index]);
  std::vector<std::pair<double, double>> known;
  for (const BanditArm& arm : arms_) known.emplace_back(mean(arm), sd(arm));
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    BanditArm& arm = arms_[i];
    if (i == index) {
      arm = former;
      arm.prior_mean = -gain;
      arm.prior_sd = doubt;
    } else {
      arm.prior_mean = known[i].first - gain;
      arm.prior_sd = std::sqrt(known[i].second * known[i].second + doubt * doubt);
    }
    arm.weight = 0;
    arm.sum = 0;
    arm.test = {};
    // A candidate that broke a constraint did so whatever the incumbent is.
  }
}

void Bandit::shift(double gain) {
  for (BanditArm& arm : arms_) {
    arm.prior_mean = mean(arm) - gain;
    arm.prior_sd = sd(arm);
    arm.weight = 0;
    arm.sum = 0;
    arm.test = {};
  }
}

}  // namespace paceline::tuner::online
