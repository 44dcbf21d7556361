// What a run loses is printed by cause, and the deepest queue with its place; `ab` compares both.

#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

const std::string kTwoTiers = R"(schema = 1
name = "tiers"
max_hops = 2_000_000
[fabric]
topology = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
reroute_delay = "50us"
[cc]
algorithm = "dcqcn"
[workload]
kind = "permutation"
message_bytes = "1MB"
)";

std::string event(const std::string& at, const std::string& action) {
  return "[[event]]\nat = \"" + at + "\"\nlink = \"leaf0-spine1\"\n" + action + "\n";
}

struct Emulated {
  std::string text;
  Json json;
};

Emulated emulated(const std::string& scenario) {
  const Folder folder;
  folder.write("s.toml", scenario);
  const Outcome outcome = paceline_command(folder, {"emulate", "s.toml", "--out", "r.json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return {outcome.out, Json::parse(folder.read("r.json"))};
}

// The row "LABEL   FIGURE" of the table.
std::string row(const std::string& text, const std::string& label) {
  const std::size_t at = text.find("\n  " + label + " ");
  if (at == std::string::npos) return {};
  const std::size_t end = text.find('\n', at + 1);
  std::string rest = text.substr(at + 3 + label.size(), end - at - 3 - label.size());
  rest.erase(0, rest.find_first_not_of(' '));
  return rest;
}

TEST_CASE("emulate: what a failed link loses is printed", "[cli]") {
  const Emulated run =
      emulated(kTwoTiers + event("20us", "action = \"down\"") + event("200us", "action = \"up\""));
  const Json& drops = run.json.at("network").at("drops");
  REQUIRE(drops.at("link_down").get<std::uint64_t>() > 0);
  CHECK(row(run.text, "lost, link down") == drops.at("link_down").dump());
  CHECK(row(run.text, "lost, no route") == drops.at("no_route").dump());
  CHECK(row(run.text, "drops") == "0");
  CHECK(row(run.text, "lost on links").empty());
}

TEST_CASE("emulate: what a grey link loses and damages is printed", "[cli]") {
  const Emulated run = emulated(kTwoTiers + event("5us", "action = \"loss\"\nprobability = 0.02") +
                                event("5us", "action = \"corrupt\"\nprobability = 0.01"));
  const Json& network = run.json.at("network");
  REQUIRE(network.at("drops").at("link_loss").get<std::uint64_t>() > 0);
  REQUIRE(network.at("corrupted_packets").get<std::uint64_t>() > 0);
  CHECK(row(run.text, "lost on links") == network.at("drops").at("link_loss").dump());
  CHECK(row(run.text, "damaged on links") == network.at("corrupted_packets").dump());
  CHECK(row(run.text, "drops") == "0");
}

TEST_CASE("emulate: lost control messages and trimmed packets are printed", "[cli]") {
  const Emulated control = emulated(R"(schema = 1
[fabric]
hosts = 9
drop_control_ppm = 100_000
[cc]
algorithm = "cadence"
[workload]
kind = "incast"
fan_in = 8
message_bytes = "1MB"
)");
  const Json& lost = control.json.at("network").at("drops").at("control_loss");
  REQUIRE(lost.get<std::uint64_t>() > 0);
  CHECK(row(control.text, "lost, control") == lost.dump());
  CHECK(row(control.text, "trimmed").empty());

  const Emulated trimming = emulated(R"(schema = 1
[fabric]
hosts = 9
[fabric.pfc]
enabled = false
[fabric.trim]
enabled = true
[transport]
reliability = "selective"
[cc]
algorithm = "fixed"
[workload]
kind = "incast"
fan_in = 8
message_bytes = "200kB"
)");
  const Json& trimmed = trimming.json.at("network").at("trimmed_packets");
  REQUIRE(trimmed.get<std::uint64_t>() > 0);
  CHECK(row(trimming.text, "trimmed") == trimmed.dump());
}

// Both leaves hold four times as many hosts as their one uplink carries, and messages cross it.
const std::string kNarrow = R"(
[fabric]
topology = "leaf_spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
oversubscription = 4
[cc]
algorithm = "fixed"
[workload]
kind = "permutation"
message_bytes = "1MB"
)";

TEST_CASE("emulate: the deepest queue of a fabric is printed with its place", "[cli]") {
  const Emulated run = emulated("schema = 1\n" + kNarrow);
  CAPTURE(run.text);
  const Json& metrics = run.json.at("metrics");
  const double deepest = metrics.at("deepest_queue_bytes").get<double>();
  CHECK(deepest > 10 * metrics.at("queue_max_bytes").get<double>());
  const std::string port = run.json.at("network").at("deepest_queue_port");
  CHECK((port == "leaf0 to spine0" || port == "leaf1 to spine0"));
  CHECK_THAT(row(run.text, "deepest queue"), Contains("MB  " + port));
}

// An experiment but for its scenarios.
const std::string kTwoArms = R"(schema = 1
repetitions = 2
[[arm]]
name = "a"
algorithm = "dcqcn"
[[arm]]
name = "b"
algorithm = "fixed"
[[scenario]]
)";

TEST_CASE("ab: the deepest queue is a guardrail, losses are compared by cause", "[cli]") {
  const Folder folder;
  folder.write("tiers.toml", kTwoArms + R"(name = "narrow"
[scenario.fabric]
topology = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
oversubscription = 2
[scenario.workload]
kind = "permutation"
message_bytes = "1MB"
[[scenario.event]]
at = "20us"
link = "leaf0-spine1"
action = "down"
[[scenario]]
name = "star"
[scenario.fabric]
hosts = 4
[scenario.workload]
kind = "permutation"
message_bytes = "100kB"
)");
  const Outcome outcome = paceline_command(folder, {"ab", "tiers.toml", "-j", "1"});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains(" G deepest queue ") && Contains("lost, link down"));
  const Json json = Json::parse(folder.read("tiers.results.json"));
  std::vector<std::string> compared;
  for (const Json& effect : json.at("effects")) {
    const std::string metric = effect.at("metric");
    if (metric != "deepest_queue_bytes" && metric != "lost_link_down") continue;
    compared.push_back(effect.at("scenario").get<std::string>() + " " + metric + " " +
                       effect.at("role").get<std::string>());
  }
  CHECK(compared == std::vector<std::string>{"narrow deepest_queue_bytes guardrail",
                                             "narrow lost_link_down exploratory"});
  const std::string page = folder.read("tiers.report.html");
  CHECK_THAT(page, Contains("deepest queue") && Contains("lost, link down"));
  CHECK(page.find("damaged on links") == std::string::npos);
}

TEST_CASE("ab: metrics that apply to no run are not in the results", "[cli]") {
  const Folder folder;
  folder.write("star.toml", kTwoArms + R"(name = "s"
[scenario.fabric]
hosts = 4
[scenario.workload]
kind = "permutation"
message_bytes = "100kB"
)");
  REQUIRE(paceline_command(folder, {"ab", "star.toml", "-q", "--no-report", "--no-detail"}).code ==
          0);
  const std::string text = folder.read("star.results.json");
  for (const char* name : {"deepest_queue", "lost_", "damaged_", "trimmed"}) {
    CHECK(text.find(name) == std::string::npos);
  }
  CHECK_THAT(text, Contains("collective_efficiency"));
}

}  // namespace
}  // namespace paceline::tools
