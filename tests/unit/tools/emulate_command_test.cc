// `paceline emulate` and the help of every command.

#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

const std::string kEmulated = R"(schema = 1
name = "small"
[fabric]
hosts = 4
[cc]
algorithm = "dcqcn"
[workload]
kind = "incast"
fan_in = 3
message_bytes = "100kB"
start_jitter = "1us"
)";

// Host 1's clock is set during the run.
const std::string kProbed = R"(schema = 1
name = "probed"
duration = "3ms"
[fabric]
topology = "leaf_spine"
leaves = 2
hosts_per_leaf = 3
spines = 2
[workload]
kind = "incast"
fan_in = 4
message_bytes = "8MB"
[probing]
enabled = true
share = 0.02
paths = 2
clock_offset = "1ms"
clock_drift = 50
[[fault]]
kind = "clock_jump"
target = "host1"
at = "1ms"
severity = -300
)";

struct Row {
  std::uint64_t id, src, dst, bytes, start, fct, ideal;
};

// Checks the header and that every line has seven numbers.
std::vector<Row> rows_of(const std::string& csv) {
  std::istringstream in(csv);
  std::string line;
  REQUIRE(std::getline(in, line));
  REQUIRE(line == "id,src,dst,bytes,start_ns,fct_ns,ideal_ns");
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    Row r{};
    char c[6];
    std::istringstream fields(line);
    fields >> r.id >> c[0] >> r.src >> c[1] >> r.dst >> c[2] >> r.bytes >> c[3] >> r.start >>
        c[4] >> r.fct >> c[5] >> r.ideal;
    CAPTURE(line);
    REQUIRE(!fields.fail());
    REQUIRE(fields.eof());
    REQUIRE(std::string(c, 6) == ",,,,,,");
    rows.push_back(r);
  }
  return rows;
}

TEST_CASE("emulate: hosts that probe each other know their clocks within 200 ns", "[cli]") {
  const Folder folder;
  folder.write("probed.toml", kProbed);
  const Outcome outcome = paceline_command(
      folder, {"emulate", "probed.toml", "--out", "r.json", "--check", "--threads", "2"});
  CAPTURE(outcome.err, outcome.out);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("run on one thread: hosts that probe"));
  CHECK_THAT(outcome.out, Contains("\nprobes ") && Contains("\nclocks "));
  const Json json = Json::parse(folder.read("r.json")).at("probing");
  CHECK(json.at("lost") == 0);
  CHECK(json.at("sent") > 5'000);
  CHECK(json.at("offset_error_ns").at("p99") <= 200);
  CHECK(json.at("there_ns").at("most") > 10'000);   // there were queues
  CHECK(json.at("there_ns").at("most") < 250'000);  // and no clock is taken for one
  REQUIRE(json.at("pairs").size() == 30);
  for (const Json& pair : json.at("pairs")) {
    CAPTURE(pair.dump());
    const bool set = pair.at("from") == 1 || pair.at("to") == 1;
    CHECK((pair.at("clock_restarts") != 0) == set);
    CHECK(pair.at("uncertainty_ns") > 0);
  }
  const Outcome without = paceline_command(
      folder, {"emulate", "probed.toml", "--out", "r2.json", "--set", "probing.enabled=false"});
  CHECK_THAT(without.err, Contains("probing.share does nothing with probing.enabled = false") &&
                              Contains("\"clock_jump\" needs probing.enabled = true"));
  CHECK_THAT(paceline_command(folder, {"emulate", "probed.toml", "--real-time"}).err,
             Contains("probing.enabled = true: allowed in virtual time only"));
  CHECK_THAT(paceline_command(folder, {"emulate", "probed.toml", "--set", "probing.paths=65"}).err,
             Contains("probing.paths = 65: out of range"));
  CHECK_THAT(
      paceline_command(folder, {"emulate", "probed.toml", "--set", "fabric.leaves=64"}).err,
      Contains("allowed with probing.enabled = true are 128 hosts at most, here there are 192"));
}

TEST_CASE("emulate: results as JSON and a line per message", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  const Outcome outcome = paceline_command(
      folder, {"emulate", "small.toml", "--out", "r.json", "--flows-out", "f.csv", "--check"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("3 of 3 messages") && Contains("hops/s"));
  CHECK(folder.list() == Strings{"f.csv", "r.json", "small.toml"});

  const Json json = Json::parse(folder.read("r.json"));
  CHECK(json.at("schema") == 1);
  CHECK(json.at("scenario") == "small");
  CHECK(json.at("status") == "ok");
  CHECK(json.at("hosts") == 4);
  const Json& totals = json.at("totals");
  CHECK(totals.at("messages") == 3);
  CHECK(totals.at("messages_started") == 3);
  CHECK(totals.at("messages_completed") == 3);
  // 25 packets a message; data and ACK take two links each. CNPs come on top.
  CHECK(totals.at("hops").get<std::uint64_t>() >= 3 * 25 * 4);
  CHECK(totals.at("simulated_ps").get<std::uint64_t>() > 24'000'000);
  CHECK(json.at("network").at("delivered_packets") == json.at("network").at("injected_packets"));
  CHECK(json.at("counters").at("tx_data_bytes") == 300'000);
  CHECK(json.at("counters").at("rx_data_bytes") == 300'000);
  CHECK(json.at("metrics").at("drops") == 0);

  const std::vector<Row> rows = rows_of(folder.read("f.csv"));
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].id == i);
    CHECK(rows[i].dst == 0);
    CHECK(rows[i].src >= 1);
    CHECK(rows[i].src <= 3);
    CHECK(rows[i].bytes == 100'000);
    CHECK(rows[i].start <= 1000);
    // 100 kB in 25 packets at 80 ps a byte, the first packet again, two ACKs, 4 us: in nanoseconds.
    CHECK(rows[i].ideal == ((100'000 + 25 * 82 + 16 + 4194 + 2 * 86) * 80 + 4'000'000) / 1000);
    CHECK(rows[i].fct >= rows[i].ideal);
  }
}

TEST_CASE("emulate: nothing but the results on --quiet, and none of the machine in them", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  const Strings command = {"emulate", "small.toml", "-q", "--out", "r.json"};
  const Outcome first = paceline_command(folder, command);
  CHECK(first.code == 0);
  CHECK(first.out == "");
  CHECK(first.err == "");
  const std::string text = folder.read("r.json");
  CHECK(paceline_command(folder, command).code == 0);
  CHECK(folder.read("r.json") == text);
}

TEST_CASE("emulate: --set and --seed change what they say", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  const auto result = [&folder](Strings extra) {
    Strings arguments = {"emulate", "small.toml", "-q", "--out", "r.json"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const Outcome outcome = paceline_command(folder, arguments);
    CAPTURE(extra, outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(folder.read("r.json"));
  };
  const Json base = result({});
  const auto hash = [](const Json& json) { return json.at("totals").at("trace_hash"); };
  CHECK(base.at("seed") == 1);

  const Json seed = result({"--seed", "5"});
  CHECK(seed.at("seed") == 5);
  CHECK(hash(seed) != hash(base));
  CHECK(hash(result({"--seed", "1"})) == hash(base));
  CHECK(hash(result({"--set", "seed=5"})) == hash(seed));

  const Json cadence = result({"--set", "cc.algorithm=cadence"});
  CHECK(cadence.at("algorithm") == "cadence");
  CHECK(cadence.at("counters").at("grants_sent") > 0);
  CHECK(base.at("counters").at("grants_sent") == 0);

  const Json more = result({"--set", "fabric.hosts=9", "--set", "workload.fan_in=8"});
  CHECK(more.at("hosts") == 9);
  CHECK(more.at("totals").at("messages") == 8);
  const Json slow = result({"--set", "fabric.rate=10Gb/s"});
  CHECK(slow.at("totals").at("simulated_ps") > base.at("totals").at("simulated_ps"));
}

TEST_CASE("emulate: topology and flows in the HPCC simulator's formats", "[cli]") {
  const Folder folder;
  const std::string examples = std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/hpcc/";
  const Outcome outcome = paceline_command(
      folder, {"emulate", "--topology", examples + "star8.topology", "--flows",
               examples + "star8.flows", "--set", "cc.profile=paper", "--flows-out", "f.csv"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::vector<Row> rows = rows_of(folder.read("f.csv"));
  REQUIRE(rows.size() == 8);
  // As in star8.flows, in the order of (start, src, dst).
  CHECK(rows[0].src == 1);
  CHECK(rows[0].dst == 0);
  CHECK(rows[0].bytes == 1'000'000);
  CHECK(rows[1].start == 200);
  CHECK(rows[4].src == 5);
  CHECK(rows[4].dst == 6);
  CHECK(rows[4].bytes == 4'000'000);
  CHECK(rows[4].start == 10'000);
  CHECK(rows[7].src == 7);
  CHECK(rows[7].bytes == 20'000);

  // The scenario that names the same files is the same run.
  const Outcome named = paceline_command(
      folder, {"emulate", std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/hpcc-flows.toml",
               "-q", "--flows-out", "g.csv"});
  REQUIRE(named.code == 0);
  CHECK(folder.read("g.csv") == folder.read("f.csv"));
}

TEST_CASE("emulate: beyond max_hops the run fails and says so", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  const Outcome outcome =
      paceline_command(folder, {"emulate", "small.toml", "--set", "max_hops=1000", "--set",
                                "workload.message_bytes=300MB", "--out", "r.json"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Contains("paceline: small: more than max_hops = 1000 packet-hops"));
  CHECK(Json::parse(folder.read("r.json")).at("status") == "unfinished");
}

TEST_CASE("emulate: a run whose messages fail is a failure", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  const Outcome outcome =
      paceline_command(folder, {"emulate", "small.toml", "--set", "fabric.loss=1.0"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Contains("3 messages failed"));
}

TEST_CASE("emulate: an interrupt ends the run, exit 130", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kEmulated);
  // Far more than anyone would wait for.
  Command command(
      folder, {"emulate", "small.toml", "--set", "workload.message_bytes=1TB", "--out", "r.json"});
  while (command.running() && command.err().empty()) ::usleep(5000);  // the first line of progress
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  CHECK(outcome.code == 130);
  CHECK(Json::parse(folder.read("r.json")).at("status") == "unfinished");
}

TEST_CASE("help: every command explains itself with an example", "[cli]") {
  const Folder folder;
  for (const Strings& command : {Strings{"emulate"}, Strings{"ab"}, Strings{"cc"},
                                 Strings{"cc", "list"}, Strings{"cc", "show"}, Strings{}}) {
    Strings arguments = command;
    arguments.push_back("--help");
    const Outcome outcome = paceline_command(folder, arguments);
    std::string example = "  paceline ";
    for (const std::string& word : command) example += word + " ";
    if (command == Strings{"cc", "list"}) example = "  paceline cc list";
    CAPTURE(arguments, outcome.out);
    CHECK(outcome.code == 0);
    CHECK(outcome.err == "");
    CHECK_THAT(outcome.out, Contains(example));
  }
  const Outcome version = paceline_command(folder, {"--version"});
  CHECK(version.code == 0);
  CHECK_THAT(version.out, Catch::Matchers::StartsWith("paceline "));
}

}  // namespace
}  // namespace paceline::tools
