// `paceline diagnose` and `paceline faults`, as a user calls them.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "dataplane/config/fault_kinds.h"
#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

constexpr const char* kJob =
    "seed = 3\nfabric = { hosts = 8, rate = \"100Gb/s\" }\n[workload]\nkind = \"job\"\n"
    "[workload.job]\nbytes = \"1MiB\"\niterations = 6\ncompute = \"100us\"\njitter = 0.01\n";

TEST_CASE("diagnose names the rank that is slow, and says so in JSON", "[tools]") {
  const Folder folder;
  folder.write("job.toml",
               std::string(kJob) + "[[fault]]\nkind = \"slow_rank\"\ntarget = \"rank5\"\n");
  const Outcome outcome = paceline_command(
      folder, {"diagnose", "job.toml", "--json", "verdicts.json", "--html", "page.html"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("verdict  slow_rank rank5, confidence ") == 0);
  CHECK(outcome.out.find("from \\ to") != std::string::npos);
  const auto json = nlohmann::json::parse(folder.read("verdicts.json"));
  CHECK(json["schema"] == 1);
  REQUIRE(json["verdicts"].size() == 1);
  CHECK(json["verdicts"][0]["culprit"] == "rank5");
  CHECK(json["verdicts"][0]["place"] == "host");
  CHECK(json["slowness"].size() == 8);
  // A ring has eight pairs, each a cell; two lines for each of what occurs.
  const std::string page = folder.read("page.html");
  const auto count = [&](const std::string& words) {
    std::size_t times = 0;
    for (auto at = page.find(words); at != std::string::npos; at = page.find(words, at + 1))
      ++times;
    return times;
  };
  CHECK(count("<b>slow_rank rank5</b>, confidence ") == 1);
  CHECK(count("<rect class=\"bar\"") == 8);
  CHECK(count("queue pairs that rank5 concerns") == 1);
  CHECK(count("<g class=\"arm-1\"><path class=\"line fine\" d=\"M") >= 2);
  CHECK(count(">none</text>") == 2);  // losses and notifications
  CHECK(count("nan") == 0);
}

TEST_CASE("no verdict is an answer, and exit code 0", "[tools]") {
  const Folder folder;
  folder.write("job.toml", kJob);
  const Outcome outcome = paceline_command(folder, {"diagnose", "job.toml"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("verdict  none: ") == 0);
}

TEST_CASE("diagnose refuses what it cannot read, and leaves nothing behind", "[tools]") {
  const Folder folder;
  folder.write("job.toml",
               std::string(kJob) + "[[fault]]\nkind = \"slow_rank\"\ntarget = \"rank8\"\n");
  const Outcome outcome =
      paceline_command(folder, {"diagnose", "job.toml", "--json", "verdicts.json"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("job.toml:12:10: fault.target = \"rank8\": no such rank") !=
        std::string::npos);
  CHECK(folder.list() == std::vector<std::string>{"job.toml"});
  folder.write("job.toml", kJob);
  CHECK(paceline_command(folder, {"diagnose", "job.toml", "--html", "no/page.html"}).code == 2);
}

TEST_CASE("faults list has every kind", "[tools]") {
  const Folder folder;
  const Outcome outcome = paceline_command(folder, {"faults", "list"});
  CHECK(outcome.code == 0);
  for (const config::FaultKindInfo& kind : config::fault_kinds()) {
    CHECK(outcome.out.find(std::string(kind.name) + "\n") != std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::tools
