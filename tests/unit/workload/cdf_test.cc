#include "tools/workload/cdf.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

Lines errors_of(const std::string& text) { return parse_cdf(text, "c.cdf").errors; }

TEST_CASE("built-in distributions have their published means", "[workload]") {
  // Trapezoids over the published points, by hand:
  //   .15*5000 + .05*15000 + .1*25000 + .1*40000 + .13*65000 + .07*140000 + .1*600000 + .1*1.5e6
  //   + .1*3.5e6 + .07*7.5e6 + .03*2e7
  CHECK(web_search_cdf().mean() == Approx(1'711'250.0).epsilon(1e-12));
  CHECK(fb_hadoop_cdf().mean() == Approx(120'420.75).epsilon(1e-12));
  CHECK(web_search_cdf().quantile(0.53) == 80'000);
  CHECK(web_search_cdf().quantile(0.95) == Approx(8'571'429).margin(1));
  CHECK(fb_hadoop_cdf().quantile(0.5) == 700);
}

TEST_CASE("quantiles are linear between points, at least a byte", "[workload]") {
  const Cdf cdf({{0, 0}, {100, 0.5}, {300, 1}});
  CHECK(cdf.quantile(0) == 1);
  CHECK(cdf.quantile(0.25) == 50);
  CHECK(cdf.quantile(0.5) == 100);
  CHECK(cdf.quantile(0.75) == 200);
  CHECK(cdf.mean() == Approx(0.5 * 50 + 0.5 * 200));
  // An atom at the first size, and a jump in the middle.
  const Cdf jumps({{64, 0.25}, {1000, 0.25}, {1000, 0.75}, {2000, 1}});
  CHECK(jumps.quantile(0.2) == 64);
  CHECK(jumps.quantile(0.3) == 1000);
  CHECK(jumps.quantile(0.74) == 1000);
  CHECK(jumps.mean() == Approx(16 + 0 + 500 + 375));
}

TEST_CASE("sampling gives the mean", "[workload]") {
  constexpr std::uint64_t kSeed = 3;
  INFO("seed " << kSeed);
  Random random(kSeed);
  double sum = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    sum += static_cast<double>(web_search_cdf().quantile(random.uniform()));
  }
  // The standard deviation of a draw is about 3.6 MB: 4 of the mean's are 32 kB.
  CHECK(sum / kDraws == Approx(web_search_cdf().mean()).margin(32'000));
}

TEST_CASE("a CDF file ends at 1 or at 100", "[workload]") {
  const auto percent = parse_cdf("0 0\n# note\n100 50\n\n300 100\n", "c.cdf");
  REQUIRE(percent.errors == Lines{});
  const auto share = parse_cdf("0 0\r\n100 0.5\r\n300 1.0", "c.cdf");
  REQUIRE(share.errors == Lines{});
  CHECK(percent.value.quantile(0.75) == 200);
  CHECK(share.value.quantile(0.75) == 200);
  CHECK(errors_of("0 0\n100 50\n300 97\n") ==
        Lines{"c.cdf:3:5: share = 97: the last one; a CDF ends at 1 (or at 100, in per cent)"});
  CHECK(errors_of("0 0\n300 0.99\n") ==
        Lines{"c.cdf:2:5: share = 0.99: the last one; a CDF ends at 1 (or at 100, in per cent)"});
}

TEST_CASE("a CDF file with errors says all of them", "[workload]") {
  CHECK(errors_of("0 0\n200 0.5\n100 0.4\n300 1\n") ==
        Lines{"c.cdf:3:1: size = 100: below the line before (200); sizes do not decrease",
              "c.cdf:3:5: share = 0.4: below the line before (0.5); shares do not decrease"});
  CHECK(errors_of("0 0\n-5 0.5\n  7 half\n8\n9 1 1\n300 1\n") ==
        Lines{"c.cdf:2:1: size = \"-5\": expected a number in [0 .. 1000000000000000]",
              "c.cdf:3:5: share = \"half\": expected a number in [0 .. 100]",
              "c.cdf:4:1: 1 columns: expected 2, `size share`",
              "c.cdf:5:1: 3 columns: expected 2, `size share`"});
  CHECK(errors_of("100 101\n").size() == 1);
  CHECK(errors_of("nan 1\n").size() == 1);
  CHECK(errors_of("") == Lines{"c.cdf:1:1: no data: expected lines of `size share`"});
  CHECK(errors_of("0 1\n").size() == 1);
  CHECK(read_cdf_file("/no/such.cdf").errors ==
        Lines{"/no/such.cdf: cannot be opened: No such file or directory"});
  std::string wrong_kind;
  for (int i = 0; i < 1000; ++i) wrong_kind += "not a cdf\n";
  CHECK(errors_of(wrong_kind).size() == 50);
}

}  // namespace
}  // namespace paceline::workload
