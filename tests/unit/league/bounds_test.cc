// Bounds: written around results, read back, and what is said of a cell that left its own.

#include <catch2/catch.hpp>
#include <cmath>

#include "control/league/bounds.h"
#include "control/league/page/page.h"
#include "tests/unit/league/league_files.h"

namespace paceline::league {
namespace {

using Catch::Matchers::Contains;

Results small_results(const LeagueFolder& folder) {
  PlanOptions options;
  options.size = Size::quick;
  auto read = folder.read_with("", "", options);
  REQUIRE(read.ok());
  std::vector<Run> runs;
  for (std::size_t c = 0; c < read.value.cells.size(); ++c) {
    for (std::uint32_t r = 0; r < read.value.repetitions; ++r) {
      Run run;
      run.repetition = r;
      run.messages = 4;
      run.measures[Measure::efficiency] = 0.9 - 0.01 * static_cast<double>(c) + 0.001 * r;
      run.measures[Measure::slowdown_p99] = 4 + static_cast<double>(c);
      run.measures[Measure::queue_max_bytes] = 1e6;
      runs.push_back(run);
    }
  }
  Results results = results_of(std::move(read.value), runs);
  results.version = "0.0";
  results.command = "paceline league small.toml --quick";
  return results;
}

TEST_CASE("league cells: means and intervals over repetitions, only of whole cells") {
  const LeagueFolder folder;
  const Results results = small_results(folder);
  const Summary& efficiency = results.cells[0][Measure::efficiency];
  CHECK(efficiency.mean == Approx(0.901));
  // t(2, .975) = 4.303, sd = .001, n = 3
  CHECK(efficiency.high - efficiency.mean == Approx(4.303 * 0.001 / std::sqrt(3.0)).epsilon(1e-3));
  CHECK(results.cells[0][Measure::slowdown_p99].low == 4);
  CHECK(std::isnan(results.cells[0][Measure::drops].mean));
  CHECK(results.seeds.size() == 3);
}

TEST_CASE("league bounds: results are inside the bounds that were written around them") {
  const LeagueFolder folder;
  Results results = small_results(folder);
  const std::string file = folder.write("bounds.json", bounds_text(results));
  const auto read = read_bounds_file(file, results.plan);
  CAPTURE(read.errors);
  REQUIRE(read.ok());
  const BoundsCheck good = check_bounds(read.value, results);
  CHECK(good.checked == 18);
  CHECK(good.left.empty());
  CHECK(good.unbounded.empty());

  results.cells[1].measures[index_of(Measure::slowdown_p99)].mean = 6.9;  // was 5; high is 5.75
  const BoundsCheck worse = check_bounds(read.value, results);
  REQUIRE(worse.left.size() == 1);
  CHECK(worse.left[0] == "burst under step: slowdown_p99 = 6.90 is above [4.25 .. 5.75] by 20.0 %");

  Bounds fewer = read.value;
  std::erase_if(fewer.bounds, [](const Bound& b) { return b.entry == "line"; });
  CHECK(check_bounds(fewer, results).unbounded ==
        std::vector<std::string>{"burst under line", "cycle under line"});
}

TEST_CASE("league bounds: bad files are refused with the place and what is allowed") {
  const LeagueFolder folder;
  const Results results = small_results(folder);
  const std::string good = bounds_text(results);
  const auto errors_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = read_bounds_file(folder.write("bounds.json", text), results.plan);
    REQUIRE(!read.ok());
    return read.errors.front();
  };
  CHECK_THAT(errors_with("\"quick\"", "\"full\""), Contains("size") && Contains("run as quick"));
  CHECK_THAT(errors_with("\"seed\": 5", "\"seed\": 6"), Contains("seed") && Contains("5"));
  CHECK_THAT(errors_with("\"schema\": 1", "\"schema\": 2"), Contains("schema"));
  CHECK_THAT(errors_with("efficiency", "speed"),
             Contains("bounds[0].measure") && Contains("efficiency"));
  CHECK_THAT(errors_with("\"bounds\": [", "\"bounds\": [,"), Contains("bounds.json:7:"));
  CHECK(!read_bounds_file(folder.path("none.json"), results.plan).ok());
}

TEST_CASE("league page: holds its results, and no name becomes markup") {
  const LeagueFolder folder;
  Results results = small_results(folder);
  results.plan.entries[0].effort = "</script><img src=x>";
  const std::string text = results_text(results);
  const std::string page = league_page(results, text);
  CHECK(page == league_page(results, text));
  CHECK(page.find("<img") == page.npos);
  CHECK_THAT(page, Contains("&lt;img src=x&gt;") && Contains("id=\"heat-box\"") &&
                       Contains("With help of switches") && Contains("Four to one. All at once."));
  CHECK_THAT(text, Contains("\"command\": \"paceline emulate"));
}

}  // namespace
}  // namespace paceline::league
