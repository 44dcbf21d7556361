// Peak buffering against load: the comparison that SIRD's paper makes with Homa, in small.
// docs/fidelity.md has the figures.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

double peak_at(const std::string& algorithm, const std::string& load) {
  const tools::ScenarioRun r =
      run("seed = 7\ncc = { algorithm = \"" + algorithm +
          "\", fallback = \"dcqcn\", fallback_profile = \"paper\" }\n[fabric]\nhosts = 16\n"
          "[workload]\nkind = \"open_loop\"\nwindow = \"4ms\"\nload = " +
          load + "\n");
  REQUIRE(r.result.reason == "");
  REQUIRE(r.end == RunEnd::completed);
  return r.result.metrics[experiment::Metric::queue_max_bytes];
}

TEST_CASE("buffering: sird stays near B, homa near max_incoming, at every load",
          "[buffering][slow]") {
  constexpr double kPath = 58.7e3;  // bytes of an unloaded round trip
  for (const std::string load : {"0.3", "0.5", "0.7", "0.9"}) {
    CAPTURE(load);
    const double sird = peak_at("sird", load);
    const double homa = peak_at("homa", load);
    // B is 1.5 paths; prefixes of several messages that begin together are not asked for.
    CHECK(sird < 2 * kPath);
    CHECK(homa < 10.5 * kPath);
    CHECK(homa > 4 * sird);
  }
}

}  // namespace
}  // namespace paceline::simtest
