// Testbed files of emulated hosts: what is read, and what is said about mistakes.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/testbed/testbed_reader.h"

namespace paceline::config {
namespace {

using Errors = std::vector<std::string>;

Read<Testbed> read_emulated_text(std::string_view text, std::vector<std::string> overrides = {}) {
  return read_testbed_text(text, "t.toml", "", {cc::algorithms(), std::move(overrides)});
}
Errors emulated_errors(std::string_view text, std::vector<std::string> overrides = {}) {
  return read_emulated_text(text, std::move(overrides)).errors;
}

TEST_CASE("an emulated testbed is a scenario without a workload", "[config]") {
  const auto read = read_emulated_text(R"(schema = 1
name = "lab"
seed = 7
[fabric]
hosts = 3
rate = "25Gb/s"
loss = 0.001
[transport]
payload_bytes = 1024
[cc]
algorithm = "cadence"
[nic]
names = ["a", "b"]
transmit_ring = "50us"
lend_payload = false
[service]
socket = "/tmp/x.sock"
users = [1000, 1001]
queue_pairs = 10
registered = "1GiB"
[[event]]
at = "1ms"
link = "host2"
action = "down"
)");
  REQUIRE(read.errors == Errors{});
  const Testbed& t = read.value;
  CHECK(t.name == "lab");
  REQUIRE(t.scenario);
  CHECK(t.scenario->seed == 7);
  CHECK(t.scenario->fabric.hosts == 3);
  CHECK(t.scenario->fabric.loss == 0.001);
  CHECK(t.scenario->transport.payload_bytes == 1024);
  CHECK(t.scenario->cc.algorithm == "cadence");
  REQUIRE(t.scenario->events.size() == 1);
  CHECK(t.scenario->events[0].links == std::vector<std::uint32_t>{2});
  CHECK(t.nic.names == std::vector<std::string>{"a", "b", "h2"});
  CHECK(t.nic.transmit_ring == picos_from_micros(50));
  CHECK_FALSE(t.nic.lend_payload);
  CHECK(t.service.socket == "/tmp/x.sock");
  CHECK(t.service.users == std::vector<std::uint32_t>{1000, 1001});
  CHECK(t.service.queue_pairs == 10);
  CHECK(t.service.registered == 1ULL << 30);
  CHECK(t.service.regions == 65536);
  CHECK(t.ports.empty());
}

TEST_CASE("the command line chooses another algorithm", "[config]") {
  const auto read = read_emulated_text("[fabric]\nhosts = 2\n[cc]\nalgorithm = \"dcqcn\"\n",
                                       {"cc.algorithm=cadence", "fabric.hosts=5"});
  REQUIRE(read.errors == Errors{});
  CHECK(read.value.scenario->cc.algorithm == "cadence");
  CHECK(read.value.nic.names.size() == 5);
  CHECK(emulated_errors("[fabric]\nhosts = 2\n", {"fabric.hots=5"}).size() == 1);
}

TEST_CASE("mistakes in an emulated testbed are told with their place", "[config]") {
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[workload]\nkind = \"incast\"\n") ==
        Errors{"t.toml:3:2: workload belongs to a scenario; on a testbed programs bring the "
               "traffic"});
  CHECK(emulated_errors("duration = \"1s\"\n[fabric]\nhosts = 2\n") ==
        Errors{"t.toml:1:1: duration belongs to a scenario; on a testbed programs bring the "
               "traffic"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[[port]]\nname = \"x\"\n") ==
        Errors{"t.toml:3:3: port is of a testbed of this machine's ports; with [fabric] all hosts "
               "are emulated"});
  CHECK(emulated_errors("[fabric]\nhosts = 257\n") ==
        Errors{"t.toml:2:9: 257 hosts: a testbed has at most 256"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nic]\nnames = [\"a\", \"a\"]\n") ==
        Errors{"t.toml:4:15: nic.names = \"a\": another NIC has this name"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nic]\nnames = [\"a b\"]\n") ==
        Errors{"t.toml:4:10: nic.names = \"a b\": expected names of letters, digits, \"-\" and "
               "\"_\", at most 31"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nic]\nnames = [\"a\", \"b\", \"c\"]\n") ==
        Errors{"t.toml:4:9: nic.names has 3 names; fabric.hosts = 2"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nic]\nnames = [\"h1\"]\n") ==
        Errors{"t.toml:4:9: nic.names: \"h1\" is what host 1, which has no name, is called"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nick]\nx = 1\n") ==
        Errors{"t.toml:3:2: unknown key \"nick\"; did you mean \"nic\"?"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[service]\nqueue_pairs = 0\n").size() == 1);
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[service]\nqueue_pears = 9\n").size() == 1);
  CHECK(emulated_errors("[fabric]\nhosts = 1\n").size() == 1);
}

TEST_CASE("NICs of several ports are devices together or apart", "[config]") {
  const std::string two = "[fabric]\nhosts = 2\nports = 2\n[nic]\n";
  const auto bonded = read_emulated_text(two);
  REQUIRE(bonded.errors == Errors{});
  CHECK(bonded.value.nic.shape == "bonded");
  const std::string separate = "shape = \"separate\"\n";
  const auto apart = read_emulated_text(two + separate);
  REQUIRE(apart.errors == Errors{});
  CHECK(apart.value.nic.shape == "separate");
  CHECK(apart.value.nic.names == std::vector<std::string>{"h0", "h1"});
  CHECK(emulated_errors(two + "shape = \"split\"\n") ==
        Errors{"t.toml:5:9: nic.shape = \"split\": allowed is \"bonded\", \"separate\" or "
               "\"multiport\""});

  // A subnet for each port.
  const std::string multiport = "shape = \"multiport\"\n";
  const auto ported = read_emulated_text(two + multiport);
  REQUIRE(ported.errors == Errors{});
  CHECK(ported.value.nic.shape == "multiport");
  const std::string small = two.substr(0, two.find("[nic]")) + "subnet = \"10.0.0.0/16\"\n[nic]\n";
  CHECK(emulated_errors(small) == Errors{});
  CHECK(
      emulated_errors(small + multiport) ==
      Errors{"t.toml:4:10: fabric.subnet = \"10.0.0.0/16\": with nic.shape = \"multiport\" each of "
             "the 2 ports needs 65536 addresses; allowed is a prefix of at most 15"});

  // A device's name is at most 31 characters, two of which are its port's.
  const auto named = [&](std::size_t length) {
    return two + "names = [\"" + std::string(length, 'x') + "\"]\n";
  };
  CHECK(emulated_errors(named(31)) == Errors{});
  CHECK(emulated_errors(named(29) + separate) == Errors{});
  CHECK(emulated_errors(named(30) + separate) ==
        Errors{"t.toml:5:9: nic.names: \"" + std::string(30, 'x') +
               "\": with nic.shape = \"separate\" at most 29"});

  // So many devices.
  const std::string many = "[fabric]\nhosts = 129\nports = 2\n[nic]\n";
  CHECK(emulated_errors(many) == Errors{});
  CHECK(emulated_errors(many + separate) ==
        Errors{"t.toml:2:9: 258 ports, each a device: a testbed has at most 256"});
  CHECK(emulated_errors("[fabric]\nhosts = 2\n[nic]\n" + separate) ==
        Errors{"t.toml:4:9: nic.shape is for NICs of several ports; allowed with fabric.ports of 2 "
               "and more"});
}

TEST_CASE("who wants ports is told that these hosts are emulated", "[config]") {
  const auto read = read_testbed_text("[fabric]\nhosts = 2\n", "t.toml");
  REQUIRE(read.errors.size() == 1);
  CHECK(read.errors[0].find("t.toml:1:2: [fabric] makes a testbed of emulated hosts") == 0);
}

TEST_CASE("algorithms that need telemetry are refused where there is none", "[config]") {
  const std::string needs =
      "in-band telemetry: fabric.int = true in an emulated fabric, transport.reliability = "
      "\"selective\", and transport.peers not \"roce\"; here it is ";
  const std::string cc = "[cc]\nalgorithm = \"hpcc\"\n";
  const std::string selective = "[transport]\nreliability = \"selective\"\n";
  CHECK(emulated_errors("[fabric]\nhosts = 2\n" + cc) ==
        Errors{"t.toml:4:13: cc.algorithm = \"hpcc\" needs " + needs +
               "false, \"go_back_n\", \"paceline\""});
  CHECK(emulated_errors("[fabric]\nhosts = 2\nint = true\n" + cc).size() == 1);
  CHECK(emulated_errors("[fabric]\nhosts = 2\n" + selective + cc).size() == 1);
  CHECK(emulated_errors("[fabric]\nhosts = 2\nint = true\n" + selective + cc) == Errors{});
  CHECK(emulated_errors("[fabric]\nhosts = 2\nint = true\n" + selective + "peers = \"roce\"\n" + cc)
            .size() == 1);
  // Nor does one of them take over where a peer says nothing.
  CHECK(emulated_errors("[fabric]\nhosts = 2\nint = true\n" + selective +
                        "[cc]\nalgorithm = \"cadence\"\nfallback = \"hpcc\"\n")
            .size() == 1);
  CHECK(emulated_errors("[fabric]\nhosts = 2\nint = 1\n").size() == 1);
  // Ports of the machine have none.
  const auto ports =
      read_testbed_text("[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n" + selective + cc,
                        "t.toml", "", {cc::algorithms(), {}});
  REQUIRE(ports.errors.size() == 1);
  CHECK(ports.errors[0].find("t.toml:7:13: cc.algorithm = \"powertcp\"") == std::string::npos);
  CHECK(ports.errors[0].find("t.toml:7:13: cc.algorithm = \"hpcc\" needs") == 0);
  // In an experiment each arm meets each scenario.
  const std::string arms =
      "[[arm]]\nname = \"a\"\nalgorithm = \"dcqcn\"\n[[arm]]\nname = \"b\"\nalgorithm = "
      "\"powertcp\"\n[common.transport]\nreliability = \"selective\"\n";
  const auto experiment = [&](const std::string& scenarios) {
    return read_experiment_text(arms + scenarios, "e.toml", "", {cc::algorithms(), {}}).errors;
  };
  const std::string told = "[[scenario]]\nname = \"told\"\nfabric.int = true\n";
  CHECK(experiment(told) == Errors{});
  const Errors one = experiment(told + "[[scenario]]\nname = \"not\"\n");
  REQUIRE(one.size() == 1);
  CHECK(one[0].find("e.toml:6:13: arm.algorithm = \"powertcp\" needs in-band") == 0);
}

TEST_CASE("switch-notified needs switches that notify", "[config]") {
  const std::string cc = "[cc]\nalgorithm = \"switch-notified\"\n";
  CHECK(emulated_errors("[fabric]\nhosts = 2\nnotice.enabled = true\n" + cc) == Errors{});
  const std::string need =
      "switches that notify senders: fabric.notice.enabled = true in an emulated fabric";
  CHECK(emulated_errors("[fabric]\nhosts = 2\n" + cc) ==
        Errors{"t.toml:4:13: cc.algorithm = \"switch-notified\" needs " + need});
  CHECK(emulated_errors("[fabric]\nhosts = 2\nnotice.enabled = true\n[cc]\nalgorithm = "
                        "\"cadence\"\nfallback = \"switch-notified\"\n")
            .size() == 1);
  const auto ports = read_testbed_text("[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n" + cc,
                                       "t.toml", "", {cc::algorithms(), {}});
  CHECK(ports.errors == Errors{"t.toml:5:13: cc.algorithm = \"switch-notified\" needs " + need});
}

TEST_CASE("a testbed of ports has what its engines are told", "[config]") {
  const std::string port = "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n";
  const std::string host = "[port.host]\naddresses = [\"10.0.0.1/24\", \"fd00::1/64\"]\n";
  const auto read = [&](const std::string& text) {
    return read_testbed_text(text, "t.toml", "", {cc::algorithms(), {"cc.algorithm=cadence"}});
  };
  const auto good = read(port + host + "[transport]\nreliability = \"selective\"\n");
  REQUIRE(good.errors == Errors{});
  CHECK(good.value.transport.peers == "discover");
  CHECK(good.value.transport.reliability == "selective");
  CHECK(good.value.cc.algorithm == "cadence");
  CHECK(service_problems(good.value) == Errors{});
  CHECK(read(port + "[transport]\npayload_bytes = 1024\n").errors ==
        Errors{"t.toml:5:17: transport.payload_bytes is for emulated hosts; a port has port.mtu"});
  CHECK(service_problems(read(port).value) ==
        Errors{"t.toml:3:10: port \"a\": for programs it needs addresses, [port.host]: addresses = "
               "[\"10.0.0.1/24\"]"});
  const auto crowded = read(port + "[port.host]\naddresses = [\"10.0.0.1/24\", \"10.0.1.1/24\"]\n");
  REQUIRE(crowded.errors == Errors{});
  CHECK(service_problems(crowded.value).size() == 1);
}

// --- the reference ---

const std::string kTestbedPage = std::string(PACELINE_SOURCE_DIR) + "/docs/service.md";
const std::string kTestbedBegin = "<!-- keys: begin -->\n";
const std::string kTestbedEnd = "<!-- keys: end -->\n";

std::string testbed_page() {
  std::ifstream in(kTestbedPage);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("docs/service.md is the table of keys", "[config]") {
  const std::string text = testbed_page();
  const auto begin = text.find(kTestbedBegin);
  const auto end = text.find(kTestbedEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  INFO("write it again with: test_config \"[.write-service]\"");
  const auto from = begin + kTestbedBegin.size();
  CHECK(text.substr(from, end - from) == emulated_reference_markdown());
}

TEST_CASE("write the reference of docs/service.md", "[.write-service]") {
  std::string text = testbed_page();
  const auto from = text.find(kTestbedBegin) + kTestbedBegin.size();
  text.replace(from, text.find(kTestbedEnd) - from, emulated_reference_markdown());
  std::ofstream(kTestbedPage) << text;
}

}  // namespace
}  // namespace paceline::config
