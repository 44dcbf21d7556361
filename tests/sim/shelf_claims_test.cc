// What the published algorithms of the shelf claim, one claim per case, in virtual time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "dataplane/base/numbers/jain.h"
#include "tests/sim/conformance.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

std::string shelf_cc(const std::string& algorithm, const std::string& rest = {}) {
  return "cc = { algorithm = \"" + algorithm + "\"" + rest + " }\n";
}
// Every mark is echoed, whether XACKs count marks or not.
const std::string kXacks = "transport = { reliability = \"selective\", cnp_interval = \"0us\" }\n";
// The HPCC simulator's step for DCTCP: 30 kB per 10 Gb/s.
const std::string kStep = "ecn = { kmin = \"300kB\", kmax = \"300kB\", pmax = 1 }\n";

std::string with_step(std::string toml) {
  return toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\n" + kStep);
}

double shelf_metric(const tools::ScenarioRun& r, experiment::Metric m) {
  return r.result.metrics[m];
}

// Jain's index of the rates of all flows.
double alike(const tools::ScenarioRun& r) {
  std::vector<double> rates;
  for (const tools::FlowRow& flow : r.flows) {
    rates.push_back(1.0 / static_cast<double>(flow.fct.count));
  }
  return jain_index(rates);
}

TEST_CASE("shelf claims: dctcp keeps its queue at the step and the port busy", "[shelf_claims]") {
  const tools::ScenarioRun r = run(with_step(shelf_cc("dctcp") + kXacks + incast(1, 8, "4MB")));
  REQUIRE(r.end == RunEnd::completed);
  CHECK(shelf_metric(r, experiment::Metric::collective_efficiency) > 0.97);
  CHECK(shelf_metric(r, experiment::Metric::queue_p99_bytes) < 600e3);
  CHECK(alike(r) > 0.95);
}

TEST_CASE("shelf claims: dctcp cuts less than TCP: a lower step costs no throughput",
          "[shelf_claims]") {
  // A step of half a path. With alpha nailed to 1 it is TCP with ECN and drains the queue.
  std::string low = with_step(shelf_cc("dctcp") + kXacks + incast(1, 2, "8MB"));
  for (std::size_t at; (at = low.find("300kB")) != std::string::npos;) low.replace(at, 5, "30kB");
  const tools::ScenarioRun dctcp = run(low);
  const tools::ScenarioRun tcp = run(low, {"cc.params.gain=0.0001"});
  REQUIRE(dctcp.end == RunEnd::completed);
  REQUIRE(tcp.end == RunEnd::completed);
  const auto efficiency = experiment::Metric::collective_efficiency;
  CHECK(shelf_metric(dctcp, efficiency) > 0.95);
  CHECK(shelf_metric(dctcp, efficiency) > shelf_metric(tcp, efficiency));
}

TEST_CASE("shelf claims: theta-powertcp rests with a queue of the sum of its betas",
          "[shelf_claims]") {
  for (const unsigned flows : {4U, 8U}) {
    CAPTURE(flows);
    // The first window of all but one flow waits at first: 59 kB each.
    std::string toml = shelf_cc("theta-powertcp") + kXacks + incast(1, flows, "4MB");
    VirtualWorld world = world_of(toml, checked());
    REQUIRE(world.run() == RunEnd::completed);
    REQUIRE(broken_law(world) == "");
    WorldOptions options;
    options.sample_interval = picos_from_micros(20);
    std::vector<std::uint64_t> queue;
    options.sample = [&queue](const VirtualWorld& w, Picos at) {
      auto& network = const_cast<VirtualWorld&>(w).network();
      queue.push_back(network.queue_bytes(network.topology().host_downlink(0), at));
    };
    VirtualWorld watched = world_of(toml, options);
    REQUIRE(watched.run() == RunEnd::completed);
    std::vector<std::uint64_t> later(
        queue.begin() + static_cast<std::ptrdiff_t>(queue.size() / 3),
        queue.begin() + static_cast<std::ptrdiff_t>(queue.size() * 4 / 5));
    std::sort(later.begin(), later.end());
    const auto median = static_cast<double>(later[later.size() / 2]);
    const double beta = 5'900;  // a tenth of the path
    CHECK(median < 1.5 * beta * flows + 2 * 4'178);
    CHECK(median > 0.2 * beta * flows);
  }
}

struct Swing {
  double mean = 0;
  double deviation = 0;
};

// The queue of four TIMELY flows that start at their share, in the second half of the run.
Swing swing(const std::string& law) {
  const std::string params =
      ", params = { start_rate = 0.25, low_us = 15, high_us = 100, min_rtt_us = 10, "
      "additive_increase_mbps = 1000, " +
      law + " }";
  WorldOptions options;
  options.sample_interval = picos_from_micros(10);
  std::vector<double> queue;
  options.sample = [&queue](const VirtualWorld& w, Picos at) {
    auto& network = const_cast<VirtualWorld&>(w).network();
    queue.push_back(
        static_cast<double>(network.queue_bytes(network.topology().host_downlink(0), at)));
  };
  VirtualWorld world = world_of(shelf_cc("timely", params) + kXacks + incast(1, 4, "8MB"), options);
  REQUIRE(world.run() == RunEnd::completed);
  const std::size_t from = queue.size() / 2;
  const std::size_t to = queue.size() * 9 / 10;
  const auto n = static_cast<double>(to - from);
  Swing result;
  for (std::size_t i = from; i < to; ++i) result.mean += queue[i] / n;
  double squares = 0;
  for (std::size_t i = from; i < to; ++i) {
    squares += (queue[i] - result.mean) * (queue[i] - result.mean);
  }
  result.deviation = std::sqrt(squares / n);
  return result;
}

TEST_CASE("shelf claims: patched TIMELY rests at its fixed point, the original swings",
          "[shelf_claims]") {
  const Swing original = swing("decrease = 0.8");
  const Swing patched = swing("decrease = 0.1, patched = 1");
  CAPTURE(original.mean, original.deviation, patched.mean, patched.deviation);
  CHECK(patched.deviation < 0.1 * original.deviation);
  // A round trip of ref (1 + n delta / (beta C)) = 15 us x 1.4, of which 4.7 us are the empty path.
  CHECK(patched.mean == Approx((15 * 1.4 - 4.7) * 12'500).epsilon(0.05));
}

TEST_CASE("shelf claims: nscc fills the port and keeps the delay near its target",
          "[shelf_claims]") {
  // Marks from a fifth to four fifths of the path, as its simulator has them.
  std::string toml = shelf_cc("nscc") + kXacks + incast(1, 4, "4MB");
  toml.replace(toml.find("[fabric]\n"), 9,
               "[fabric]\necn = { kmin = \"12kB\", kmax = \"47kB\", pmax = 1 }\n");
  const tools::ScenarioRun r = run(toml);
  REQUIRE(r.end == RunEnd::completed);
  CHECK(shelf_metric(r, experiment::Metric::collective_efficiency) > 0.95);
  // A target of one round trip is 59 kB of queue; starts of one and a half paths, four at once.
  CHECK(shelf_metric(r, experiment::Metric::queue_p99_bytes) < 4 * 90e3 + 59e3);
}

TEST_CASE("shelf claims: quick adapt shortens the queue of an incast", "[shelf_claims]") {
  std::string toml = shelf_cc("nscc") + kXacks + incast(1, 32, "500kB");
  toml.replace(toml.find("[fabric]\n"), 9,
               "[fabric]\necn = { kmin = \"12kB\", kmax = \"47kB\", pmax = 1 }\n");
  const tools::ScenarioRun with = run(toml);
  const tools::ScenarioRun without = run(toml, {"cc.params.quick_adapt=0"});
  REQUIRE(with.end == RunEnd::completed);
  REQUIRE(without.end == RunEnd::completed);
  const auto mean = experiment::Metric::queue_p99_bytes;
  CHECK(shelf_metric(with, mean) <= shelf_metric(without, mean));
  CHECK(shelf_metric(with, experiment::Metric::collective_efficiency) > 0.9);
}

}  // namespace
}  // namespace paceline::simtest
