#include "cc/params.h"

#include <cmath>
#include <limits>

#include "cc_support.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

constexpr ParamSpec kSpecs[] = {
    {"gain", "1", 0.25, 0, 1, true, "", ""},
    {"period_us", "us", 55, 0.1, 1000, true, "", ""},
    {"stages", "count", 5, 0, 31, true, "", ""},
    {"step_mbps", "Mb/s", 40, 0, 400'000, true, "", ""},
};
constexpr ProfileValue kScaled[] = {{"step_mbps", 50, 25e9}, {"period_us", 300}};
constexpr ProfileValue kLarge[] = {{"step_mbps", 30'000}};
constexpr Profile kProfiles[] = {{"scaled", "", kScaled}, {"large", "", kLarge}};

AlgorithmInfo made_up() {
  AlgorithmInfo info;
  info.name = "made_up";
  info.params = kSpecs;
  info.profiles = kProfiles;
  return info;
}

std::vector<double> good(std::string_view profile, const std::vector<ParamOverride>& overrides,
                         std::uint64_t gbps) {
  const ResolvedParams resolved = resolve_params(made_up(), profile, overrides, facts_at(gbps));
  REQUIRE(std::holds_alternative<std::vector<double>>(resolved));
  return std::get<std::vector<double>>(resolved);
}

std::vector<ParamError> bad(std::string_view profile, const std::vector<ParamOverride>& overrides,
                            std::uint64_t gbps = 100) {
  const ResolvedParams resolved = resolve_params(made_up(), profile, overrides, facts_at(gbps));
  REQUIRE(std::holds_alternative<std::vector<ParamError>>(resolved));
  return std::get<std::vector<ParamError>>(resolved);
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("params: defaults come in the order of the table") {
  CHECK(good("", {}, 100) == std::vector<double>{0.25, 55, 5, 40});
  CHECK(good("default", {}, 100) == std::vector<double>{0.25, 55, 5, 40});
}

TEST_CASE(
    "params: a profile overrides defaults, the user overrides the profile, the last word holds") {
  CHECK(good("scaled", {}, 25) == std::vector<double>{0.25, 300, 5, 50});
  CHECK(good("scaled", {{"period_us", 7}}, 25) == std::vector<double>{0.25, 7, 5, 50});
  CHECK(good("scaled", {{"period_us", 7}, {"period_us", 8}}, 25)[1] == 8);
}

TEST_CASE("params: per_bps values scale with the link, overrides do not") {
  CHECK(good("scaled", {}, 100)[3] == 200);
  CHECK(good("scaled", {}, 400)[3] == 800);
  CHECK(good("scaled", {}, 10)[3] == 20);
  CHECK(good("scaled", {{"step_mbps", 11}}, 400)[3] == 11);
  CHECK(good("scaled", {}, 0)[3] == 50);  // unknown link: the reference rate
  CHECK(value_at(kScaled[0], rate_from_gbps(50)) == 100);
  CHECK(value_at(kScaled[1], rate_from_gbps(50)) == 300);
}

TEST_CASE("params: an unknown parameter names the nearest valid one") {
  const auto errors = bad("", {{"perriod_us", 1}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == ParamError::Kind::unknown_parameter);
  CHECK(errors[0].name == "perriod_us");
  CHECK(errors[0].nearest == "period_us");
  CHECK(errors[0].message == "made_up has no parameter 'perriod_us'; the nearest is 'period_us'");
}

TEST_CASE("params: an unknown profile names the nearest valid one, default included") {
  CHECK(bad("scald", {})[0].nearest == "scaled");
  const auto errors = bad("defualt", {});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == ParamError::Kind::unknown_profile);
  CHECK(errors[0].message == "made_up has no profile 'defualt'; the nearest is 'default'");
}

TEST_CASE("params: out of range names value, unit and range; the ends are allowed") {
  CHECK(good("", {{"gain", 0}, {"period_us", 1000}}, 100) == std::vector<double>{0, 1000, 5, 40});
  const auto errors = bad("", {{"period_us", 1000.5}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == ParamError::Kind::out_of_range);
  CHECK(errors[0].value == 1000.5);
  CHECK(errors[0].message ==
        "made_up.period_us = 1000.5 us is out of range; allowed is 0.1 to 1000 us");
  CHECK(bad("", {{"gain", -0.001}})[0].kind == ParamError::Kind::out_of_range);
}

TEST_CASE("params: values that are no numbers, and fractions of whole things, are refused") {
  CHECK(bad("", {{"gain", kNan}})[0].kind == ParamError::Kind::not_finite);
  CHECK(bad("", {{"gain", kInf}})[0].kind == ParamError::Kind::not_finite);
  CHECK(bad("", {{"gain", -kInf}})[0].kind == ParamError::Kind::not_finite);
  const auto errors = bad("", {{"stages", 2.5}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == ParamError::Kind::not_whole);
  CHECK(errors[0].message ==
        "made_up.stages = 2.5 is not whole; allowed are whole numbers from 0 to 31");
}

TEST_CASE("params: a rate above the link rate is refused wherever it comes from") {
  const auto errors = bad("", {{"step_mbps", 100'001}}, 100);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].kind == ParamError::Kind::above_link_rate);
  CHECK(errors[0].message ==
        "made_up.step_mbps = 100001 Mb/s is above the link rate of 100000 Mb/s");
  CHECK(good("", {{"step_mbps", 100'000}}, 100)[3] == 100'000);
  CHECK(bad("large", {}, 25)[0].kind == ParamError::Kind::above_link_rate);
  CHECK(good("large", {{"step_mbps", 10}}, 25)[3] == 10);  // the override mends it
  CHECK(good("large", {}, 0)[3] == 30'000);                // unknown link: no bound
}

TEST_CASE("params: every error is reported, not only the first") {
  const auto errors =
      bad("nope", {{"gain", 2}, {"stage", 1}, {"stages", 1.5}, {"period_us", kNan}});
  REQUIRE(errors.size() == 5);
  CHECK(errors[0].kind == ParamError::Kind::unknown_profile);
  CHECK(errors[1].kind == ParamError::Kind::unknown_parameter);
  CHECK(errors[2].kind == ParamError::Kind::out_of_range);
  CHECK(errors[3].kind == ParamError::Kind::not_finite);
  CHECK(errors[4].kind == ParamError::Kind::not_whole);
}
