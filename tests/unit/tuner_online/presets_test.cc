#include "control/tuner/online/candidates/presets.h"

#include <catch2/catch.hpp>

#include "cc/registry.h"
#include "tests/unit/tuner_online/synthetic_plant.h"

namespace paceline::tuner::online {
namespace {

using Catch::Matchers::Contains;

const std::string kGood = R"(schema = 1
algorithm = "dcqcn"
emulator = "0.1.0"

[[preset]]
name = "incast"
command = "paceline tuner search x.toml"
gain = 0.5
gain_sd = 0.05
signature = { load = 6, degree = 5, bytes = [0.1, 0.2, 0.7], core_marks = false, link_gbps = 25 }
params = { increase_timer_us = 20, start_rate = 0.1 }
)";

std::vector<std::string> errors_of(std::string text, const std::string& from,
                                   const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return read_presets_text(text, "p.toml", cc::algorithms()).errors;
}

TEST_CASE("presets: a file read, applied, and written back", "[tuner_online]") {
  const auto read = read_presets_text(kGood, "p.toml", cc::algorithms());
  INFO((read.ok() ? std::string() : read.errors.front()));
  REQUIRE(read.ok());
  REQUIRE(read.value.presets.size() == 1);
  const Preset& preset = read.value.presets.front();
  CHECK(preset.signature.bytes[2] == 0.7);
  const auto values = values_of(preset, test::dcqcn(), test::paper());
  CHECK(values[test::param("increase_timer_us")] == 20);
  CHECK(values[test::param("alpha_gain")] == test::paper()[test::param("alpha_gain")]);
  const auto again = read_presets_text(presets_text(read.value), "p.toml", cc::algorithms());
  REQUIRE(again.ok());
  CHECK(presets_text(again.value) == presets_text(read.value));
}

TEST_CASE("presets: errors name the place, the value and what is allowed", "[tuner_online]") {
  const auto one = [](const std::string& from, const std::string& to, const std::string& place,
                      const std::string& words) {
    const auto errors = errors_of(kGood, from, to);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors.front(), Catch::StartsWith("p.toml:" + place) && Contains(words));
  };
  one("\"dcqcn\"", "\"dcqcm\"", "2:13", "expected");
  one("emulator = \"0.1.0\"", "", "1:1", "\"emulator\" is missing");
  one("gain = 0.5", "gain = \"much\"", "8:8", "a number from -100 to 100");
  one("gain_sd = 0.05", "gain_sd = 0", "9:11", "a number from");
  one("load = 6", "load = 11", "10:22", "a whole number from 0 to 9");
  one("0.1, 0.2, 0.7", "0.1, 0.2", "10:45", "three shares");
  one("link_gbps = 25", "link_gbps = -1", "10:94", "a number from 0 to 3200");
  one("0.1, 0.2, 0.7", "0.9, 0.2, 0.7", "10:45", "add up to 1");
  one("increase_timer_us", "increase_timer", "11:12", "increase_timer_us");
  one("increase_timer_us = 20", "increase_timer_us = 0.2", "11:12", "0.2");
  one("name = \"incast\"", "nam = \"incast\"\nname = \"x\"", "6:1", "did you mean \"name\"");
  one("[[preset]]", "[preset]", "5:1", "array of tables");
  const auto twice =
      read_presets_text(kGood + kGood.substr(kGood.find("[[")), "p.toml", cc::algorithms());
  REQUIRE(twice.errors.size() == 1);
  CHECK_THAT(twice.errors.front(), Contains("no other preset"));
}

TEST_CASE("presets: promise what they gained, the less the stranger the workload",
          "[tuner_online]") {
  const auto library = read_presets_text(kGood, "p.toml", cc::algorithms()).value;
  Signature here = library.presets[0].signature;
  const auto at_home = promises(library, here, 8);
  REQUIRE(at_home.size() == 1);
  CHECK(at_home[0].mean == Approx(0.5));
  CHECK(at_home[0].sd == Approx(0.05));
  here.degree = 1;
  const auto near = promises(library, here, 8);
  CHECK(near[0].mean < 0.5);
  CHECK(near[0].sd > 0.05);
  here.bytes = {1, 0, 0};
  here.core_marks = true;
  CHECK(promises(library, here, 8)[0].mean == 0);
  // On a link four times as fast a third is left; where the link is not known it makes no
  // difference.
  here = library.presets[0].signature;
  here.link_gbps = 100;
  CHECK(promises(library, here, 8)[0].mean == Approx(0.5 / 3));
  here.link_gbps = 0;
  CHECK(promises(library, here, 8)[0].mean == Approx(0.5));
  CHECK(promises(library, here, 0).empty());
}

TEST_CASE("presets: those that are shipped can be read", "[tuner_online]") {
  const auto read = read_presets_file(
      std::string(PACELINE_SOURCE_DIR) + "/configs/presets/dcqcn.toml", cc::algorithms());
  INFO((read.ok() ? std::string() : read.errors.front()));
  REQUIRE(read.ok());
  CHECK(read.value.presets.size() >= 3);
}

}  // namespace
}  // namespace paceline::tuner::online
