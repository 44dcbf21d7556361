#include <catch2/catch.hpp>
#include <cmath>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/tuner/search_space.h"

namespace paceline::tuner {
namespace {

using Catch::Matchers::Contains;

std::vector<double> start_of(const cc::AlgorithmInfo& info) {
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  return std::get<std::vector<double>>(cc::resolve_params(info, "paper", {}, facts));
}

SearchSpace space_of(std::vector<DimensionRequest> requests, std::vector<std::string>& errors) {
  const cc::AlgorithmInfo& info = *cc::find("dcqcn");
  return SearchSpace(info, start_of(info), requests, errors);
}

TEST_CASE("space: scale and bounds follow the parameter's range", "[tuner]") {
  std::vector<std::string> errors;
  const SearchSpace space = space_of({{"increase_timer_us", {}, {}},
                                      {"start_rate", 0.5, 1.0},
                                      {"fast_recovery_stages", 1.0, 9.0},
                                      {"clamp_target", {}, {}},
                                      {"byte_counter", 1e5, 1e9}},
                                     errors);
  REQUIRE(errors.empty());
  const auto& d = space.dimensions();
  REQUIRE(d.size() == 5);
  CHECK(d[0].log_scale);
  CHECK(d[0].low == Approx(55.0 / 16));
  CHECK(d[0].high == Approx(55.0 * 16));
  CHECK_FALSE(d[1].log_scale);  // half a decade
  CHECK_FALSE(d[2].log_scale);
  CHECK(d[2].whole);
  CHECK(d[3].low == 0);
  CHECK(d[3].high == 1);
  CHECK(d[4].log_scale);
  CHECK(d[4].value_of(0.5) == Approx(1e7));
  for (const Dimension& dimension : d) {
    for (const double unit : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const double value = dimension.value_of(unit);
      CHECK(value >= dimension.low);
      CHECK(value <= dimension.high);
      if (dimension.whole) {
        CHECK(value == std::floor(value));
      } else {
        CHECK(dimension.unit_of(value) == Approx(unit).margin(1e-12));
      }
    }
  }
}

TEST_CASE("space: values have three digits and leave the others alone", "[tuner]") {
  std::vector<std::string> errors;
  const SearchSpace space = space_of({{"increase_timer_us", 10.0, 1000.0}}, errors);
  REQUIRE(errors.empty());
  const std::vector<double> point{1.0 / 3};
  std::vector<double> values = space.values_of(point);
  const std::size_t index = space.dimensions()[0].param;
  CHECK(values[index] == 46.4);  // 10 x 100^(1/3) = 46.416
  values[index] = space.start_values()[index];
  CHECK(values == space.start_values());
  CHECK(space.dimensions()[0].value_of(space.start_point()[0]) == Approx(55));
}

TEST_CASE("space: what cannot be searched is named", "[tuner]") {
  std::vector<std::string> errors;
  space_of({{"alpha_gian", {}, {}},              // unknown
            {"increase_timer_us", 100.0, 10.0},  // the wrong way round
            {"alpha_gain", 0.001, 7.0},          // beyond the ParamSpec
            {"first_cnp_rate", {}, {}},          // starts at 0
            {"start_rate", {}, {}},
            {"start_rate", {}, {}}},  // twice
           errors);
  REQUIRE(errors.size() == 5);
  CHECK_THAT(errors[0], Contains("alpha_gian") && Contains("alpha_gain"));
  CHECK_THAT(errors[1], Contains("increase_timer_us") && Contains("100 to 10"));
  CHECK_THAT(errors[2], Contains("alpha_gain") && Contains("allowed"));
  CHECK_THAT(errors[3], Contains("first_cnp_rate=LOW:HIGH"));
  CHECK_THAT(errors[4], Contains("twice"));
}

TEST_CASE("space: NAME and NAME=LOW:HIGH, nothing else", "[tuner]") {
  REQUIRE(parse_dimension("a").has_value());
  CHECK_FALSE(parse_dimension("a")->low.has_value());
  const auto bounded = parse_dimension("a=1e3:2e4");
  REQUIRE(bounded.has_value());
  CHECK(*bounded->low == 1000);
  CHECK(*bounded->high == 20'000);
  for (const char* wrong :
       {"", "=1:2", "a=", "a=1", "a=1:", "a=:2", "a=1:2x", "a=1:2:3", "a=nan:1", "a=0:inf"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_dimension(wrong).has_value());
  }
}

}  // namespace
}  // namespace paceline::tuner
