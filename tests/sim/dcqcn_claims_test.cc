// What DCQCN does in the large (Zhu et al., SIGCOMM 2015): notifications no faster than their
// interval, a queue that falls after the first burst, and a fair share in the end.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/jain.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kIncast = incast(1, 8, "10MB");

TEST_CASE("dcqcn claims: no more than one CNP per flow and interval", "[dcqcn_claims]") {
  for (const std::int64_t interval_us : {10, 50, 200}) {
    CAPTURE(interval_us);
    const tools::ScenarioRun r = run(
        kDcqcnPaper + kIncast, {"transport.cnp_interval=" + std::to_string(interval_us) + "us"});
    REQUIRE(r.end == RunEnd::completed);
    const auto intervals = static_cast<std::uint64_t>(r.result.simulated.count) /
                           static_cast<std::uint64_t>(interval_us * 1'000'000);
    CHECK(r.counters.cnps_sent > 0);
    CHECK(r.counters.cnps_sent <= 8 * (intervals + 1));
    CHECK(r.counters.cnps_received == r.counters.cnps_sent);
    CHECK(r.counters.cnps_sent < r.counters.rx_ce_packets);  // marks came faster than that
  }
  // An interval of 0 answers every mark.
  const tools::ScenarioRun every = run(kDcqcnPaper + kIncast, {"transport.cnp_interval=0us"});
  CHECK(every.counters.cnps_sent == every.counters.rx_ce_packets);
}

// Bytes in the queue towards host 0 and bytes that each sender has sent, every 50 us.
struct Series {
  std::vector<std::uint64_t> queue;
  std::vector<std::vector<std::uint64_t>> sent;
};

Series watch(const std::string& toml, Picos interval) {
  Series series;
  WorldOptions options = checked();
  options.sample_interval = interval;
  options.sample = [&series](const VirtualWorld& world, Picos at) {
    // A look at a queue needs a mutable network; it changes no result (network.h).
    auto& network = const_cast<VirtualWorld&>(world).network();
    series.queue.push_back(network.queue_bytes(network.topology().host_downlink(0), at));
    std::vector<std::uint64_t> sent;
    for (std::uint32_t h = 1; h < world.hosts(); ++h) {
      sent.push_back(world.engine(h).counters().tx_data_bytes);
    }
    series.sent.push_back(std::move(sent));
  };
  VirtualWorld world = world_of(toml, options);
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(broken_law(world) == "");
  return series;
}

TEST_CASE("dcqcn claims: the queue falls after the first burst, flows converge to a fair share",
          "[dcqcn_claims]") {
  // Eight flows start at line rate and overrun the port by seven times its rate until CNPs have
  // come back and alpha, 1 at first, has halved rates a few times.
  std::string toml = kDcqcnPaper + kIncast;
  toml.replace(toml.find("10MB"), 4, "40MB");
  const Picos interval = picos_from_micros(50);
  const Series series = watch(toml, interval);
  const std::size_t n = series.queue.size();
  REQUIRE(n > 200);  // 320 MB take 26 ms

  const auto burst = std::max_element(series.queue.begin(), series.queue.end());
  CHECK(burst - series.queue.begin() < 10);  // the deepest queue is that of the first 0.5 ms
  // Afterwards kmax bounds it: above, every packet is marked and every flow cut once per 50 us.
  std::vector<std::uint64_t> later(series.queue.begin() + static_cast<std::ptrdiff_t>(n / 4),
                                   series.queue.end());
  CHECK(*std::max_element(later.begin(), later.end()) < 1'600'000);
  std::sort(later.begin(), later.end());
  CHECK(static_cast<double>(later[later.size() / 2]) < 0.5 * static_cast<double>(*burst));

  // Shares over the second and third quarter, when nobody has finished.
  std::vector<double> shares;
  for (std::size_t h = 0; h < 8; ++h) {
    shares.push_back(static_cast<double>(series.sent[3 * n / 4][h] - series.sent[n / 4][h]));
  }
  CHECK(jain_index(shares) > 0.95);
}

TEST_CASE("dcqcn claims: a newcomer gets its share of a busy link", "[dcqcn_claims]") {
  // Two flows of 100 MB share the port; a third comes 3 ms later.
  config::Scenario s = prepared(kDcqcnHpcc + kIncast).scenario;
  s.fabric.hosts = 4;
  MessagePlan plan;
  plan.messages = {{.src = 1, .dst = 0, .bytes = 100'000'000},
                   {.src = 2, .dst = 0, .bytes = 100'000'000},
                   {.src = 3, .dst = 0, .bytes = 60'000'000, .start = picos_from_micros(3000)}};
  std::vector<std::uint64_t> before;
  std::vector<std::uint64_t> after;
  WorldOptions options;
  options.sample_interval = picos_from_micros(1000);
  options.sample = [&](const VirtualWorld& world, Picos at) {
    const bool first = at == picos_from_micros(8000);
    if (!first && at != picos_from_micros(14'000)) return;
    for (std::uint32_t h = 1; h < 4; ++h) {
      (first ? before : after).push_back(world.engine(h).counters().tx_data_bytes);
    }
  };
  VirtualWorld world(s, plan, options);
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(after.size() == 3);
  std::vector<double> shares;
  for (std::size_t i = 0; i < 3; ++i) {
    shares.push_back(static_cast<double>(after[i] - before[i]));
  }
  CAPTURE(shares);
  CHECK(jain_index(shares) > 0.9);
  // Between 5 and 11 ms after the newcomer the port is busy: 6 ms at 100 Gb/s carry 75 MB.
  CHECK(shares[0] + shares[1] + shares[2] > 0.85 * 75e6);
}

}  // namespace
}  // namespace paceline::simtest
