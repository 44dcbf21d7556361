// Groups of ranks on fabrics, for tests of the tuner of collectives.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/collective/tune/collective_tune.h"

namespace paceline::tools::tune_samples {

// fabric: lines of [fabric].
inline TuneGroup group_on(const std::string& fabric, std::uint64_t seed = 1,
                          const std::string& algorithm = "fixed") {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  const auto read = config::read_scenario_text("seed = " + std::to_string(seed) + "\n[fabric]\n" +
                                                   fabric + "\n[cc]\nalgorithm = \"" + algorithm +
                                                   "\"\n[workload]\nkind = \"job\"\n",
                                               "sample", ".", options);
  REQUIRE(read.errors == std::vector<std::string>{});
  auto group = tune_group(read.value);
  REQUIRE(group.errors == std::vector<std::string>{});
  return group.value;
}

}  // namespace paceline::tools::tune_samples
