// How much of the NICs' rate a collective over servers of 8 GPUs reaches, by size and servers:
// rings over all rails, emulated, against the curves of SimAI (nic_ratio.csv). Each value of a
// curve is divided by that at 16 GiB, as SimAI does.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "tools/collective/collective_bench.h"

namespace paceline::tools::nic_ratio_test {
namespace {

// Fitted on the curves of 4 and 16 servers: what a step takes beside its bytes and the round trip,
// and the bus bandwidth that a ratio of 1 stands for.
constexpr const char* kStepOverhead = "2.2us";
constexpr double kMostGbytes = 383;

struct RatioCell {
  std::uint32_t servers = 0;
  std::uint64_t bytes = 0;
  double ratio = 0;
};

std::vector<RatioCell> ratio_cells() {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) + "/tests/unit/collective/nic_ratio.csv");
  std::string line;
  while (std::getline(file, line) && line.starts_with('#')) continue;
  REQUIRE(line == "bytes,servers_2,servers_4,servers_8,servers_16");
  std::vector<RatioCell> cells;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::uint64_t bytes = 0;
    REQUIRE((fields >> bytes));
    for (const std::uint32_t servers : {2U, 4U, 8U, 16U}) {
      double value = 0;
      REQUIRE((fields >> value));
      cells.push_back({servers, bytes, value});
    }
  }
  REQUIRE(cells.size() == 44);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].ratio /= cells[40 + i % 4].ratio;
  return cells;
}

BenchRow emulated(std::uint32_t servers, std::uint64_t bytes, const std::string& step_overhead) {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  // A chunk is one message, however large.
  auto read = config::read_scenario_text(
      fmt::format("[fabric]\ntopology = \"rail\"\nnics = 8\nservers = {0}\nhosts_per_leaf = {0}\n"
                  "rate = \"400Gb/s\"\ndelay = \"500ns\"\n[cc]\nalgorithm = \"fixed\"\n"
                  "[workload]\nkind = \"job\"\n[workload.job]\nchunk_bytes = \"1GiB\"\n"
                  "step_overhead = \"{1}\"\n",
                  servers, step_overhead),
      "nic_ratio", ".", options);
  REQUIRE(read.errors == std::vector<std::string>{});
  BenchPlan plan;
  plan.scenario = std::move(read.value);
  plan.operation = "all_gather";
  plan.schedules = {"rail_rings"};
  plan.sizes = {bytes};
  plan.iterations = 1;
  const std::atomic<bool> runs{false};
  const auto bench = run_bench(plan, runs, [](const BenchProgress&) {});
  REQUIRE(bench.errors == std::vector<std::string>{});
  REQUIRE(bench.value.size() == 1);
  REQUIRE(bench.value[0].problem.empty());
  return bench.value[0];
}

double emulated_ratio(const RatioCell& cell) {
  return emulated(cell.servers, cell.bytes, kStepOverhead).bus_gbytes / kMostGbytes;
}

TEST_CASE("nic ratio: four servers of 8 reach a quarter of the NICs' rate at 16 MiB", "[jobs]") {
  const RatioCell cell = ratio_cells()[1];
  REQUIRE(cell.servers == 4);
  REQUIRE(cell.bytes == 16 << 20);
  CHECK(std::abs(emulated_ratio(cell) - cell.ratio) <= 0.05);
}

TEST_CASE("nic ratio: a step overhead counts once a step", "[jobs]") {
  constexpr std::uint32_t kRanks = 16;
  const double without = emulated(2, 16 << 20, "2us").took_us;
  const double with = emulated(2, 16 << 20, "12us").took_us;
  CHECK(with - without == Approx((kRanks - 1) * 10).epsilon(0.1));
}

// Some minutes. The cells that are left out are .99 and more.
TEST_CASE("nic ratio: the curves of 2 to 16 servers", "[.nic_ratio]") {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  fmt::print("{:>7} {:>8} {:>6} {:>9} {:>7}\n", "servers", "size", "SimAI", "emulated", "points");
  double fitted = 0;
  double judged = 0;
  std::uint32_t cells = 0;
  for (const RatioCell& cell : ratio_cells()) {
    if (cell.bytes > std::uint64_t{2} << 30) continue;
    const double ratio = emulated_ratio(cell);
    fmt::print("{:>7} {:>8} {:>6.3f} {:>9.3f} {:>+7.1f}\n", cell.servers,
               config::format_bytes(cell.bytes), cell.ratio, ratio, 100 * (ratio - cell.ratio));
    (cell.servers == 4 || cell.servers == 16 ? fitted : judged) += std::abs(ratio - cell.ratio);
    ++cells;
  }
  REQUIRE(cells == 32);
  fmt::print("mean error in points: {:.2f} fitted, {:.2f} judged\n", 100 * fitted / 16,
             100 * judged / 16);
  CHECK(fitted / 16 <= 0.05);
  CHECK(judged / 16 <= 0.05);
}

}  // namespace
}  // namespace paceline::tools::nic_ratio_test
