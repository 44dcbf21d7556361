#include "control/experiment/design.h"

#include <catch2/catch.hpp>
#include <set>

using namespace paceline;
using namespace paceline::experiment;

TEST_CASE("repetition seeds are SplitMix64's outputs without their low 11 bits") {
  // Output of the reference implementation for the state 1234567.
  CHECK(repetition_seed(1234567, 0) == 6457827717110365317U >> 11);
  CHECK(repetition_seed(1234567, 1) == 3203168211198807973U >> 11);
  CHECK(repetition_seed(1234567, 4) == 16408922859458223821U >> 11);
}

TEST_CASE("repetition seeds fit a double and a TOML integer, and differ") {
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t experiment : {0ULL, 1ULL, 2ULL, ~0ULL}) {
    for (std::uint32_t r = 0; r < 1000; ++r) {
      const std::uint64_t seed = repetition_seed(experiment, r);
      CHECK(seed < (std::uint64_t{1} << 53));
      seeds.insert(seed);
    }
  }
  // ~0 and 0 start one step of 1 apart, not one step of the generator: nothing is shared.
  CHECK(seeds.size() == 4000);
}

TEST_CASE("paired replay: every combination once, arms of a pair side by side with one seed") {
  const auto runs = paired_replay(3, 2, 4, 9);
  REQUIRE(runs.size() == 24);
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    CHECK(runs[i].arm == 0);
    CHECK(runs[i + 1].arm == 1);
    CHECK(runs[i].scenario == runs[i + 1].scenario);
    CHECK(runs[i].repetition == runs[i + 1].repetition);
    CHECK(runs[i].seed == runs[i + 1].seed);
    CHECK(runs[i].seed == repetition_seed(9, runs[i].repetition));
  }
  // An interrupted experiment leaves whole repetitions.
  for (std::size_t i = 1; i < runs.size(); ++i) {
    CHECK(runs[i].repetition >= runs[i - 1].repetition);
  }
  config::Experiment experiment;
  experiment.seed = 9;
  experiment.repetitions = 4;
  experiment.arms.resize(2);
  experiment.scenarios.resize(3);
  const auto same = paired_replay(experiment);
  REQUIRE(same.size() == runs.size());
  CHECK(same.back().seed == runs.back().seed);
  CHECK(same.back().scenario == 2);
}
