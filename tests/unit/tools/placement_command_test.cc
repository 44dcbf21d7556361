// `paceline emulate` with servers of several NICs: what is reported, and what is refused.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools::placement_command_test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

// n = 12 NICs of h = 4 servers of g = 3.
const std::string kAllToAll = R"(schema = 1
[fabric]
hosts = 12
nics = 3
[cc]
algorithm = "fixed"
[workload]
kind = "all_to_all"
message_bytes = "10kB"
)";

struct Emulated {
  std::string text;
  Json json;
  std::size_t rows = 0;
};

Emulated emulate(const Folder& folder, Strings more) {
  Strings arguments{"emulate", "s.toml", "--out", "r.json", "--flows-out", "f.csv", "--check"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = paceline_command(folder, arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  Emulated out{outcome.out, Json::parse(folder.read("r.json")), 0};
  std::istringstream lines(folder.read("f.csv"));
  for (std::string line; std::getline(lines, line);) ++out.rows;
  --out.rows;  // the heading
  return out;
}

TEST_CASE("placement: NVLink's bytes, NICs' bytes and the cross-rail share are reported",
          "[cli][placement]") {
  const Folder folder;
  folder.write("s.toml", kAllToAll);
  const Emulated direct = emulate(folder, {});
  CHECK(direct.json["rails"]["nics_per_server"] == 3);
  CHECK(direct.json["rails"]["nvlink_bytes"] == 12 * 2 * 10'000);
  CHECK(direct.json["rails"]["nic_bytes"] == 12 * 9 * 10'000);
  CHECK(direct.json["rails"]["cross_rail_bytes"] == 12 * 2 * 3 * 10'000);
  CHECK(direct.json["rails"]["cross_rail_share"] == Approx(2.0 / 3));
  CHECK_THAT(direct.text, Contains("4 servers of 3 NICs: 240.0 kB by NVLink, 1.08 MB by NICs, "
                                   "66.67 % of it to another rail"));

  const Emulated relayed = emulate(folder, {"--set", "workload.pxn=true"});
  CHECK(relayed.json["rails"]["nvlink_bytes"] == 12 * (2 + 2 * 3) * 10'000);
  CHECK(relayed.json["rails"]["nic_bytes"] == 12 * 9 * 10'000);
  CHECK(relayed.json["rails"]["cross_rail_bytes"] == 0);
  // A relayed message is one message, from its first sender to its last receiver.
  CHECK(relayed.rows == 12 * 11);
  CHECK(relayed.rows == direct.rows);
  CHECK(relayed.json["totals"]["messages"] == 12 * 11);
  CHECK(relayed.json["totals"]["messages_started"] == 12 * 11);
  CHECK(relayed.json["totals"]["messages_completed"] == 12 * 11);
}

// Alone in the fabric a message over NVLink and a rail takes its ideal time.
TEST_CASE("placement: the completion time of a relayed message counts both its ways",
          "[cli][placement]") {
  const Folder folder;
  folder.write("s.toml", R"(schema = 1
[fabric]
hosts = 4
nics = 2
nvlink_rate = "800Gb/s"
nvlink_latency = "500ns"
[cc]
algorithm = "fixed"
[workload]
kind = "incast"
fan_in = 1
receiver = 3
message_bytes = "100kB"
pxn = true
)");
  // Rank 0 is NIC 0 of server 0, rank 3 NIC 1 of server 1: number 3.
  const Emulated run = emulate(folder, {});
  REQUIRE(run.rows == 1);
  std::istringstream lines(folder.read("f.csv"));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  std::vector<std::string> fields;
  std::istringstream row(line);
  for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
  REQUIRE(fields.size() == 7);
  CHECK(fields[1] == "0");
  CHECK(fields[2] == "3");
  CHECK(fields[3] == "100000");
  CHECK(fields[5] == fields[6]);
  // 1 us of NVLink at 10 ps a byte and 500 ns, and more than 8 us of the NIC's 80 ps a byte.
  CHECK(std::stoll(fields[5]) > 1'000 + 500 + 8'000);
  CHECK(run.json["rails"]["nvlink_bytes"] == 100'000);
  CHECK(run.json["rails"]["nic_bytes"] == 100'000);
}

TEST_CASE("placement: servers of one NIC have no rails to report", "[cli][placement]") {
  const Folder folder;
  folder.write("s.toml", kAllToAll);
  const Emulated run = emulate(folder, {"--set", "fabric.nics=1"});
  CHECK_FALSE(run.json.contains("rails"));
  CHECK_THAT(run.text, !Contains("NVLink"));
}

TEST_CASE("placement: a file decides who shares a server", "[cli][placement]") {
  const Folder folder;
  folder.write("s.toml", R"(schema = 1
[fabric]
hosts = 4
nics = 2
[workload]
fan_in = 1
receiver = 3
message_bytes = "10kB"
placement_file = "p"
)");
  folder.write("p", "0 0 0\n3 0 1\n1 1 0\n2 1 1\n");
  CHECK(emulate(folder, {}).json["rails"]["nvlink_bytes"] == 10'000);
  folder.write("p", "0 0 0\n1 0 1\n3 1 0\n2 1 1\n");
  const Json rails = emulate(folder, {}).json["rails"];
  CHECK(rails["nvlink_bytes"] == 0);
  CHECK(rails["cross_rail_bytes"] == 0);
}

TEST_CASE("placement: bad files are refused with line, column and what is allowed",
          "[cli][placement]") {
  const Folder folder;
  folder.write("s.toml", kAllToAll + "placement_file = \"p\"\n");
  const auto refused = [&folder](const std::string& text, const Strings& texts) {
    folder.write("p", text);
    const Outcome outcome = paceline_command(folder, {"emulate", "s.toml"});
    CHECK(outcome.code == 2);
    for (const std::string& part : texts) CHECK_THAT(outcome.err, Contains(part));
  };
  refused("12 0 0\n", {"p:1:1: ", "rank", "[0 .. 11]"});
  refused("0 4 0\n", {"p:1:3: ", "server", "[0 .. 3]"});
  refused("0 0 3\n", {"p:1:5: ", "nic", "[0 .. 2]"});
  refused("0 0 0\n0 0 1\n", {"p:2:1: ", "rank = 0"});
  refused("0 0 0\n1 0 0\n", {"p:2:3: ", "rank 0 has it already"});
  refused("0 0 0\n", {"p:1:6: ", "rank 1 is missing"});
}

}  // namespace
}  // namespace paceline::tools::placement_command_test
