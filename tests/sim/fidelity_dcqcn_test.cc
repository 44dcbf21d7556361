// Figures of "Congestion Control for Large-Scale RDMA Deployments" (Zhu et al., SIGCOMM 2015): what
// pauses do to bystanders, what DCQCN does about it, and how its flows converge. 40 Gb/s, the
// paper's parameters and marking. docs/fidelity.md has the table.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "dataplane/base/numbers/jain.h"
#include "tests/sim/figure.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kFigureDcqcn = "cc = { algorithm = \"dcqcn\", profile = \"paper\" }\n";
const std::string kLongMessages =
    "[workload]\nkind = \"incast\"\nfan_in = 1\nmessage_bytes = \"1MB\"\n";
// Marking of the paper: 5 kB, 200 kB, 1 %.
const std::string kPaperFabric =
    "[fabric]\nrate = \"40Gb/s\"\nbuffer = \"12MB\"\n"
    "ecn = { kmin = \"5kB\", kmax = \"200kB\", pmax = 0.01 }\n";
const std::string kPaperHosts = "[transport]\npayload_bytes = 1024\n";

std::string paper_world(const std::string& cc, const std::string& fabric = {}) {
  return cc + kPaperFabric + fabric + kPaperHosts + kLongMessages;
}

config::LinkSpec cable(std::uint32_t a, std::uint32_t b, std::uint64_t gbps = 40) {
  return {a, b, rate_from_gbps(gbps), picos_from_micros(1)};
}

// H1, H2, H3 behind one switch, H4 beside the receiver behind the next: at the second switch three
// flows share a port and one has its own.
FigureWiring unfair() {
  FigureWiring out{5, 2, {}};
  for (std::uint32_t h = 0; h < 3; ++h) out.links.push_back(cable(h, 5));
  out.links.push_back(cable(3, 6));
  out.links.push_back(cable(4, 6));
  out.links.push_back(cable(5, 6));
  return out;
}

std::vector<double> unfair_rates(const std::string& toml) {
  const Watched w = watch_flows(toml, {{0, 4}, {1, 4}, {2, 4}, {3, 4}}, 4, 20'000, 100, unfair());
  CHECK(w.stats.total_drops() == 0);
  return w.rates({0, 1, 2, 3}, 10'000, 20'000);
}

TEST_CASE("fidelity: SIGCOMM'15 figure 3, pauses share by port, DCQCN by flow", "[fidelity]") {
  const std::string fixed = "cc = { algorithm = \"fixed\" }\n";
  // By port: half of 40 Gb/s for H4, a third of the rest for each of the others.
  for (const char* control : {"pfc", "credit"}) {
    const std::vector<double> r =
        unfair_rates(paper_world(fixed, "flow_control = \"" + std::string(control) + "\"\n"));
    CAPTURE(control, r);
    const double others = (r[0] + r[1] + r[2]) / 3;
    CHECK(r[3] / others > 2.5);
    CHECK(r[3] / others < 3.5);
    CHECK(r[0] + r[1] + r[2] + r[3] > 0.9 * 40);
  }
  const std::vector<double> r = unfair_rates(paper_world(kFigureDcqcn));
  CAPTURE(r);
  CHECK(jain_index(r) > 0.97);
  CHECK(r[3] / ((r[0] + r[1] + r[2]) / 3) < 1.4);
  CHECK(r[0] + r[1] + r[2] + r[3] > 0.85 * 40);
}

// T1 with H11..H14 and the victim's source, T2 with its destination, T3 with H31 and H32, T4 with
// the receiver of the incast; one switch above them (the testbed has four and ECMP). The victim
// shares the uplink of T1 with the incast, and nothing with T3.
FigureWiring victims() {
  FigureWiring out{9, 5, {}};
  for (std::uint32_t h = 0; h < 5; ++h) out.links.push_back(cable(h, 9));
  out.links.push_back(cable(5, 10));
  out.links.push_back(cable(6, 12));
  out.links.push_back(cable(7, 11));
  out.links.push_back(cable(8, 11));
  out.links.push_back(cable(9, 13, 80));
  out.links.push_back(cable(10, 13));
  out.links.push_back(cable(11, 13, 80));
  out.links.push_back(cable(12, 13));
  return out;
}

double victim_rate(const std::string& toml, unsigned behind_t3) {
  std::vector<FigureFlow> flows{{0, 6}, {1, 6}, {2, 6}, {3, 6}, {4, 5}};
  for (unsigned i = 0; i < behind_t3; ++i) flows.push_back({7 + i, 6});
  const Watched w = watch_flows(toml, flows, 6, 20'000, 100, victims());
  CHECK(w.stats.total_drops() == 0);
  return w.rate(4, 10'000, 20'000);
}

TEST_CASE("fidelity: SIGCOMM'15 figure 4, a victim of cascading pauses", "[fidelity]") {
  const std::string fixed = "cc = { algorithm = \"fixed\" }\n";
  for (const char* control : {"pfc", "credit"}) {
    CAPTURE(control);
    const std::string toml =
        paper_world(fixed, "flow_control = \"" + std::string(control) + "\"\n");
    const double none = victim_rate(toml, 0);
    const double two = victim_rate(toml, 2);
    CAPTURE(none, two);
    // Paused with the four flows into a port of 40 Gb/s, the victim gets what each of them gets: a
    // quarter; with senders behind T3, which take half of that port, an eighth.
    CHECK(none > 7);
    CHECK(none < 13);
    CHECK(two > 3.5);
    CHECK(two < 6.5);
  }
  // DCQCN: the incast's senders slow down, nobody is paused for long, and T3 is of no account.
  const double none = victim_rate(paper_world(kFigureDcqcn), 0);
  const double two = victim_rate(paper_world(kFigureDcqcn), 2);
  CAPTURE(none, two);
  // Its fair share of the uplink is 16 at least (five flows of 80); the first cuts, before the
  // incast has slowed down, are what it climbs back from, by 40 Mb/s in 55 us.
  CHECK(none > 15);
  CHECK(two > 0.9 * none);
}

TEST_CASE("fidelity: SIGCOMM'15 2 to 16 flows join one by one and share alike", "[fidelity]") {
  double queue_of_fewer = 0;
  for (const std::uint32_t flows : {2U, 4U, 8U, 16U}) {
    CAPTURE(flows);
    std::string toml = paper_world(kFigureDcqcn);
    toml.replace(toml.find("[fabric]\n"), 9,
                 "[fabric]\nhosts = " + std::to_string(flows + 1) + "\n");
    std::vector<FigureFlow> joining;
    std::vector<std::uint32_t> senders;
    for (std::uint32_t i = 0; i < flows; ++i) {
      joining.push_back({i + 1, 0, 2'000.0 * i});
      senders.push_back(i + 1);
    }
    const double joined = 2'000.0 * flows;
    const Watched w = watch_flows(toml, joining, 0, joined + 40'000, 20);
    const std::vector<double> r = w.rates(senders, joined + 20'000, joined + 40'000);
    const double sum = std::accumulate(r.begin(), r.end(), 0.0);
    const double jain = jain_index(r);
    const double queue = w.queue_mean(joined + 20'000, joined + 40'000);
    const std::uint64_t most = w.queue_most(joined + 20'000, joined + 40'000);
    INFO("FIGURE join " << flows << ": jain " << jain << " sum " << sum << " queue " << queue
                        << " most " << most << " deviation "
                        << w.queue_deviation(joined + 20'000, joined + 40'000) << " pauses "
                        << w.stats.pause_frames);
    // 20 ms after the last has joined. 1024 of 1106 bytes are payload, which bounds the sum at 37.
    CHECK(jain > 0.97);
    CHECK(sum > 0.95 * 37);
    CHECK(w.stats.total_drops() == 0);
    CHECK(w.stats.pause_frames == 0);
    // Above kmax all are marked and cut once in 50 us, and 16 flows' steps of 40 Mb/s in 55 us are
    // 4 kB meanwhile; the ramp below gives few flows a shorter queue than many.
    CHECK(most < 250'000);
    CHECK(queue > queue_of_fewer);
    queue_of_fewer = queue;
  }
}

struct Unlike {
  double first = 0;   // the one's rate over the other's, in the first 100 us
  double middle = 0;  // from 50 to 100 ms
  double last = 0;    // from 150 to 200 ms
  double sum = 0;     // then, Gb/s of payload
};

// Two flows into one port of 40 Gb/s that begin at 40 and 5 Gb/s.
Unlike unlike_starts(const std::string& params, const std::string& ecn) {
  const std::string toml =
      "cc = { algorithm = \"dcqcn\", profile = \"paper\", params = { " + params +
      " } }\n[fabric]\nrate = \"40Gb/s\"\nhosts = 3\nbuffer = \"12MB\"\necn = { " + ecn + " }\n" +
      kPaperHosts + kLongMessages;
  config::CcConfig slow = prepared(toml).scenario.cc;
  slow.params.push_back({"start_rate", 0.125});
  const Watched w = watch_flows(toml, {{1, 0, 100}, {2, 0, 100}}, 0, 200'000, 20, {}, {{2, slow}});
  CHECK(w.stats.total_drops() == 0);
  const auto ratio = [&w](double from, double to) {
    return w.rate(1, from, to) / w.rate(2, from, to);
  };
  UNSCOPED_INFO("FIGURE unlike starts, "
                << params << ", " << ecn << ": in 50 ms each " << ratio(10'000, 50'000) << " "
                << ratio(50'000, 100'000) << " " << ratio(100'000, 150'000) << " "
                << ratio(150'000, 200'000) << "; at last " << w.rate(1, 150'000, 200'000) << " and "
                << w.rate(2, 150'000, 200'000) << ", queue " << w.queue_mean(150'000, 200'000)
                << " +- " << w.queue_deviation(150'000, 200'000));
  return {ratio(100, 200), ratio(50'000, 100'000), ratio(150'000, 200'000),
          w.rate(1, 150'000, 200'000) + w.rate(2, 150'000, 200'000)};
}

TEST_CASE("fidelity: SIGCOMM'15 flows of unlike starts meet by DCQCN's timers and not by QCN's",
          "[fidelity][slow]") {
  // A byte counter raises the faster flow more often, and above a cut-off both are cut alike: what
  // is unequal stays so. The timer raises both alike; the ramp cuts the faster one more often.
  const std::string qcn_pace = "byte_counter = 150000, increase_timer_us = 1500";
  const std::string dcqcn_pace = "byte_counter = 10000000";  // and a timer of 55 us
  const std::string cut_off = "kmin = \"40kB\", kmax = \"40kB\", pmax = 1";
  const std::string ramp = "kmin = \"5kB\", kmax = \"200kB\", pmax = 0.01";
  const Unlike qcn = unlike_starts(qcn_pace, cut_off);
  CHECK(qcn.first > 6);  // 8 less what the first cuts are worth
  CHECK(qcn.middle > 10);
  CHECK(qcn.last > 10);
  const Unlike paper = unlike_starts(dcqcn_pace, ramp);
  CHECK(paper.first > 6);
  CHECK(paper.middle < 1.5);
  CHECK(paper.last < 1.25);
  // Either half of the change alone brings them together, more slowly.
  const Unlike timer = unlike_starts(dcqcn_pace, cut_off);
  CHECK(timer.middle > 1.5);
  CHECK(timer.last < 0.75 * timer.middle);
  const Unlike marking = unlike_starts(qcn_pace, ramp);
  CHECK(marking.middle > 1.5);
  CHECK(marking.last < 1.5);
  for (const Unlike* u : {&qcn, &paper, &timer, &marking}) CHECK(u->sum > 0.95 * 37);
}

}  // namespace
}  // namespace paceline::simtest
