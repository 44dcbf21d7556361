// Figures of the algorithms that hear delay: TIMELY (Mittal et al., SIGCOMM 2015) as analysed by
// Zhu et al. ("ECN or Delay", CoNEXT 2016), and Swift (Kumar et al., SIGCOMM 2020).
// docs/fidelity.md has the table.
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "dataplane/base/jain.h"
#include "tests/sim/figure.h"

namespace paceline::simtest {
namespace {

const std::string kOneMessage =
    "[workload]\nkind = \"incast\"\nfan_in = 1\nmessage_bytes = \"1MB\"\n";

std::string timely(const std::string& profile, std::uint32_t flows,
                   const std::string& params = {}) {
  return "cc = { algorithm = \"timely\", profile = \"" + profile + "\"" + params +
         " }\n[fabric]\nrate = \"10Gb/s\"\nhosts = " + std::to_string(flows + 1) +
         "\n[transport]\nreliability = \"selective\"\npayload_bytes = 1024\n" + kOneMessage;
}

// 10 Gb/s and the parameters of the paper's figures: thresholds 50 and 500 us, 10 Mb/s, 0.8.
TEST_CASE("fidelity: CoNEXT'16 TIMELY's shares are those of its start", "[fidelity]") {
  const auto shares = [](const std::string& profile, double second_start_us) {
    const Watched w = watch_flows(timely(profile, 2, ", params = { start_rate = 0.5 }"),
                                  {{1, 0, 0}, {2, 0, second_start_us}}, 0, 200'000, 100);
    const std::vector<double> r = w.rates({1, 2}, 100'000, 200'000);
    UNSCOPED_INFO("FIGURE timely " << profile << " second at " << second_start_us << ": " << r[0]
                                   << " " << r[1] << " queue " << w.queue_mean(100'000, 200'000)
                                   << " +- " << w.queue_deviation(100'000, 200'000));
    return r;
  };
  for (const double start : {0.0, 10'000.0}) {
    const std::vector<double> original = shares("default", start);
    const std::vector<double> patched = shares("patched", start);
    // 1024 of 1106 bytes are payload: 9.26 Gb/s.
    CHECK(jain_index(patched) > 0.999);
    CHECK(patched[0] + patched[1] > 0.98 * 9.26);
    // Any split is a fixed point of the original: nothing brings its flows together, and the later
    // one stays behind for good.
    CHECK(original[0] > (start > 0 ? 3 : 1.5) * original[1]);
    CHECK(original[0] + original[1] > 0.9 * 9.26);
  }
}

TEST_CASE("fidelity: CoNEXT'16 the queue of patched TIMELY is its fixed point", "[fidelity]") {
  for (const std::uint32_t flows : {2U, 4U, 8U}) {
    std::vector<FigureFlow> all;
    for (std::uint32_t i = 0; i < flows; ++i) all.push_back({i + 1, 0, 1.0 * i});
    const std::string start = ", params = { start_rate = " + std::to_string(1.0 / flows) + " }";
    const Watched original = watch_flows(timely("default", flows, start), all, 0, 100'000, 20);
    const Watched patched = watch_flows(timely("patched", flows, start), all, 0, 100'000, 20);
    const double mean = patched.queue_mean(50'000, 100'000);
    const double swing = original.queue_deviation(50'000, 100'000);
    INFO("FIGURE timely " << flows << " flows: original " << original.queue_mean(50'000, 100'000)
                          << " +- " << swing << ", patched " << mean << " +- "
                          << patched.queue_deviation(50'000, 100'000));
    // A round trip of ref (1 + n delta / (beta C)), ref 50 us, delta 10 Mb/s, beta 0.008, less that
    // of the empty path, 4 us and two packets: at 1.25 kB per us.
    CHECK(mean == Approx((50 * (1 + 0.125 * flows) - 6) * 1'250).epsilon(0.01));
    CHECK(patched.queue_deviation(50'000, 100'000) < 0.01 * mean);
    // The original swings by more than its mean: the queue runs empty and comes back.
    CHECK(swing > original.queue_mean(50'000, 100'000));
    CHECK(original.queue_least(50'000, 100'000) == 0);
  }
}

// 50 Gb/s and a switch that drops. Windows begin at a packet.
std::string swift(std::uint32_t flows, const std::string& params) {
  return "cc = { algorithm = \"swift\", params = { start_window = 1" + params +
         " } }\n[fabric]\nrate = \"50Gb/s\"\nhosts = " + std::to_string(flows + 1) +
         "\nbuffer = \"12MB\"\nflow_control = \"none\"\npfc = { alpha = 8 }\n"
         "ecn = { enabled = false }\n" +
         kOneMessage;
}

struct ManyToOne {
  double goodput = 0;  // Gb/s of payload sent for the first time
  double jain = 0;
  double queue_us = 0;  // mean, as time
  double loss = 0;      // of all packets
};

ManyToOne many_to_one(std::uint32_t flows, const std::string& params) {
  std::vector<FigureFlow> all;
  std::vector<std::uint32_t> senders;
  for (std::uint32_t i = 0; i < flows; ++i) {
    all.push_back({i + 1, 0, 2.0 * i});
    senders.push_back(i + 1);
  }
  const double from = 2.0 * flows + 10'000;
  const double to = from + 20'000;
  const Watched w = watch_flows(swift(flows, params), all, 0, to, 20);
  const std::vector<double> r = w.rates(senders, from, to);
  ManyToOne out;
  out.goodput = std::accumulate(r.begin(), r.end(), 0.0);
  out.jain = jain_index(r);
  out.queue_us = w.queue_mean(from, to) * 8 / 50e3;
  out.loss =
      static_cast<double>(w.stats.total_drops()) / static_cast<double>(w.stats.injected_packets);
  UNSCOPED_INFO("FIGURE swift " << flows << params << ": goodput " << out.goodput << " jain "
                                << out.jain << " queue " << out.queue_us << " us loss " << out.loss
                                << " repeated " << w.counters.retransmitted_packets << " of "
                                << w.counters.tx_data_packets << " timeouts "
                                << w.counters.timeouts);
  return out;
}

TEST_CASE("fidelity: SIGCOMM'20 Swift in incasts of many flows", "[fidelity]") {
  for (const std::uint32_t flows : {100U, 1'000U}) {
    CAPTURE(flows);
    const ManyToOne swift = many_to_one(flows, "");
    const ManyToOne unscaled = many_to_one(flows, ", flow_scale_range_us = 0");
    const ManyToOne whole = many_to_one(flows, ", min_window = 1, flow_scale_range_us = 0");
    // No window may fall below a packet: each flow has one in the queue, whatever the target.
    CHECK(whole.queue_us == Approx(flows * 4'178 * 8 / 50e3).epsilon(0.1));
    // Windows of less keep the round trip at the target of 25 us, scaled to 125 at most.
    CHECK(swift.queue_us < 125);
    // Everybody adds his part of a packet per round trip for as long as news takes, and a thousand
    // windows far below a packet are that much coarser.
    CHECK(unscaled.queue_us < 45);
    CHECK(unscaled.queue_us < 0.5 * swift.queue_us);
    CHECK(swift.goodput > 0.95 * 49);
    CHECK(swift.loss == 0);
    CHECK(swift.jain > 0.85);
    CHECK(swift.jain > unscaled.jain + 0.2);  // what scaling is for: small windows are let grow
  }
}

// Five thousand flows of a packet each are 21 MB, more than the switch has.
TEST_CASE("fidelity: SIGCOMM'20 Swift with and without windows below a packet",
          "[fidelity][slow]") {
  const ManyToOne swift = many_to_one(5'000, "");
  const ManyToOne whole = many_to_one(5'000, ", min_window = 1");
  CHECK(swift.goodput > 0.9 * 49);
  CHECK(swift.loss < 0.001);
  CHECK(whole.loss > 0.01);
  CHECK(whole.goodput < swift.goodput);
}

}  // namespace
}  // namespace paceline::simtest
