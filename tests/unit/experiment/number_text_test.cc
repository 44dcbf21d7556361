#include "control/experiment/text/number_text.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "dataplane/base/numbers/distributions.h"

using namespace paceline;
using namespace paceline::experiment;

TEST_CASE("numbers of the results file") {
  CHECK(number_text(0) == "0");
  CHECK(number_text(-0.0) == "0");
  CHECK(number_text(1.5) == "1.5");
  CHECK(number_text(1.0 / 3) == "0.333333333");
  CHECK(number_text(-2.0 / 3) == "-0.666666667");
  CHECK(number_text(9'007'199'254'740'991.0) == "9007199254740991");
  CHECK(number_text(1'234'567'890.4) == "1234567890");
  CHECK(number_text(1.25e-20) == "1.25e-20");
  CHECK(number_text(1e300) == "1e+300");
  CHECK(number_text(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("rounding is idempotent and keeps the text, over 60 orders of magnitude") {
  Random random(8);
  for (int i = 0; i < 100'000; ++i) {
    const double value = standard_normal(random) * det_exp(140 * (random.uniform() - 0.5));
    const double once = rounded(value);
    REQUIRE(rounded(once) == once);
    REQUIRE(number_text(once) == number_text(value));
    REQUIRE(std::fabs(once - value) <= 0.5000001e-8 * std::fabs(value));
    const double six = rounded(value, kFigureDigits);
    REQUIRE(std::fabs(six - value) <= 0.5000001e-5 * std::fabs(value));
  }
}

TEST_CASE("a change of the last bits does not change the text") {
  const double value = 0.1 + 0.2;
  CHECK(value != 0.3);
  CHECK(number_text(value) == number_text(0.3));
}
