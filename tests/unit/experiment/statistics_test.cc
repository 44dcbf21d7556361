#include "control/experiment/analysis/statistics.h"

#include <boost/math/distributions/non_central_t.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "control/experiment/analysis/bootstrap.h"
#include "dataplane/base/numbers/distributions.h"

using namespace paceline;
using namespace paceline::experiment;

namespace {

// Student's own example ("The probable error of a mean", 1908): extra hours of sleep, two drugs,
// ten patients. Differences; t = 4.0621 on 9 degrees of freedom.
const std::vector<double> kSleep{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4};

}  // namespace

TEST_CASE("quantiles and distribution functions agree with printed tables") {
  CHECK(normal_quantile(0.975) == Approx(1.959963985).epsilon(1e-9));
  CHECK(normal_cdf(1.0) == Approx(0.8413447461).epsilon(1e-9));
  CHECK(t_quantile(0.975, 11) == Approx(2.200985160).epsilon(1e-9));
  CHECK(t_quantile(0.995, 5) == Approx(4.032142984).epsilon(1e-9));
  CHECK(t_cdf(-2.0, 1) == Approx(0.5 - std::atan(2.0) / std::acos(-1.0)).epsilon(1e-12));
}

TEST_CASE("the paired t reproduces Student's sleep data") {
  const MeanEstimate estimate = t_interval(kSleep, 0.95);
  CHECK(estimate.method == Method::paired_t);
  CHECK(estimate.n == 10);
  CHECK(estimate.mean == Approx(1.58));
  CHECK(estimate.sd == Approx(1.229995).epsilon(1e-6));
  CHECK(estimate.interval.low == Approx(0.7001142).epsilon(1e-6));
  CHECK(estimate.interval.high == Approx(2.4598858).epsilon(1e-6));
  CHECK(estimate.p_two_sided() == Approx(0.002833).epsilon(1e-3));
  CHECK(estimate.p_positive == Approx(estimate.p_two_sided() / 2));
  CHECK(estimate.p_positive + estimate.p_negative == Approx(1.0));
}

TEST_CASE("the paired t of two values is the Cauchy case") {
  // t = mean / (half difference) = 3 with one degree of freedom: p = 1 - 2 atan(3) / pi.
  const MeanEstimate estimate = t_interval(std::vector<double>{1.0, 2.0}, 0.95);
  CHECK(estimate.p_two_sided() == Approx(1 - 2 * std::atan(3.0) / std::acos(-1.0)).epsilon(1e-9));
  const double reach = 0.5 * std::tan(std::acos(-1.0) * 0.475);
  CHECK(estimate.interval.high == Approx(1.5 + reach).epsilon(1e-9));
}

TEST_CASE("one value has no interval and no test, none has not even a mean") {
  const MeanEstimate one = infer_mean(std::vector<double>{2.0}, {});
  CHECK(one.method == Method::none);
  CHECK(one.mean == 2.0);
  CHECK(std::isnan(one.interval.low));
  CHECK(std::isnan(one.p_two_sided()));
  const MeanEstimate none = infer_mean(std::vector<double>{}, {});
  CHECK(none.n == 0);
  CHECK(std::isnan(none.mean));
}

TEST_CASE("equal values give a degenerate interval and the sign-flip p") {
  const MeanEstimate up = infer_mean(std::vector<double>(12, 0.25), {});
  CHECK(up.method == Method::identical);
  CHECK(up.interval.low == 0.25);
  CHECK(up.interval.high == 0.25);
  CHECK(up.p_two_sided() == 2.0 / 4096);
  const MeanEstimate zero = infer_mean(std::vector<double>(30, 0.0), {});
  CHECK(zero.method == Method::identical);
  CHECK(zero.p_two_sided() == 1);
  // Equal but for rounding is equal: not a t of 10^15.
  const MeanEstimate nearly = infer_mean(std::vector<double>{0.3, 0.1 + 0.2, 0.3, 0.3}, {});
  CHECK(nearly.method == Method::identical);
  CHECK(nearly.p_two_sided() == 2.0 / 16);
}

TEST_CASE("the bootstrap takes over at 20 values") {
  Random random(1);
  std::vector<double> values(19);
  for (double& value : values) value = standard_normal(random);
  CHECK(infer_mean(values, {}).method == Method::paired_t);
  values.push_back(0.5);
  CHECK(infer_mean(values, {}).method == Method::bca_bootstrap);
}

TEST_CASE("the acceleration is a sixth of the skewness of the influence values") {
  // u = -1/4 three times and 3/4: sum u^3 = 3/8, sum u^2 = 3/4.
  const BcaBootstrap bootstrap(std::vector<double>{0, 0, 0, 1}, 1000, 1, 0);
  CHECK(bootstrap.acceleration() == Approx(0.375 / (6 * std::pow(0.75, 1.5))));
  const BcaBootstrap symmetric(std::vector<double>{-2, -1, 0, 1, 2}, 100'000, 1, 0);
  CHECK(symmetric.acceleration() == Approx(0).margin(1e-15));
  // By symmetry half of the resampled means lie below the observed one: no bias but the noise of
  // 10^5 draws, 4 standard deviations of which are 4 x 0.5 / sqrt(10^5) / density(0) = 0.016.
  CHECK(std::fabs(symmetric.bias()) < 0.016);
}

TEST_CASE("the bias correction of a skewed sample follows from the exact bootstrap distribution") {
  // Means of resamples of {0, 0, 0, 1} are k/4, k binomial (4, 1/4): below 1/4 with probability
  // (3/4)^4 = 0.3164, equal to it with 4 (1/4)(3/4)^3 = 0.4219, of which half counts.
  const BcaBootstrap bootstrap(std::vector<double>{0, 0, 0, 1}, 200'000, 3, 0);
  CHECK(bootstrap.bias() == Approx(normal_quantile(0.3164 + 0.4219 / 2)).margin(0.01));
}

TEST_CASE("a BCa interval of a skewed sample leans to the long tail") {
  // The quantiles of an exponential distribution.
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) values.push_back(-std::log(1 - (i + 0.5) / 24));
  const auto lean = [](const MeanEstimate& estimate) {
    return (estimate.interval.high - estimate.mean) / (estimate.mean - estimate.interval.low);
  };
  CHECK(lean(t_interval(values, 0.95)) == Approx(1.0));
  CHECK(lean(bca_interval(values, 0.95, 10'000, 1, 0)) > 1.2);
  for (double& value : values) value = -value;
  CHECK(lean(bca_interval(values, 0.95, 10'000, 1, 0)) < 1 / 1.2);
}

TEST_CASE("the bootstrap is a function of its seed and stream") {
  std::vector<double> values = kSleep;
  for (double& value : values) value = std::sqrt(value);  // few resampled means coincide
  const MeanEstimate a = bca_interval(values, 0.95, 1000, 1, 2);
  const MeanEstimate b = bca_interval(values, 0.95, 1000, 1, 2);
  const MeanEstimate c = bca_interval(values, 0.95, 1000, 1, 3);
  CHECK(a.interval.low == b.interval.low);
  CHECK(a.p_positive == b.p_positive);
  CHECK(a.interval.low != c.interval.low);
}

TEST_CASE("a BCa p-value is below alpha exactly when the interval leaves out zero") {
  Random random(11);
  unsigned rejected = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> values(24);
    for (double& value : values) value = exponential(random, 1.0) - 0.6;
    const MeanEstimate estimate = bca_interval(values, 0.95, 999, 1, static_cast<unsigned>(i));
    const bool excludes = estimate.interval.low > 0 || estimate.interval.high < 0;
    INFO("sample " << i << " p " << estimate.p_two_sided() << " low " << estimate.interval.low);
    // Between two order statistics the two may disagree: one resample of 999.
    if (std::fabs(estimate.p_two_sided() - 0.05) > 0.004) {
      CHECK((estimate.p_two_sided() < 0.05) == excludes);
    }
    rejected += excludes;
  }
  CHECK(rejected > 20);
  CHECK(rejected < 180);
}

TEST_CASE("a ratio is the geometric mean of the paired ratios") {
  const std::vector<double> baseline{1, 10, 100};
  const std::vector<double> treatment{2, 80, 400};  // ratios 2, 8, 4
  const PairedEffect effect = paired_effect(baseline, treatment, Compare::ratio, {});
  CHECK(effect.scale == Compare::ratio);
  CHECK(effect.effect == Approx(3.0));
  CHECK(effect.baseline_mean == Approx(37));
  CHECK(effect.treatment_mean == Approx(482.0 / 3));
  // sd of the logs is ln 2; the interval is symmetric in them.
  CHECK(effect.estimate.sd == Approx(std::log(2.0)));
  CHECK((1 + effect.interval.low) * (1 + effect.interval.high) == Approx(16.0));
  CHECK(1 + effect.interval.high ==
        Approx(4 * std::exp(t_quantile(0.975, 2) * std::log(2.0) / std::sqrt(3.0))));
}

TEST_CASE("swapping the arms inverts the ratio") {
  Random random(3);
  for (const std::uint32_t n : {2U, 12U, 24U}) {
    std::vector<double> a(n), b(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      a[i] = exponential(random, 5.0) + 1;
      b[i] = exponential(random, 4.0) + 1;
    }
    const PairedEffect there = paired_effect(a, b, Compare::ratio, {});
    const PairedEffect back = paired_effect(b, a, Compare::ratio, {});
    CHECK((1 + there.effect) * (1 + back.effect) == Approx(1.0));
    CHECK((1 + there.interval.low) * (1 + back.interval.high) == Approx(1.0).epsilon(0.01));
  }
}

TEST_CASE("zero or negative values turn a ratio into a difference, and say so") {
  const std::vector<double> baseline{5, 0, 3};
  const std::vector<double> treatment{1, 2, 3};
  const PairedEffect effect = paired_effect(baseline, treatment, Compare::ratio, {});
  CHECK(effect.scale == Compare::difference);
  CHECK(effect.fell_back);
  CHECK(effect.effect == Approx(-2.0 / 3));
  const PairedEffect wanted = paired_effect(baseline, treatment, Compare::difference, {});
  CHECK_FALSE(wanted.fell_back);
  CHECK(wanted.effect == effect.effect);
  CHECK(paired_effect(std::vector<double>{-1, 2}, std::vector<double>{1, 2}, Compare::ratio, {})
            .fell_back);
}

TEST_CASE("missing values are counted and leave with their partner") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> baseline{1, nan, 2, 1000};
  const std::vector<double> treatment{2, 5, 4, nan};
  const PairedEffect effect = paired_effect(baseline, treatment, Compare::ratio, {});
  CHECK(effect.missing == 2);
  CHECK(effect.estimate.n == 2);
  CHECK(effect.baseline_mean == Approx(1.5));
  CHECK(effect.effect == Approx(1.0));
  const PairedEffect nothing =
      paired_effect(std::vector<double>{nan}, std::vector<double>{1.0}, Compare::ratio, {});
  CHECK(nothing.missing == 1);
  CHECK(std::isnan(nothing.effect));
}

TEST_CASE("bad samples are refused") {
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(
      paired_effect(std::vector<double>{1, 2}, std::vector<double>{1}, Compare::ratio, {}),
      std::invalid_argument);
  CHECK_THROWS_AS(
      paired_effect(std::vector<double>{infinite}, std::vector<double>{1}, Compare::ratio, {}),
      std::invalid_argument);
  CHECK_THROWS_AS(t_interval(kSleep, 1.0), std::invalid_argument);
  CHECK_THROWS_AS(t_interval(kSleep, 0.3), std::invalid_argument);
  CHECK_THROWS_AS(bca_interval(kSleep, 0.95, 10, 1, 0), std::invalid_argument);
}

TEST_CASE("the minimum detectable mean has the stated power") {
  // Against the exact power from the noncentral t distribution.
  for (const std::uint32_t n : {6U, 12U, 24U, 146U}) {
    const double mean = minimum_detectable_mean(0.085, n, 0.05, 0.8);
    const double critical = t_quantile(0.975, n - 1.0);
    const boost::math::non_central_t shifted(n - 1.0,
                                             mean / 0.085 * std::sqrt(static_cast<double>(n)));
    const double power = boost::math::cdf(boost::math::complement(shifted, critical)) +
                         boost::math::cdf(shifted, -critical);
    INFO("n = " << n << ", power " << power);
    CHECK(power == Approx(0.8).margin(0.01));
  }
  // The planning table: with sd .085 of a paired log ratio, 23 pairs find about 5 %, 146 about 2 %.
  CHECK(std::exp(minimum_detectable_mean(0.085, 23, 0.05, 0.8)) - 1 == Approx(0.05).margin(0.004));
  CHECK(std::exp(minimum_detectable_mean(0.085, 146, 0.05, 0.8)) - 1 ==
        Approx(0.02).margin(0.0005));
  CHECK(std::isnan(minimum_detectable_mean(1, 1, 0.05, 0.8)));
}

TEST_CASE("the sign test counts coins") {
  CHECK(sign_test(0, 0) == 1);
  CHECK(sign_test(12, 0) == Approx(2.0 / 4096));
  CHECK(sign_test(1, 9) == Approx(22.0 / 1024));
  CHECK(sign_test(6, 6) == 1);
}

TEST_CASE("corrections for many tests agree with R's p.adjust") {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
  const std::vector<double> holm_expected{0.03, 0.06, 0.06, 0.02};
  const std::vector<double> bh_expected{0.02, 0.04, 0.04, 0.02};
  const std::vector<double> h = holm(p);
  const std::vector<double> b = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    CHECK(h[i] == Approx(holm_expected[i]));
    CHECK(b[i] == Approx(bh_expected[i]));
  }
  const std::vector<double> high = holm(std::vector<double>{0.9, 0.8});
  CHECK(high[0] == 1);
  CHECK(high[1] == 1);
}

TEST_CASE("what was not tested does not count among the tests") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> p{0.02, nan, 0.04};
  CHECK(holm(p)[0] == Approx(0.04));
  CHECK(std::isnan(holm(p)[1]));
  CHECK(benjamini_hochberg(p)[2] == Approx(0.04));
  CHECK(std::isnan(benjamini_hochberg(p)[1]));
}
