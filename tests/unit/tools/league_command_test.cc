// `paceline league` from end to end: files, resumption, independence of --jobs, bounds, bad input.

#include <unistd.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

// Two entries; whatever else this build has is left out with a reason.
std::string small_league(int repetitions = 2) {
  std::string text = "schema = 1\nname = \"small\"\nseed = 3\nquick = { repetitions = " +
                     std::to_string(repetitions) +
                     " }\nfull = { repetitions = 4 }\n"
                     "[[entry]]\nname = \"paper\"\nalgorithm = \"dcqcn\"\nprofile = \"paper\"\n"
                     "needs = \"edge\"\neffort = \"as published\"\n"
                     "[[entry]]\nname = \"step\"\nalgorithm = \"dctcp\"\nneeds = \"edge\"\n"
                     "effort = \"as published\"\ntransport = { reliability = \"selective\" }\n"
                     "fabric = { ecn = { kmin = \"60kB\", kmax = \"60kB\", pmax = 1 } }\n"
                     "[[scenario]]\nname = \"burst\"\nfile = \"burst.toml\"\n"
                     "quick = { workload = { message_bytes = \"100kB\" } }\n"
                     "[[scenario]]\nname = \"open\"\nfile = \"open.toml\"\n[omit]\n";
  for (const cc::AlgorithmInfo& a : cc::algorithms()) {
    if (a.name != "dcqcn" && a.name != "dctcp") text += std::string(a.name) + " = \"a test\"\n";
  }
  return text;
}

struct LeagueTest {
  Folder folder;

  explicit LeagueTest(int repetitions = 2) {
    folder.write("small.toml", small_league(repetitions));
    folder.write("burst.toml",
                 "[fabric]\nhosts = 9\n[workload]\nkind = \"incast\"\nfan_in = 8\n"
                 "message_bytes = \"1MB\"\nstart_jitter = \"1us\"\n");
    folder.write("open.toml",
                 "[fabric]\nhosts = 8\n[workload]\nkind = \"open_loop\"\ncdf = \"websearch\"\n"
                 "load = 0.6\nwindow = \"200us\"\n");
  }
  Outcome run(Strings more = {}) const {
    Strings words = {"league", "small.toml", "--quick"};
    words.insert(words.end(), more.begin(), more.end());
    return paceline_command(folder, words);
  }
};

TEST_CASE("league: one page, one file, the runs; the same bytes with any number of jobs", "[cli]") {
  const LeagueTest test;
  const Outcome one = test.run({"--jobs", "1"});
  CAPTURE(one.err);
  REQUIRE(one.code == 0);
  CHECK(test.folder.has("small.quick.json"));
  CHECK(test.folder.has("small.quick.html"));
  CHECK_THAT(one.out, Contains("edge only") && Contains("8 runs"));
  CHECK_THAT(one.out, Contains("Undominated is not best"));
  const std::string results = test.folder.read("small.quick.json");
  const std::string page = test.folder.read("small.quick.html");
  const Outcome four = test.run({"--jobs", "4", "--fresh"});
  REQUIRE(four.code == 0);
  CHECK(test.folder.read("small.quick.json") == results);
  CHECK(test.folder.read("small.quick.html") == page);

  const Json json = Json::parse(results);
  REQUIRE(json.at("cells").size() == 4);
  for (const Json& cell : json.at("cells")) {
    CAPTURE(cell.at("scenario"), cell.at("entry"));
    CHECK(cell.at("status") == "ok");
    const Json& m = cell.at("measures");
    // No algorithm delivers more than the links can carry (a packet in a thousand for rounding).
    CHECK(m.at("efficiency").at("mean").get<double>() > 0.3);
    CHECK(m.at("efficiency").at("mean").get<double>() < 1.001);
    CHECK(m.at("slowdown_p99").at("mean").get<double>() >=
          m.at("slowdown_p50").at("mean").get<double>());
    CHECK(m.at("slowdown_p50").at("mean").get<double>() > 0.99);
    CHECK(m.at("queue_max_bytes").at("mean").get<double>() >=
          m.at("queue_mean_bytes").at("mean").get<double>());
    CHECK(!cell.at("course").at("queue_bytes").empty());
  }
}

TEST_CASE("league: the command of a cell repeats its first run, bit by bit", "[cli]") {
  const LeagueTest test;
  REQUIRE(test.run().code == 0);
  const Json results = Json::parse(test.folder.read("small.quick.json"));
  for (const Json& cell : results.at("cells")) {
    std::istringstream words(cell.at("command").get<std::string>());
    Strings arguments;
    std::string word;
    words >> word;  // paceline
    while (words >> word) arguments.push_back(word);
    arguments.insert(arguments.end(), {"--out", "one.json"});
    CAPTURE(cell.at("command"));
    const Outcome outcome = paceline_command(test.folder, arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(Json::parse(test.folder.read("one.json")).at("totals").at("trace_hash") ==
          cell.at("trace_hashes").at(0));
  }
}

TEST_CASE("league: an interrupted league goes on, and ends with the same bytes", "[cli][slow]") {
  const LeagueTest test(40);  // long enough to be interrupted
  {
    Command command(test.folder, {"league", "small.toml", "--quick", "--jobs", "1"});
    while (command.running() &&
           !(test.folder.has("small.runs.jsonl") &&
             test.folder.read("small.runs.jsonl").find('\n') != std::string::npos)) {
      ::usleep(1000);
    }
    command.signal(SIGINT);
    const Outcome outcome = command.wait();
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.code == 130);
    CHECK_THAT(outcome.err, Contains("the same command goes on"));
    CHECK_FALSE(test.folder.has("small.quick.json"));
  }
  const std::string kept = test.folder.read("small.runs.jsonl");
  // A machine that dies leaves half a line; it is run again.
  test.folder.write("small.runs.jsonl", kept.substr(0, kept.size() - 20));
  const Outcome rest = test.run();
  REQUIRE(rest.code == 0);
  const auto lines = std::count(kept.begin(), kept.end(), '\n');
  CHECK_THAT(rest.out, lines == 1 ? Contains("160 runs, ")
                                  : Contains(std::to_string(lines - 1) + " of 160 runs are in"));
  const std::string results = test.folder.read("small.quick.json");
  REQUIRE(test.run({"--fresh"}).code == 0);
  CHECK(test.folder.read("small.quick.json") == results);
  // Nothing is left to run, and the results are still there.
  const Outcome again = test.run();
  CHECK_THAT(again.out, Contains("160 of 160 runs are in small.runs.jsonl"));
  CHECK(test.folder.read("small.quick.json") == results);
}

TEST_CASE("league: a run that is determined by something else is run again", "[cli]") {
  const LeagueTest test;
  REQUIRE(test.run().code == 0);
  std::string text = small_league();
  text.replace(text.find("60kB"), 4, "50kB");  // of one entry
  test.folder.write("small.toml", text);
  const Outcome outcome = test.run();
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("4 of 8 runs are in"));
}

TEST_CASE("league: a cell that leaves its bounds is named, with how far", "[cli]") {
  const LeagueTest test;
  REQUIRE(test.run({"--write-bounds", "bounds.json"}).code == 0);
  const Outcome good = test.run({"--check-bounds", "bounds.json"});
  CHECK(good.code == 0);
  CHECK_THAT(good.out, Contains("bounds: 12 of 12 figures inside"));
  Json bounds = Json::parse(test.folder.read("bounds.json"));
  Json& first = bounds.at("bounds").at(0);
  first["high"] = first["low"] = first.at("low").get<double>() / 2;
  test.folder.write("bounds.json", bounds.dump());
  const Outcome bad = test.run({"--check-bounds", "bounds.json"});
  CHECK(bad.code == 1);
  CHECK_THAT(bad.err, Contains("burst under paper: efficiency = ") && Contains("is above"));
  // Only what was run is held to bounds; none at all is a mistake.
  CHECK(test.run({"--check-bounds", "bounds.json", "--only", "open"}).code == 0);
  bounds["bounds"] = Json::array();
  test.folder.write("bounds.json", bounds.dump());
  CHECK(test.run({"--check-bounds", "bounds.json"}).code == 2);
}

TEST_CASE("league: bad input ends with 2 and leaves nothing behind", "[cli]") {
  const LeagueTest test;
  const auto refused = [&](const Strings& words, const std::string& says) {
    const Outcome outcome = paceline_command(test.folder, words);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
  };
  refused({"league", "none.toml"}, "none.toml");
  refused({"league", "small.toml", "--only", "brust"}, "no scenario is named \"brust\"");
  refused({"league", "small.toml", "--out", "no/such/folder.json"}, "no/such/folder.json");
  std::string text = small_league();
  test.folder.write("small.toml", text.replace(text.find("as published"), 12, ""));
  refused({"league", "small.toml"}, "small.toml:11:10: entry \"paper\": effort");
  CHECK(test.folder.list() == Strings{"burst.toml", "open.toml", "small.toml"});
}

}  // namespace
}  // namespace paceline::tools
