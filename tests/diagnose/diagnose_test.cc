// Diagnosis of worlds with a known fault. The rules were designed with the seeds from kDesign on;
// the bounds are checked with the seeds from kHeldOut on, which the design did not use.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>

#include "control/diagnosis/diagnosis.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tests/diagnose/confusion.h"
#include "tests/diagnose/fault_world.h"
#include "tools/diagnose/diagnosis_text.h"

namespace paceline::tools {
namespace {

constexpr std::uint64_t kDesign = 1;
constexpr std::uint64_t kHeldOut = 3'000'000;

Confusion run_worlds(std::uint64_t first, std::uint64_t count, bool tell) {
  Confusion confusion;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const FaultWorld world = fault_world(seed);
    if (const char* only = std::getenv("ONLY"); only != nullptr && std::string(only).find(world.truth ? std::string(name_of(*world.truth)) : "none") == std::string::npos) continue;
    const auto t0 = std::chrono::steady_clock::now();
    CAPTURE(seed, world.toml);
    auto read = config::read_scenario_text(world.toml, "world", ".", reader_options());
    REQUIRE(read.errors == std::vector<std::string>{});
    auto prepared = prepare(std::move(read.value));
    REQUIRE(prepared.errors == std::vector<std::string>{});
    const ObservedRun observed = observe_scenario(prepared.value, seed, {});
    const auto t1 = std::chrono::steady_clock::now();
    const auto verdicts = diagnosis::diagnose(observed.evidence);
    const auto truth = took_effect(world, observed) ? world.truth : std::nullopt;
    confusion.add(truth, world.culprit, verdicts);
    if (!tell) continue;
    std::string said;
    bool right = !truth || !is_fault(*truth);
    for (const auto& verdict : verdicts) {
      if (!is_fault(verdict.cause)) continue;
      if (verdict.cause != truth || verdict.culprit != world.culprit) for (const auto& line : verdict.evidence) fmt::print("    {}\n", line);
      said += fmt::format(" {}:{}({:.2f})", name_of(verdict.cause), verdict.culprit,
                          verdict.confidence);
      right = verdict.cause == truth && verdict.culprit == world.culprit;
    }
    const auto wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    fmt::print("{} seed {} true {}:{} said{} ({:.1f} ms, {} NICs, {:.1f}+{:.1f} s, {} events){}\n",
               right ? "ok  " : "MISS", seed, truth ? name_of(*truth) : "none", world.culprit, said,
               static_cast<double>(observed.evidence.until.count) / 1e9,
               observed.evidence.nics.size(), std::chrono::duration<double>(t1 - t0).count(),
               wall - std::chrono::duration<double>(t1 - t0).count(), observed.run.network.hops,
               world.truth && !truth ? " NOEFFECT" : "");
    std::fflush(stdout);
  }
  fmt::print("{}", confusion.text());
  return confusion;
}

TEST_CASE("diagnosis: the seeds that rules are made with", "[.design]") {
  const char* first = std::getenv("FIRST");
  const char* count = std::getenv("COUNT");
  run_worlds(first == nullptr ? kDesign : std::strtoull(first, nullptr, 10),
             count == nullptr ? 200 : std::strtoull(count, nullptr, 10), true);
}

// The first of the 942 worlds below. Over all of them precision is 0.96, recall 0.95, and 0.97 of
// the culprits are right (the goals are 0.95, 0.90 and 0.90). Fewer worlds vary more, hence these
// bounds.
TEST_CASE("diagnosis: faults are found and named, and nothing else", "[diagnose][slow]") {
  const Confusion confusion = run_worlds(kHeldOut, 60, false);
  CHECK(confusion.precision() >= 0.9);
  CHECK(confusion.recall() >= 0.85);
  CHECK(confusion.named() >= 0.9);
  CHECK(confusion.network_for_rank() == 0);
}

TEST_CASE("diagnosis: many seeds that rules were not made with", "[.held-out]") {
  run_worlds(kHeldOut, 942, false);
}

}  // namespace
}  // namespace paceline::tools
