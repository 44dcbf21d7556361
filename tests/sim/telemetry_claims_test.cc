// In-band telemetry from switch to algorithm, and what the algorithms that live on it claim, in
// virtual time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/jain.h"
#include "tests/sim/conformance.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

std::string told(const std::string& algorithm, const std::string& rest = {}) {
  return "cc = { algorithm = \"" + algorithm + "\"" + rest +
         " }\ntransport = { reliability = \"selective\" }\n";
}

std::string with_int(std::string toml) {
  return toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nint = true\n");
}

// The queue towards host 0, every 5 us.
std::vector<double> queue_of(const std::string& toml) {
  WorldOptions options = checked();
  options.sample_interval = picos_from_micros(5);
  std::vector<double> queue;
  options.sample = [&queue](const VirtualWorld& w, Picos at) {
    auto& network = const_cast<VirtualWorld&>(w).network();
    queue.push_back(
        static_cast<double>(network.queue_bytes(network.topology().host_downlink(0), at)));
  };
  VirtualWorld world = world_of(toml, options);
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(broken_law(world) == "");
  return queue;
}

double median_of(std::vector<double> values, double from, double to) {
  const auto n = static_cast<double>(values.size());
  REQUIRE(n > 20);
  values = {values.begin() + static_cast<std::ptrdiff_t>(n * from),
            values.begin() + static_cast<std::ptrdiff_t>(n * to)};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double utilisation_of(const std::string& toml) {
  const tools::ScenarioRun r = run(toml);
  REQUIRE(r.end == RunEnd::completed);
  return r.result.metrics[experiment::Metric::collective_efficiency];
}

TEST_CASE("telemetry claims: hpcc keeps links at eta and queues empty", "[telemetry_claims]") {
  const std::string toml = with_int(told("hpcc") + incast(1, 4, "4MB"));
  const std::vector<double> queue = queue_of(toml);
  // A queue means that the link sends all it can: U is 1 at least, and the next round trip has eta
  // of it. At rest there is but what senders who do not know of each other send at one time.
  CHECK(median_of(queue, 0.3, 0.8) < 3 * 4'220);
  // The windows of all but one flow wait at first, and are gone within some round trips.
  CHECK(*std::max_element(queue.begin(), queue.end()) > 100e3);
  const double efficiency = utilisation_of(toml);
  CHECK(efficiency > 0.8);
  CHECK(efficiency < 0.97);
}

TEST_CASE("telemetry claims: a higher eta is more of the link", "[telemetry_claims]") {
  const auto at = [](const std::string& eta) {
    return utilisation_of(
        with_int(told("hpcc", ", params = { eta = " + eta + " }") + incast(1, 2, "8MB")));
  };
  const double low = at("0.8");
  const double high = at("0.98");
  CHECK(low < 0.84);
  CHECK(high > low + 0.1);
}

TEST_CASE("telemetry claims: powertcp rests with a queue of the sum of its betas",
          "[telemetry_claims]") {
  for (const unsigned flows : {4U, 8U}) {
    CAPTURE(flows);
    const double median =
        median_of(queue_of(with_int(told("powertcp") + incast(1, flows, "4MB"))), 0.3, 0.8);
    const double beta = 5'900;  // a tenth of the path
    CHECK(median < 1.5 * beta * flows + 2 * 4'220);
    CHECK(median > 0.2 * beta * flows);
  }
}

// How long after the port fell to a fifth at 200 us until its queue is short again, us.
double settled_after(const std::string& algorithm, const std::string& rest) {
  const std::vector<double> queue = queue_of(
      with_int(told(algorithm, rest) + incast(1, 2, "8MB")) +
      "[[event]]\nat = \"200us\"\nlink = \"host0\"\naction = \"rate\"\nrate = \"20Gb/s\"\n");
  const auto begin = queue.begin() + 40;
  const auto peak = std::max_element(begin, begin + 20);
  // Above what powertcp rests at there, 8 to 25 kB.
  const auto calm = std::find_if(peak, queue.end(), [](double q) { return q < 30e3; });
  REQUIRE(calm != queue.end());
  return 5 * static_cast<double>(calm - begin);
}

TEST_CASE("telemetry claims: a port that slows down is noticed within round trips, not marks",
          "[telemetry_claims]") {
  // At a fifth of the rate a round trip's worth of bytes, 59 kB, takes 24 us to drain; dcqcn waits
  // for marks (from 400 kB on) and for its timers.
  const double hpcc = settled_after("hpcc", "");
  const double powertcp = settled_after("powertcp", "");
  const double dcqcn = settled_after("dcqcn", ", profile = \"paper\"");
  CAPTURE(hpcc, powertcp, dcqcn);
  CHECK(hpcc < 100);
  CHECK(powertcp < 200);  // twice hpcc's queue, at a tenth of a step less in each round trip
  CHECK(dcqcn > 3 * powertcp);
}

// SIGCOMM'19, figure 11a, in small: web search at half load, where DCQCN's queues are what short
// flows wait for and HPCC has none.
TEST_CASE("telemetry claims: short flows of web search wait less under hpcc than under dcqcn",
          "[telemetry_claims][slow]") {
  const auto with = [](const std::string& algorithm, const std::string& profile) {
    const tools::ScenarioRun r = run(shipped(
        "websearch-50", {"cc.algorithm=" + algorithm, "cc.profile=" + profile, "fabric.int=true",
                         "transport.reliability=selective", "workload.window=4ms"}));
    REQUIRE(r.end == RunEnd::completed);
    return r;
  };
  const tools::ScenarioRun hpcc = with("hpcc", "paper");
  const tools::ScenarioRun powertcp = with("powertcp", "default");
  const tools::ScenarioRun dcqcn = with("dcqcn", "hpcc-repo");
  using experiment::Metric;
  const auto of = [](const tools::ScenarioRun& r, Metric m) { return r.result.metrics[m]; };
  INFO("small p99 " << of(hpcc, Metric::slowdown_small_p99) << " "
                    << of(powertcp, Metric::slowdown_small_p99) << " "
                    << of(dcqcn, Metric::slowdown_small_p99));
  INFO("small p50 " << of(hpcc, Metric::slowdown_small_p50) << " "
                    << of(powertcp, Metric::slowdown_small_p50) << " "
                    << of(dcqcn, Metric::slowdown_small_p50));
  INFO("large p50 " << of(hpcc, Metric::slowdown_large_p50) << " "
                    << of(powertcp, Metric::slowdown_large_p50) << " "
                    << of(dcqcn, Metric::slowdown_large_p50));
  // A 15th and a 13th were measured; the paper says up to 95 % less.
  CHECK(of(hpcc, Metric::slowdown_small_p99) < of(dcqcn, Metric::slowdown_small_p99) / 4);
  CHECK(of(powertcp, Metric::slowdown_small_p99) < of(dcqcn, Metric::slowdown_small_p99) / 4);
}

TEST_CASE("telemetry claims: algorithms that do not ask pay nothing", "[telemetry_claims]") {
  for (const std::string algorithm : {"swift", "dcqcn"}) {
    const std::string toml = told(algorithm) + incast(1, 4, "500kB");
    VirtualWorld off = world_of(toml, checked());
    VirtualWorld on = world_of(with_int(toml), checked());
    REQUIRE(off.run() == RunEnd::completed);
    REQUIRE(on.run() == RunEnd::completed);
    CHECK(off.trace_hash() == on.trace_hash());
    CHECK(off.network().stats() == on.network().stats());
  }
}

TEST_CASE("telemetry claims: whoever asks pays for the header, and answers for the records",
          "[telemetry_claims]") {
  const auto hop_bytes = [](const std::string& algorithm) {
    VirtualWorld world = world_of(with_int(told(algorithm) + incast(1, 2, "2MB")), checked());
    REQUIRE(world.run() == RunEnd::completed);
    REQUIRE(broken_law(world) == "");
    return world.network().stats().hop_bytes;
  };
  // 4 MB are 978 packets, each with 42 bytes over two hops, and 16 more in each answer.
  CHECK(hop_bytes("hpcc") == hop_bytes("swift") + 978 * 2 * (42 + 16));
}

}  // namespace
}  // namespace paceline::simtest
