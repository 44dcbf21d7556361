// Diagnosis of worlds with a known fault. The rules were designed with seeds below 1,000,000; the
// bounds are checked with the seeds from kHeldOut on, which the design did not use.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
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
constexpr std::uint64_t kHeldOut = 6'000'000;

// A number from the environment, for runs by hand.
std::uint64_t given(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Confusion run_worlds(std::uint64_t first, std::uint64_t count, bool tell) {
  Confusion confusion;
  // By hand, worlds of one cause, or every PARTS-th.
  const char* const only = tell ? std::getenv("CAUSE") : nullptr;
  const std::uint64_t parts = tell ? std::max<std::uint64_t>(given("PARTS", 1), 1) : 1;
  const std::uint64_t part = tell ? given("PART", 0) : 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const FaultWorld world = fault_world(seed);
    if (only && (!world.truth || only != name_of(*world.truth))) continue;
    if ((seed - first) % parts != part) continue;
    CAPTURE(seed, world.toml);
    auto read = config::read_scenario_text(world.toml, "world", ".", reader_options());
    REQUIRE(read.errors == std::vector<std::string>{});
    auto prepared = prepare(std::move(read.value));
    REQUIRE(prepared.errors == std::vector<std::string>{});
    const ObservedRun observed = observe_scenario(prepared.value, seed, {});
    const auto verdicts = diagnosis::diagnose(observed.evidence);
    const auto truth = took_effect(world, observed) ? world.truth : std::nullopt;
    confusion.add(truth, world.culprit, verdicts);
    if (!tell) continue;
    std::string said;
    bool right = !truth || !is_fault(*truth);
    for (const auto& verdict : verdicts) {
      if (!is_fault(verdict.cause)) continue;
      said += fmt::format(" {}:{}({:.2f})", name_of(verdict.cause), verdict.culprit,
                          verdict.confidence);
      right = verdict.cause == truth && verdict.culprit == world.culprit;
    }
    fmt::print("{} seed {} true {}:{} said{} ({:.1f} ms, {} NICs)\n", right ? "ok  " : "MISS", seed,
               truth ? name_of(*truth) : "none", world.culprit, said,
               static_cast<double>(observed.evidence.until.count) / 1e9,
               observed.evidence.nics.size());
    std::fflush(stdout);
  }
  fmt::print("{}", confusion.text());
  return confusion;
}

// CAUSE=slow_nic: of these only worlds with this cause. PARTS=2 PART=1: only every second one.
TEST_CASE("diagnosis: seeds from FIRST on, COUNT of them, told one by one", "[.design]") {
  run_worlds(given("FIRST", kDesign), given("COUNT", 200), true);
}

// Fewer worlds than in docs/jobs.md vary more, hence these bounds.
TEST_CASE("diagnosis: faults are found and named, and nothing else", "[diagnose][slow]") {
  const Confusion confusion = run_worlds(kHeldOut, 60, false);
  CHECK(confusion.precision() >= 0.9);
  CHECK(confusion.recall() >= 0.88);
  CHECK(confusion.named() >= 0.95);
  CHECK(confusion.network_for_rank() == 0);
}

}  // namespace
}  // namespace paceline::tools
