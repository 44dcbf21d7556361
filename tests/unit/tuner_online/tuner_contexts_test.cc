#include "control/tuner/online/tuner_contexts.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/tuner_online/synthetic_plant.h"

namespace paceline::tuner::online {
namespace {

using test::dcqcn;
using test::paper;

// Workloads of which no two are near each other.
Signature workload(std::uint32_t number) {
  Signature out;
  out.load = number % 10;
  out.degree = number / 10 * 3;
  out.bytes = {1.0, 0.0, 0.0};
  out.core_marks = number % 2 == 1;
  return out;
}

}  // namespace

TEST_CASE("tuner contexts: a fresh one begins with the champion and the presets that are not it") {
  TunerState state;
  state.champion = paper();
  PresetLibrary presets;
  Preset other;
  other.name = "other";
  other.signature = workload(3);
  other.params = {{std::string(dcqcn().params[0].name), state.champion[0] / 2}};
  Preset same;
  same.name = "same";
  same.signature = workload(3);
  presets.presets = {same, other};
  choose_context(state, workload(3), presets, dcqcn(), {});
  REQUIRE(state.contexts.size() == 1);
  const Context& now = state.contexts.at(state.context);
  CHECK(state.context == workload(3).key());
  CHECK(now.incumbent == state.champion);
  CHECK(now.incumbent_name == "champion");
  REQUIRE(now.bandit.arms().size() == 1);
  CHECK(now.bandit.arms()[0].name == "other");
}

TEST_CASE("tuner contexts: a workload that is near a known one is taken for it") {
  TunerState state;
  state.champion = paper();
  choose_context(state, workload(3), {}, dcqcn(), {});
  const std::string key = state.context;
  state.contexts.at(key).incumbent_name = "learned";
  state.blocks = 7;
  Signature near = workload(3);
  near.bytes = {0.99, 0.01, 0.0};
  choose_context(state, near, {}, dcqcn(), {});
  CHECK(state.context == key);
  CHECK(state.contexts.at(key).incumbent_name == "learned");
  CHECK(state.contexts.at(key).last_used == 7);
  choose_context(state, workload(8), {}, dcqcn(), {});
  CHECK(state.context != key);
  CHECK(state.contexts.size() == 2);
}

TEST_CASE("tuner contexts: the one not used for longest makes room") {
  TunerState state;
  state.champion = paper();
  for (std::uint32_t n = 0; n < kMostContexts; ++n) {
    state.blocks = n + 1;
    choose_context(state, workload(n), {}, dcqcn(), {});
  }
  REQUIRE(state.contexts.size() == kMostContexts);
  state.blocks = 100;
  choose_context(state, workload(0), {}, dcqcn(), {});  // used again
  choose_context(state, workload(39), {}, dcqcn(), {});
  CHECK(state.contexts.size() == kMostContexts);
  CHECK(state.contexts.contains(workload(0).key()));
  CHECK_FALSE(state.contexts.contains(workload(1).key()));
}

}  // namespace paceline::tuner::online
