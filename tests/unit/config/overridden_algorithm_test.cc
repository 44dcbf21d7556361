// `--set cc.algorithm=...`: what becomes of the parameters in the file.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Overrides = std::vector<std::string>;

Read<Scenario> overridden(const std::string& text, Overrides overrides) {
  return read_scenario_text(text, "s.toml", "", {test_algorithms(), std::move(overrides)});
}

TEST_CASE("another algorithm does not take over the parameters of the file's own", "[config]") {
  const std::string file = "[cc]\nalgorithm = \"pace\"\nparams = { gain = 0.25, on = true }\n";
  CHECK(overridden(file, {"cc.algorithm=react"}).value.cc.params.empty());
  CHECK(overridden(file, {"cc.algorithm=react"}).errors.empty());
  CHECK(overridden(file, {"cc.algorithm=pace"}).value.cc.params.size() == 2);
  // What an override gave stays, whichever comes first.
  for (const Overrides& given : {Overrides{"cc.params.stages=3", "cc.algorithm=react"},
                                 Overrides{"cc.algorithm=react", "cc.params.stages=3"}}) {
    const Read<Scenario> of = overridden(file, given);
    REQUIRE(of.value.cc.params.size() == 1);
    CHECK(of.value.cc.params[0].name == "stages");
  }
}

}  // namespace
}  // namespace paceline::config
