// What Swift does in the large (Kumar et al., SIGCOMM 2020): the queue it keeps follows from its
// target, nothing is lost, and flows that share a queue get alike.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/jain.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kSwift = "cc = { algorithm = \"swift\" }\n";

double metric(const tools::ScenarioRun& r, experiment::Metric m) { return r.result.metrics[m]; }

TEST_CASE("swift claims: an incast keeps the port busy and the queue within the target",
          "[swift_claims]") {
  for (const unsigned senders : {4U, 16U}) {
    for (const char* reliability : {"go_back_n", "selective"}) {
      CAPTURE(senders, reliability);
      const tools::ScenarioRun r = run(kSwift + incast(1, senders, "4MB"),
                                       {"transport.reliability=" + std::string(reliability)});
      REQUIRE(r.end == RunEnd::completed);
      CHECK(r.network.total_drops() == 0);
      CHECK(r.counters.timeouts == 0);
      CHECK(metric(r, experiment::Metric::collective_efficiency) > 0.97);
      // No window grows while the delay is above 25 us and 100 us of flow scaling at most: 1.56 MB
      // at 100 Gb/s; and a start of a window for each sender, all at once.
      const double start = 125'000.0 * senders;
      CHECK(metric(r, experiment::Metric::queue_max_bytes) < 1.56e6 + start);
      std::vector<double> rates;
      for (const tools::FlowRow& flow : r.flows) {
        rates.push_back(1.0 / static_cast<double>(flow.fct.count));
      }
      CHECK(jain_index(rates) > 0.98);
    }
  }
}

TEST_CASE("swift claims: without flow scaling the queue is what the base target says",
          "[swift_claims]") {
  const tools::ScenarioRun r = run(kSwift + incast(1, 8, "20MB"),
                                   {"cc.params.flow_scale_range_us=0", "cc.params.start_window=2"});
  REQUIRE(r.end == RunEnd::completed);
  // 25 us at 100 Gb/s are 312 kB, of which the empty path takes some 60; and each of eight windows
  // overshoots by a packet per round trip for as long as news takes.
  CHECK(metric(r, experiment::Metric::queue_p99_bytes) < 330'000);
  CHECK(metric(r, experiment::Metric::queue_p99_bytes) > 100'000);
  CHECK(metric(r, experiment::Metric::collective_efficiency) > 0.95);
}

}  // namespace
}  // namespace paceline::simtest
