// What trimming and receiver credits are for: an incast whose queue has a bound that does not grow
// with its senders, known losses instead of timeouts, and a port that stays busy.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kEqds =
    "cc = { algorithm = \"eqds\", fallback = \"dcqcn\", fallback_profile = \"paper\" }\n";
const std::string kSelectiveRepeat = "transport = { reliability = \"selective\" }\n";

// `fan_in` senders, without pauses; trimmed at 64 kB where `trims`.
std::string trimmed_incast(const std::string& cc, unsigned fan_in, const std::string& bytes,
                           bool trims = true) {
  std::string toml = cc + kSelectiveRepeat + incast(1, fan_in, bytes);
  toml.replace(toml.find("[fabric]\n"), 9,
               trims ? "[fabric]\npfc = { enabled = false }\n"
                       "trim = { enabled = true, threshold = \"64kB\" }\n"
                     : "[fabric]\npfc = { enabled = false }\n");
  return toml;
}

double claimed(const tools::ScenarioRun& r, experiment::Metric metric) {
  return r.result.metrics[metric];
}

TEST_CASE("trimming claims: the queue of an eqds incast is the threshold, and headers",
          "[trimming_claims]") {
  for (const unsigned fan_in : {16U, 64U, 128U}) {
    CAPTURE(fan_in);
    const tools::ScenarioRun r = run(trimmed_incast(kEqds, fan_in, "500kB"));
    INFO(r.result.reason);
    REQUIRE(r.end == RunEnd::completed);
    CHECK(r.result.reason == "");
    // The threshold, the packet that passes it, and headers of 98 bytes. While a window of 22
    // packets comes in, each packet time brings one from each sender: more than 42 are more than
    // leave.
    const double wait = 100.0 * fan_in;
    const double gather = 22 * std::max(0.0, 100.0 * fan_in - 4170);
    CHECK(claimed(r, experiment::Metric::queue_max_bytes) < 64e3 + 4200 + wait + gather);
    CHECK(r.network.total_drops() == 0);
    CHECK(r.network.trimmed_packets > 0);
    CHECK(r.counters.trim_losses > 0);
    CHECK(r.counters.timeouts == 0);
    CHECK(claimed(r, experiment::Metric::collective_efficiency) > 0.9);
  }
}

TEST_CASE("trimming claims: eqds keeps the port busy, with trimming and without",
          "[trimming_claims]") {
  for (const bool trims : {true, false}) {
    CAPTURE(trims);
    const tools::ScenarioRun r = run(trimmed_incast(kEqds, 8, "10MB", trims));
    INFO(r.result.reason);
    REQUIRE(r.end == RunEnd::completed);
    // 0.99 of the link is pulled; start and end are a round trip or two of 6.7 ms.
    CHECK(claimed(r, experiment::Metric::collective_efficiency) > 0.97);
    CHECK(r.counters.timeouts == 0);
    CHECK(r.network.total_drops() == 0);
    // Without trimming the speculative windows stand in the queue once: 88 kB each.
    if (!trims) CHECK(claimed(r, experiment::Metric::queue_max_bytes) < 8 * 92e3);
  }
}

TEST_CASE("trimming claims: without trimming, speculation that is lost costs no timeout",
          "[trimming_claims]") {
  // A buffer of 700 kB, of which a queue may have an eighth of what is free, and 64 windows of 88
  // kB.
  std::string toml = trimmed_incast(kEqds, 64, "500kB", false);
  toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nbuffer = \"700kB\"\n");
  const tools::ScenarioRun r = run(toml);
  INFO(r.result.reason);
  REQUIRE(r.end == RunEnd::completed);
  CHECK(r.network.total_drops() > 0);
  CHECK(claimed(r, experiment::Metric::collective_efficiency) > 0.8);
}

TEST_CASE("trimming claims: nscc adapts to what is trimmed", "[trimming_claims]") {
  const std::string nscc = "cc = { algorithm = \"nscc\", profile = \"trimming\" }\n";
  const tools::ScenarioRun r = run(trimmed_incast(nscc, 32, "500kB"));
  INFO(r.result.reason);
  REQUIRE(r.end == RunEnd::completed);
  CHECK(r.network.trimmed_packets > 0);
  CHECK(r.network.total_drops() == 0);
  CHECK(claimed(r, experiment::Metric::queue_max_bytes) < 64e3 + 4200 + 100 * 32);
  CHECK(r.counters.timeouts == 0);
  // A packet that comes trimmed goes again once: probes of it would be trimmed as well.
  CHECK(r.counters.tail_probes < r.network.trimmed_packets / 100);
  CHECK(claimed(r, experiment::Metric::collective_efficiency) > 0.9);
}

TEST_CASE("trimming claims: go-back-N completes, too", "[trimming_claims]") {
  std::string toml = trimmed_incast(kEqds, 8, "200kB");
  toml.replace(toml.find(kSelectiveRepeat), kSelectiveRepeat.size(), "");
  const tools::ScenarioRun r = run(toml);
  INFO(r.result.reason);
  REQUIRE(r.end == RunEnd::completed);
  CHECK(r.network.trimmed_packets > 0);
}

TEST_CASE("trimming claims: a divided fabric trims the same", "[trimming_claims]") {
  const std::string toml =
      kEqds + kSelectiveRepeat +
      "[fabric]\ntopology = \"leaf_spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n"
      "oversubscription = 2\ntrim = { enabled = true, threshold = \"40kB\" }\n"
      "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"100kB\"\n";
  WorldOptions one;
  VirtualWorld alone = world_of(toml, one);
  REQUIRE(alone.run() == RunEnd::completed);
  CHECK(alone.network().stats().trimmed_packets > 0);
  CHECK(broken_law(alone) == "");
  for (const std::uint32_t threads : {2U, 4U}) {
    WorldOptions several;
    several.threads = threads;
    VirtualWorld divided = world_of(toml, several);
    REQUIRE(divided.run() == RunEnd::completed);
    CHECK(divided.trace_hash() == alone.trace_hash());
    CHECK(divided.network().stats() == alone.network().stats());
    CHECK(broken_law(divided) == "");
  }
}

}  // namespace
}  // namespace paceline::simtest
