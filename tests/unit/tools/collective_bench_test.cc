// Benches of collectives, and `paceline collective`.

#include "tools/collective/collective_bench.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/tools/command.h"

namespace paceline::tools::collective_bench_test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

BenchPlan bench_plan(const Strings& schedules, const std::vector<std::uint64_t>& sizes) {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  auto read = config::read_scenario_text(
      "[fabric]\nhosts = 6\nrate = \"100Gb/s\"\n[cc]\nalgorithm = \"fixed\"\n"
      "[workload]\nkind = \"job\"\n",
      "bench", ".", options);
  REQUIRE(read.errors == Strings{});
  BenchPlan plan;
  plan.scenario = std::move(read.value);
  plan.operation = "all_reduce";
  plan.schedules = schedules;
  plan.sizes = sizes;
  plan.iterations = 2;
  return plan;
}

TEST_CASE("collective bench: a row for each size and schedule, the fastest marked", "[jobs]") {
  const BenchPlan plan =
      bench_plan({"ring", "recursive_doubling", "double_tree"}, {1'024, 1'048'576});
  const std::atomic<bool> stop{false};
  std::uint32_t done = 0;
  const auto bench = run_bench(plan, stop, [&done](const BenchProgress& at) {
    CHECK(at.all == 6);
    CHECK(at.done >= done);
    done = at.done;
  });
  REQUIRE(bench.errors == Strings{});
  CHECK(done == 6);
  const std::vector<BenchRow>& rows = bench.value;
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const BenchRow& row = rows[i];
    CAPTURE(i, row.schedule);
    CHECK(row.bytes == plan.sizes[i / 3]);
    CHECK(row.schedule == plan.schedules[i % 3]);
    CHECK(row.problem.empty());
    CHECK(row.drops == 0);
    CHECK(row.took_us >= row.ideal_us);
    CHECK(row.ideal_us > 0);
    CHECK(row.algorithm_gbytes == Approx(static_cast<double>(row.bytes) / row.took_us / 1e3));
    CHECK(row.bus_gbytes == Approx(row.algorithm_gbytes * 2 * 5 / 6));
    CHECK(row.bus_gbytes <= 12.5);
    const auto* const of_size = &rows[i / 3 * 3];
    const double least = std::min({of_size[0].took_us, of_size[1].took_us, of_size[2].took_us});
    CHECK(row.best == (row.took_us == least));
  }
  // A ring takes 2 (n - 1) latencies and 2 S (n - 1) / n of time, recursive doubling among six
  // log2(4) + 2 latencies and as many times S: small buffers and large ones.
  CHECK_FALSE(rows[0].best);
  CHECK(rows[3].best);

  const Json json = Json::parse(bench_json(plan, rows));
  CHECK(json["operation"] == "all_reduce");
  CHECK(json["ranks"] == 6);
  CHECK(json["iterations"] == 2);
  REQUIRE(json["rows"].size() == 6);
  CHECK(json["rows"][3]["bytes"] == 1'048'576);
  CHECK(json["rows"][3]["schedule"] == "ring");
  CHECK(json["rows"][3]["best"] == true);
  CHECK(json["rows"][3]["time_us"] == Approx(rows[3].took_us));
  CHECK(json["rows"][3]["busbw_gbytes"] == Approx(rows[3].bus_gbytes));
  const std::string text = bench_text(plan, rows);
  CHECK_THAT(text, Contains("all_reduce of 6 ranks, 100 Gb/s a NIC, fixed"));
  CHECK_THAT(text, Contains("1MiB *ring"));
  CHECK(std::count(text.begin(), text.end(), '*') ==
        1 + std::count_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.best; }));
}

TEST_CASE("collective bench: names that are no schedules, and those that do not fit the ranks",
          "[jobs]") {
  const std::atomic<bool> stop{false};
  const auto nothing = [](const BenchProgress&) {};
  CHECK(run_bench(bench_plan({"rings"}, {1'024}), stop, nothing).errors ==
        Strings{"scenario \"bench\": all_reduce by \"rings\": expected \"ring\", "
                "\"two_level_ring\", \"rail_rings\", \"double_tree\", \"halving_doubling_near\", "
                "\"halving_doubling_far\" or \"recursive_doubling\""});
  CHECK(possible_schedules("reduce_scatter", 6, 2) ==
        Strings{"ring", "two_level_ring", "rail_rings", "pat"});
  CHECK(possible_schedules("reduce_scatter", 8, 1) ==
        Strings{"ring", "two_level_ring", "rail_rings", "halving_near", "halving_far", "pat"});
}

TEST_CASE("collective bench: it ends when it is stopped", "[jobs]") {
  const std::atomic<bool> stop{true};
  const auto bench = run_bench(bench_plan({"ring"}, {1'024}), stop, [](const BenchProgress&) {});
  CHECK(bench.errors == Strings{});
  CHECK(bench.value.empty());
}

TEST_CASE("paceline collective list prints every schedule", "[cli][jobs]") {
  const Folder folder;
  const Outcome outcome = paceline_command(folder, {"collective", "list"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == R"(all_reduce
  ring
  two_level_ring
  rail_rings
  double_tree
  halving_doubling_near
  halving_doubling_far
  recursive_doubling
reduce_scatter
  ring
  two_level_ring
  rail_rings
  halving_near
  halving_far
  pat
all_gather
  ring
  two_level_ring
  rail_rings
  doubling_near
  doubling_far
  bruck
  pat
all_to_all
  nccl
  linear_shift
  pairwise_xor
  bruck
  window
  pxn
  pxn_batched
broadcast
  chain
  binomial
  scatter_all_gather
reduce
  chain
  binomial
)");
}

TEST_CASE("paceline collective bench: sizes, the table and the file", "[cli][jobs]") {
  const Folder folder;
  const Outcome outcome = paceline_command(
      folder, {"collective", "bench", "--set", "fabric.hosts=4", "--operation", "all_gather",
               "--min", "1KiB", "--max", "20KiB", "--factor", "4", "--iterations", "1", "--out",
               "r.json", "--schedules", "ring,bruck"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json json = Json::parse(folder.read("r.json"));
  std::vector<std::uint64_t> sizes;
  for (const Json& row : json["rows"]) sizes.push_back(row["bytes"]);
  CHECK(sizes == std::vector<std::uint64_t>{1'024, 1'024, 4'096, 4'096, 16'384, 16'384});
  CHECK(json["ranks"] == 4);
  CHECK_THAT(outcome.out, Contains("all_gather of 4 ranks") && Contains("bruck"));
  CHECK(folder.list() == Strings{"r.json"});
}

TEST_CASE("paceline collective bench: what is refused", "[cli][jobs]") {
  const Folder folder;
  const auto refused = [&folder](Strings more, const std::string& text) {
    Strings arguments{"collective", "bench", "--set", "fabric.hosts=4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = paceline_command(folder, arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({"--schedules", "rings"}, "all_reduce by \"rings\": expected \"ring\"");
  refused({"--min", "2MiB", "--max", "1MiB"}, "--min 2MiB: expected at most --max 1MiB");
  refused({"--min", "much"}, "--min much: expected a number of bytes such as \"64 MiB\"");
  refused({"--min", "0B"}, "--min 0B: expected a number of bytes such as \"64 MiB\"");
  refused({"--set", "workload.job.format=goal", "--set", "workload.job.file=a"},
          "workload.job.format: expected \"collective\"");
  refused(
      {"--operation", "reduce_scatter", "--set", "fabric.hosts=6", "--schedules", "halving_near"},
      "ranks = 6: allowed is a power of two");
  CHECK(folder.list().empty());
}

}  // namespace
}  // namespace paceline::tools::collective_bench_test
