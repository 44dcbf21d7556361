// `paceline emulate --capture`: the files, their names, and that looking changes nothing.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"
#include "tests/wire/checks/pcapng_reader.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Counts = std::map<std::string, unsigned>;

const std::string kCaptured = R"(schema = 1
name = "small"
[fabric]
topology = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 3
ecn = { kmin = "10kB", kmax = "40kB" }
[cc]
algorithm = "dcqcn"
[workload]
kind = "incast"
fan_in = 5
message_bytes = "50001B"
start_jitter = "1us"
)";

test::PcapngFile checked(const Folder& folder, const std::string& name) {
  test::PcapngFile file = test::read_pcapng(folder.path(name));
  CHECK(test::check_capture(file) == "");
  return file;
}

unsigned count(const Counts& counts, const std::string& name) {
  const auto at = counts.find(name);
  return at == counts.end() ? 0 : at->second;
}

TEST_CASE("capture: looking changes no result, whatever is looked at", "[cli]") {
  const Strings variants[] = {
      {},
      {"--set", "cc.algorithm=cadence"},
      {"--set", "cc.algorithm=cadence", "--set", "transport.peers=discover"},
      {"--set", "fabric.loss=0.01", "--set", "fabric.corrupt=0.01", "--set",
       "fabric.duplicate=0.01", "--set", "fabric.reorder=0.02"},
      {"--set", "fabric.buffer=\"150kB\"", "--set", "fabric.pfc.headroom=\"4kB\"", "--set",
       "fabric.pfc.reserve=\"1kB\""},
      {"--set", "fabric.pfc.enabled=false", "--set", "fabric.buffer=\"70kB\""},
      {"--set", "transport.payload_bytes=256"},
  };
  for (const Strings& variant : variants) {
    CAPTURE(variant);
    const Folder folder;
    folder.write("small.toml", kCaptured);
    const auto run = [&](const std::string& out, const Strings& extra) {
      Strings arguments = {"emulate",     "small.toml", "--out", out,
                           "--flows-out", out + ".csv", "-q"};
      arguments.insert(arguments.end(), variant.begin(), variant.end());
      arguments.insert(arguments.end(), extra.begin(), extra.end());
      const Outcome outcome = paceline_command(folder, arguments);
      CAPTURE(outcome.err);
      CHECK(outcome.code == 0);
    };
    run("without.json", {});
    run("with.json", {"--capture", "host0.pcapng", "--capture", "leaf1-spine0.pcapng", "--capture",
                      "host4.pcapng"});
    CHECK(folder.read("with.json") == folder.read("without.json"));
    CHECK(folder.read("with.json.csv") == folder.read("without.json.csv"));
    for (const char* name : {"host0.pcapng", "leaf1-spine0.pcapng", "host4.pcapng"}) {
      INFO(name);
      const test::PcapngFile file = checked(folder, name);
      REQUIRE(file.interfaces.size() == 1);
      CHECK(file.interfaces[0].name + ".pcapng" == name);
      CHECK(!file.packets.empty());
      REQUIRE(file.statistics.size() == 1);
      CHECK(file.statistics[0].received == file.packets.size());
    }
    const bool pausing = variant.size() > 2 && variant[3].find("pfc.headroom") != std::string::npos;
    CHECK((count(test::count_packets(checked(folder, "host4.pcapng")), "PFC") > 0) == pausing);
  }
}

TEST_CASE("capture: what is in it is what the run counted", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kCaptured);
  const Outcome outcome =
      paceline_command(folder, {"emulate", "small.toml", "--set", "cc.algorithm=cadence", "--set",
                                "transport.peers=discover", "--set", "workload.message_bytes=300kB",
                                "--out", "r.json", "--capture", "host0.pcapng"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("capture    host0.pcapng: "));
  const Json counters = Json::parse(folder.read("r.json")).at("counters");
  const Counts counts = test::count_packets(checked(folder, "host0.pcapng"));
  // All that the receiver of an incast sends and gets passes its own link.
  CHECK(count(counts, "RC WRITE First") + count(counts, "RC WRITE Middle") +
            count(counts, "RC WRITE Last") ==
        counters.at("rx_data_packets").get<unsigned>());
  CHECK(count(counts, "RC ACK") == counters.at("acks_sent").get<unsigned>());
  CHECK(count(counts, "CNP") == counters.at("cnps_sent").get<unsigned>());
  CHECK(count(counts, "HELLO") > 0);
  CHECK(count(counts, "REQUEST") > 0);
  CHECK(count(counts, "GRANT") == counters.at("grants_sent").get<unsigned>());
}

TEST_CASE("capture: what did not arrive is there, with the reason", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kCaptured);
  const Outcome outcome = paceline_command(
      folder, {"emulate", "small.toml", "-q", "--set", "fabric.pfc.enabled=false", "--set",
               "fabric.buffer=\"70kB\"", "--set", "fabric.corrupt=0.02", "--set",
               "fabric.duplicate=0.02", "--out", "r.json", "--capture", "host0.pcapng"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const test::PcapngFile file = checked(folder, "host0.pcapng");
  unsigned dropped = 0;
  unsigned damaged = 0;
  unsigned copies = 0;
  for (const test::PcapngPacket& p : file.packets) {
    if (p.comment.find("dropped in front of this link: buffer_full") != std::string::npos) {
      ++dropped;
      CHECK(p.direction == 1);  // host0 is the first end: inbound is to it
    }
    if (p.comment.find("bit error") != std::string::npos) ++damaged;
    if (p.comment.find("copy") != std::string::npos) ++copies;
  }
  const Json network = Json::parse(folder.read("r.json")).at("network");
  CHECK(dropped > 0);
  CHECK(dropped <= network.at("drops").at("buffer_full").get<unsigned>());
  CHECK(file.statistics.at(0).dropped == dropped);
  CHECK(damaged > 0);
  CHECK(copies > 0);
}

TEST_CASE("capture: links are named as in events, and a wrong name is refused", "[cli]") {
  struct Case {
    const char* name;
    Strings texts;
  };
  const Case cases[] = {
      {"hots1.pcapng", {"--capture hots1.pcapng", "\"hots1\"", "nearest is \"host1\""}},
      {"host6.pcapng", {"host6", "host0 .. host5", "nearest is \"host0\""}},
      {"leaf0-spin1.pcapng", {"leaf0-spin1", "nearest is \"leaf0-spine1\""}},
      {"host1.pcap", {"host1.pcap: expected LINK.pcapng"}},
      {"host1", {"host1: expected LINK.pcapng"}},
      {"nowhere/host1.pcapng", {"nowhere/host1.pcapng", "there is no folder nowhere"}},
  };
  for (const Case& c : cases) {
    const Folder folder;
    folder.write("small.toml", kCaptured);
    const Outcome outcome = paceline_command(
        folder, {"emulate", "small.toml", "--capture", c.name, "--capture", "host0.pcapng"});
    CAPTURE(c.name, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    for (const std::string& text : c.texts) CHECK_THAT(outcome.err, Contains(text));
    CHECK(folder.list() == Strings{"small.toml"});
  }
  const Folder folder;
  folder.write("small.toml", kCaptured);
  const Outcome twice =
      paceline_command(folder, {"emulate", "small.toml", "--capture", "leaf0-spine1.pcapng",
                                "--capture", "./spine1-leaf0.pcapng"});
  CHECK(twice.code == 2);
  CHECK_THAT(twice.err, Contains("link leaf0-spine1 is captured already"));
  for (const Strings& wrong : {Strings{"--capture", "host0.pcapng", "--capture-limit", "many"},
                               Strings{"--capture", "host0.pcapng", "--capture-limit", "10B"}}) {
    Strings arguments = {"emulate", "small.toml"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = paceline_command(folder, arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains("--capture-limit"));
  }
  CHECK(folder.list() == Strings{"small.toml"});
}

TEST_CASE("capture: a topology file's links by its node numbers", "[cli]") {
  const Folder folder;
  const std::string examples = std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/hpcc/";
  const Strings command = {"emulate",    "-q",
                           "--topology", examples + "star8.topology",
                           "--flows",    examples + "star8.flows"};
  const auto with = [&](const char* name) {
    Strings arguments = command;
    arguments.insert(arguments.end(), {"--capture", name, "--capture-packets", "100"});
    return paceline_command(folder, arguments);
  };
  const Outcome wrong = with("0-1.pcapng");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("the topology file has no link \"0-1\"; nearest is \"0-8\""));
  const Outcome good = with("8-0.pcapng");
  CAPTURE(good.err);
  CHECK(good.code == 0);
  CHECK_THAT(good.err, Contains("8-0.pcapng: limit reached at ") && Contains("the first 100 of "));
  const test::PcapngFile file = checked(folder, "8-0.pcapng");
  CHECK(file.packets.size() == 100);
  CHECK(file.statistics.at(0).comment != "");
}

TEST_CASE("capture: an interrupt leaves a whole file, of what was seen until then", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kCaptured);
  Command command(folder, {"emulate", "small.toml", "--set", "workload.message_bytes=1TB",
                           "--capture", "host0.pcapng", "--capture-limit", "3MB"});
  while (command.running() && command.err().empty()) ::usleep(5000);
  CHECK(folder.list() == Strings{"host0.pcapng.partial", "small.toml"});
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  CHECK(outcome.code == 130);
  CHECK(folder.list() == Strings{"host0.pcapng", "small.toml"});
  const test::PcapngFile file = checked(folder, "host0.pcapng");
  CHECK(file.packets.size() > 500);
  CHECK(file.statistics.size() == 1);
  CHECK_THAT(outcome.err, Contains("limit reached"));
}

}  // namespace
}  // namespace paceline::tools
