// League files: what a cell becomes, and what is said of a bad one.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "control/league/plan/settings_text.h"
#include "dataplane/config/scenario/document.h"
#include "tests/unit/league/league_files.h"

namespace paceline::league {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

TEST_CASE("league plan: a cell is the scenario, its size, and what the entry brings") {
  const LeagueFolder folder;
  PlanOptions options;
  options.size = Size::quick;
  const auto read = folder.read_with("", "", options);
  CAPTURE(read.errors);
  REQUIRE(read.ok());
  const Plan& plan = read.value;
  REQUIRE(plan.cells.size() == 6);
  CHECK(plan.repetitions == 3);
  const config::Scenario& cell = plan.cells[plan.cell(0, 1)];
  CHECK(cell.name == "burst");
  CHECK(cell.workload.message_bytes == 50'000);
  CHECK(cell.cc.algorithm == "dctcp");
  CHECK(cell.transport.reliability == "selective");
  CHECK(cell.fabric.ecn.kmin_bytes == 30'000);
  // Neither leaks into its neighbours.
  CHECK(plan.cells[plan.cell(0, 0)].transport.reliability == "go_back_n");
  CHECK(plan.cells[plan.cell(0, 0)].fabric.ecn.kmin_bytes == 400'000);
  CHECK(plan.cells[plan.cell(1, 1)].workload.kind == "permutation");
  CHECK(plan.entries[2].needs == Needs::switches);
  CHECK(plan.scenarios[0].about == "Four to one. All at once.");

  options.size = Size::full;
  const auto full = folder.read_with("", "", options);
  REQUIRE(full.ok());
  CHECK(full.value.repetitions == 8);
  CHECK(full.value.cells[0].workload.message_bytes == 200'000);
}

TEST_CASE("league plan: the words of --set make the same cell of the scenario file") {
  const LeagueFolder folder;
  PlanOptions options;
  options.size = Size::quick;
  const auto read = folder.read_with("", "", options);
  REQUIRE(read.ok());
  const Plan& plan = read.value;
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    for (std::size_t e = 0; e < plan.entries.size(); ++e) {
      config::ReaderOptions reader;
      reader.algorithms = cc::algorithms();
      reader.overrides = plan.scenarios[s].settings;
      reader.overrides.insert(reader.overrides.end(), plan.entries[e].settings.begin(),
                              plan.entries[e].settings.end());
      const auto by_hand = config::read_scenario_file(plan.scenarios[s].file, reader);
      CAPTURE(by_hand.errors, reader.overrides);
      REQUIRE(by_hand.ok());
      const config::Scenario& cell = plan.cells[plan.cell(s, e)];
      CHECK(by_hand.value.workload.message_bytes == cell.workload.message_bytes);
      CHECK(by_hand.value.transport.reliability == cell.transport.reliability);
      CHECK(by_hand.value.fabric.ecn.kmax_bytes == cell.fabric.ecn.kmax_bytes);
      CHECK(by_hand.value.cc.algorithm == cell.cc.algorithm);
      CHECK(by_hand.value.cc.profile == cell.cc.profile);
    }
  }
  CHECK_THAT(reproduce_command(plan, 0, 1, 77),
             Contains("burst.toml --set workload.message_bytes=50kB --set fabric.ecn.kmax=30kB") &&
                 Contains("--set cc.algorithm=dctcp --set cc.profile=default --seed 77"));
}

TEST_CASE("league plan: values of every type survive the way through --set") {
  const auto parsed = config::parse_toml(
      "a = true\nb = -3\nc = 2.0\nd = \"200kB\"\ne = \"7\"\nf = [1, 2]\ng = \"x y\\\"z\"\n"
      "h = { i = \"true\" }\n",
      "t");
  REQUIRE(parsed.ok());
  const Strings settings = settings_of(parsed.value);
  REQUIRE(settings.size() == 8);
  config::Diagnostics errors;
  config::TomlNode back;
  for (const config::Override& o : config::split_overrides(settings, errors)) {
    config::apply_override(back, o.path, o.value, errors);
  }
  CHECK(errors.empty());
  CHECK(settings_of(back) == settings);
  const auto type_of = [&](const char* key) { return back.find(key)->value.type; };
  CHECK(type_of("a") == config::TomlNode::Type::boolean);
  CHECK(type_of("c") == config::TomlNode::Type::real);
  CHECK(type_of("e") == config::TomlNode::Type::text);
  CHECK(back.find("g")->value.text == "x y\"z");
  CHECK(back.find("h")->value.find("i")->value.type == config::TomlNode::Type::text);
}

TEST_CASE("league plan: nobody on the shelf is forgotten") {
  const LeagueFolder folder;
  const std::string entry =
      "[[entry]]\nname = \"line\"\nalgorithm = \"fixed\"\nneeds = \"switch\"\neffort = \"none\"\n";
  const auto without = folder.read_with(entry, "");
  REQUIRE(without.errors.size() == 1);
  CHECK_THAT(without.errors[0], Contains("small.toml:1:1") &&
                                    Contains("algorithm \"fixed\" has no [[entry]]") &&
                                    Contains("omit = { fixed = \"why\" }"));
  std::string text = kLeagueFile;
  text.replace(text.find(entry), entry.size(), "");
  text.replace(text.find("seed = 5"), 8, "seed = 5\nomit = { fixed = \"no control at all\" }");
  PlanOptions options;
  options.reader.algorithms = LeagueFolder::shelf();
  const auto omitted = read_plan_file(folder.write("small.toml", text), options);
  CAPTURE(omitted.errors);
  REQUIRE(omitted.ok());
  REQUIRE(omitted.value.omitted.size() == 1);
  CHECK(omitted.value.omitted[0].why == "no control at all");
}

TEST_CASE("league plan: bad input is answered with line, column, value and what is allowed") {
  const LeagueFolder folder;
  struct Bad {
    const char* from;
    const char* to;
    const char* where;
    const char* says;
  };
  const Bad all[] = {
      {"needs = \"edge\"", "needs = \"cloud\"", "small.toml:10:9",
       "needs = \"cloud\": allowed is \"edge\" or \"switch\""},
      {"effort = \"as published\"", "", "small.toml:6:1", "effort: expected a text"},
      {"algorithm = \"dcqcn\"", "algorithm = \"dcqnc\"", "small.toml:8:13",
       "did you mean \"dcqcn\""},
      {"repetitions = 3", "repetitions = 0", "small.toml:4:25",
       "quick.repetitions = 0: out of range, allowed is [1 .. 10000]"},
      {"seed = 5", "seed = 5\nmargin = 2", "small.toml:4:10",
       "out of range, allowed is [0 .. 0.5]"},
      {"name = \"step\"", "name = \"paper\"", "small.toml:13:8", "a second entry named \"paper\""},
      {"reliability = \"selective\"", "reliability = \"perfect\"", "small.toml:17:29",
       "allowed is"},
      {"kmin = \"30kB\"", "kmin = \"80kB\"", "small.toml:18:", "kmin"},
      {"transport = {", "workload = {", "small.toml:17:1", "workload"},
      {"file = \"burst.toml\"", "file = \"gone.toml\"", "small.toml:26:8", "gone.toml"},
      {"file = \"burst.toml\"", "", "small.toml:24:1", "file: expected a scenario file"},
      {"message_bytes = \"50kB\"", "message_byte = \"50kB\"", "small.toml:27:", "message_bytes"},
      {"full = {", "huge = {", "small.toml:5:1", "huge"},
      {"seed = 5", "seed = 5\nomit = { cubic = \"old\" }", "small.toml:4:10",
       "unknown key \"cubic\""},
      {"seed = 5", "seed = 5\nomit = { dcqcn = \"old\" }", "small.toml:1:1",
       "is omitted and has an [[entry]]"},
  };
  for (const Bad& bad : all) {
    PlanOptions options;
    options.size = Size::quick;
    const auto read = folder.read_with(bad.from, bad.to, options);
    CAPTURE(bad.to, bad.says, read.errors);
    REQUIRE(!read.ok());
    const bool said = std::any_of(read.errors.begin(), read.errors.end(), [&](const auto& error) {
      return error.find(bad.where) != error.npos && error.find(bad.says) != error.npos;
    });
    CHECK(said);
    // A mistake in an entry is said once, not once per scenario.
    CHECK(std::set<std::string>(read.errors.begin(), read.errors.end()).size() ==
          read.errors.size());
  }
}

TEST_CASE("league plan: --only and --entries keep what they name, and refuse what is not there") {
  const LeagueFolder folder;
  PlanOptions options;
  options.only = {"cycle"};
  options.entries = {"line", "paper"};
  const auto read = folder.read_with("", "", options);
  REQUIRE(read.ok());
  REQUIRE(read.value.cells.size() == 2);
  CHECK(read.value.scenarios[0].name == "cycle");
  CHECK(read.value.entries[0].name == "paper");  // in the order of the file
  CHECK(read.value.cells[1].cc.algorithm == "fixed");
  options.only = {"cycel"};
  const auto bad = folder.read_with("", "", options);
  REQUIRE(bad.errors.size() == 1);
  CHECK_THAT(bad.errors[0], Contains("--only") && Contains("\"cycel\"") && Contains("\"burst\""));
}

TEST_CASE("league plan: the league of this tree covers this build, in both sizes") {
  for (const Size size : {Size::quick, Size::full}) {
    PlanOptions options;
    options.size = size;
    options.reader.algorithms = cc::algorithms();
    const auto read = read_plan_file(PACELINE_CONFIGS "/league.toml", options);
    CAPTURE(read.errors);
    CHECK(read.ok());
  }
}

}  // namespace
}  // namespace paceline::league
