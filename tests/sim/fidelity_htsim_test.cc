// Rows of the results that the Ultra Ethernet consortium's simulator keeps beside its code
// (ultraethernet/uet-htsim @40ccb05, htsim/sim/datacenter/validate_outputs): its matrices of
// connections under the rules of its program for UEC, here as a scenario. docs/fidelity.md has the
// table and the causes of what differs.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

struct HtsimRow {
  std::string matrix;  // of tests/unit/workload/matrices
  std::string cc;      // "nscc" or "rccc"
  std::string load_balancing;
  unsigned paths = 0;
  std::string topology;  // "fat_tree", "leaf_spine_4" or "leaf_spine_8" (oversubscription)
  unsigned queue = 0;    // packets; 0: what the path holds
  unsigned window = 0;   // packets of the first window; 0: 1.5 times what the path holds
  double first_us = 0;
  double tail_us = 0;
};

// tests/sim/reference/htsim_uec_validate.csv
std::vector<HtsimRow> htsim_rows() {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) +
                     "/tests/sim/reference/htsim_uec_validate.csv");
  std::string line;
  REQUIRE(std::getline(file, line));
  REQUIRE(line ==
          "matrix,cc,load_balancing,paths,topology,queue_pkts,cwnd_pkts,first_fct_us,tail_fct_us");
  std::vector<HtsimRow> rows;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    HtsimRow r;
    REQUIRE((fields >> r.matrix >> r.cc >> r.load_balancing >> r.paths >> r.topology >> r.queue >>
             r.window >> r.first_us >> r.tail_us));
    rows.push_back(r);
  }
  return rows;
}

// Its rules: packets of 4,150 B with 64 of headers, everything else 64 B; switches mark between 20
// and 80 % of what the longest path holds and trim what does not fit beside that; the receiver's
// pace follows marks where the fabric is oversubscribed alone. Not expressed: an acknowledgement of
// four packets, and the timer, which nothing here waits for.
//
// Spraying: `mixed` there leaves marked entropies and reuses good ones, which comes near to a
// choice of the switches for each packet; `oblivious` has a fixed set of entropies, as our source
// ports are. A switch hashes them, so that a flow's share of a link is uneven for all of its time.
struct HtsimFabric {
  std::string keys;
  unsigned hops = 6;
  unsigned gbps = 100;
  unsigned oversubscription = 1;
};

std::string matrix_of(const HtsimRow& row) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/matrices/" + row.matrix;
}

HtsimFabric htsim_fabric(const HtsimRow& row) {
  if (row.topology != "fat_tree") {
    const unsigned spines = row.topology == "leaf_spine_4" ? 8 : 4;
    return {fmt::format("topology = \"leaf_spine\"\nleaves = 32\nhosts_per_leaf = 32\n"
                        "spines = {}\n",
                        spines),
            4, 100, 32 / spines};
  }
  std::ifstream matrix(matrix_of(row));
  std::string word;
  unsigned nodes = 0;
  REQUIRE((matrix >> word >> nodes));
  return {fmt::format("topology = \"fat_tree\"\nk = {}\n", std::lround(std::cbrt(4.0 * nodes)))};
}

std::string htsim_scenario(const HtsimRow& row, const HtsimFabric& fabric) {
  constexpr double kPacket = 4150;
  // Its integers: 4,150 B and 64 B at the hosts' rate.
  const unsigned hop_ns = 2'000 + 4'150 * 8 / fabric.gbps + 64 * 8 / fabric.gbps;
  const double path_bytes = fabric.hops * hop_ns * (fabric.gbps / 8.0);
  const double path_packets = std::ceil(path_bytes / kPacket);
  const double queue = row.queue == 0 ? path_packets : row.queue;
  const bool nscc = row.cc == "nscc";
  std::string params;
  if (!nscc && fabric.oversubscription > 1) {
    params = fmt::format("least_pull = {:.4f}", 0.9 / fabric.oversubscription);
  } else if (!nscc) {
    params = "ecn_feedback = 0";
  }
  if (row.window != 0) {
    params += fmt::format("{}{} = {:.4f}", nscc ? "" : ", ", nscc ? "max_window" : "first_window",
                          row.window * kPacket / path_bytes);
  }
  return fmt::format(
      "name = \"htsim\"\n[fabric]\n{}rate = \"{}Gb/s\"\ndelay = \"1us\"\nbuffer = \"1GiB\"\n"
      "fixed_overhead_bytes = 64\nsmall_packet_bytes = 64\nflow_control = \"none\"\n"
      "ecn = {{ kmin = \"{}B\", kmax = \"{}B\", pmax = 1.0 }}\n"
      "trim = {{ enabled = true, threshold = \"{}B\" }}\nload_balance = \"{}\"\n"
      "[transport]\npayload_bytes = 4086\ncalibration = true\nreliability = \"selective\"\n"
      "window_packets = 4096\nreorder_packets = 4096\nretransmit_timeout = \"100ms\"\n{}"
      "[cc]\nalgorithm = \"{}\"\nprofile = \"{}\"\nparams = {{ {} }}\n"
      "[workload]\nmatrix_file = \"{}\"\nstart_unit = \"ps\"\n",
      fabric.keys, fabric.gbps, std::ceil(path_packets * 0.2) * kPacket,
      std::ceil(path_packets * 0.8) * kPacket, (queue - 1) * kPacket,
      row.load_balancing == "mixed" && row.paths > 1 ? "spray_random" : "ecmp",
      row.paths > 1 ? fmt::format("multipath = \"packet\"\npaths = {}\n", std::min(row.paths, 64U))
                    : "",
      nscc ? "nscc" : "eqds", nscc ? "trimming" : "uec", params, matrix_of(row));
}

struct HtsimTimes {
  double first_us = 0;
  double tail_us = 0;
};

HtsimTimes run_htsim(const HtsimRow& row, const HtsimFabric& fabric, std::uint64_t seed = 1) {
  const tools::PreparedScenario p = prepared(htsim_scenario(row, fabric));
  const tools::ScenarioRun run = tools::run_scenario(p, p.scenario.cc, seed, {});
  REQUIRE(run.end == RunEnd::completed);
  HtsimTimes out{1e18, 0};
  REQUIRE(run.counters.completion_errors == 0);
  for (const tools::FlowRow& flow : run.flows) {
    const double us = static_cast<double>(flow.fct.count) / 1e6;
    out.first_us = std::min(out.first_us, us);
    out.tail_us = std::max(out.tail_us, us);
  }
  return out;
}

// The tails of that many draws, in rising order.
std::vector<double> tails(const HtsimRow& row, const HtsimFabric& fabric, std::uint64_t seeds) {
  std::vector<double> drawn;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    drawn.push_back(run_htsim(row, fabric, seed).tail_us);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

double median_tail(const HtsimRow& row, const HtsimFabric& fabric, std::uint64_t seeds) {
  return tails(row, fabric, seeds)[seeds / 2];
}

// With one path a flow has what its hash gives it, and the tail is that of the worst of all: whole
// flows on one link. Several draws stand for theirs.
double compared_tail(const HtsimRow& row, std::uint64_t seeds) {
  const HtsimFabric fabric = htsim_fabric(row);
  return median_tail(row, fabric, row.paths > 1 ? 1 : seeds);
}

void compare(const HtsimRow& row, double tail_us, double most) {
  UNSCOPED_INFO(
      fmt::format("FIGURE {} {} {} {} paths {} queue {}: tail {:.1f} us, there {:.1f}, {:+.1f} %",
                  row.matrix, row.topology, row.cc, row.load_balancing, row.paths, row.queue,
                  tail_us, row.tail_us, (tail_us / row.tail_us - 1) * 100));
  CHECK(tail_us == Approx(row.tail_us).epsilon(most));
}

bool is_small(const HtsimRow& row) {
  return row.matrix.find("1024") == std::string::npos && row.matrix != "incast_128.cm";
}

TEST_CASE("fidelity: flows, incasts and permutations of 16 hosts end as in htsim", "[fidelity]") {
  std::size_t rows = 0;
  for (const HtsimRow& row : htsim_rows()) {
    if (!is_small(row)) continue;
    ++rows;
    compare(row, compared_tail(row, 9), 0.05);
  }
  CHECK(rows == 14);
}

// What spraying is worth: the fewer entropies, the longer one link carries more than its share.
TEST_CASE("fidelity: a set of hashed paths makes the tail that htsim's has", "[fidelity]") {
  HtsimRow row{"perm_16n_16c_2MB.cm", "nscc", "oblivious", 0, "fat_tree"};
  const HtsimFabric fabric = htsim_fabric(row);
  double before = 1e18;
  for (const unsigned paths : {4U, 16U, 64U}) {
    row.paths = paths;
    const double tail = median_tail(row, fabric, 7);
    CAPTURE(paths, tail);
    CHECK(tail < 0.97 * before);
    before = tail;
  }
  row.load_balancing = "mixed";
  CHECK(median_tail(row, fabric, 7) < 0.97 * before);
}

TEST_CASE("htsim: incasts of 128 hosts and everything of 1,024", "[.htsim]") {
  for (const HtsimRow& row : htsim_rows()) {
    if (is_small(row)) continue;
    if (row.paths > 1) {
      compare(row, compared_tail(row, 1), 0.1);
      continue;
    }
    const std::vector<double> drawn = tails(row, htsim_fabric(row), 15);
    UNSCOPED_INFO(fmt::format("FIGURE {} {} {} one path: tail {:.1f} to {:.1f} us, there {:.1f}",
                              row.matrix, row.topology, row.cc, drawn.front(), drawn.back(),
                              row.tail_us));
    CHECK(row.tail_us >= drawn.front());
    CHECK(row.tail_us <= drawn.back());
  }
}

// uec_permutation_8192: 2 MB over leaves and spines, here of 128 hosts.
TEST_CASE("htsim: speeds, oversubscription and paths of a permutation", "[.htsim]") {
  for (const char* cc : {"nscc", "rccc"}) {
    const auto tail = [&](unsigned gbps, unsigned spines, unsigned paths) {
      const HtsimRow row{"perm_128n_128c_2MB.cm", cc, "oblivious", paths, "", gbps / 4, 0, 0, 0};
      const HtsimFabric fabric{
          fmt::format("topology = \"leaf_spine\"\nleaves = 8\nhosts_per_leaf = 16\nspines = {}\n",
                      spines),
          4, gbps, 16 / spines};
      const double us = run_htsim(row, fabric).tail_us;
      UNSCOPED_INFO(
          fmt::format("FIGURE {} {} Gb/s {}:1 {} paths: tail {:.1f} us, {:.2f} times the time on "
                      "the link",
                      cc, gbps, 16 / spines, paths, us, us * gbps / (490 * 33.2)));
      return us;
    };
    const double plain = tail(400, 16, 64);
    CHECK(tail(400, 16, 32) > plain);
    CHECK(tail(400, 16, 16) > 1.05 * plain);
    // Faster links: less time, and more of it is not on the link.
    CHECK(tail(200, 16, 64) > 1.6 * plain);
    CHECK(tail(200, 16, 64) < 2 * plain);
    CHECK(tail(800, 16, 64) > plain / 2);
    CHECK(tail(400, 4, 64) > 3 * plain);
    CHECK(tail(400, 2, 64) > 1.5 * tail(400, 4, 64));
  }
}

}  // namespace
}  // namespace paceline::simtest
