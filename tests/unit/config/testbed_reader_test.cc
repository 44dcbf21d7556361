#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "dataplane/config/testbed/testbed_reader.h"

namespace paceline::config {
namespace {

TEST_CASE("testbed: everything that can be said") {
  const auto read = read_testbed_text(R"(
schema = 1
[eal]
no_huge = false
in_memory = true
memory = "1GiB"
lcores = "0@0,1@1"
vdevs = ["net_null0"]
pci_allow = ["0000:3b:00.0", "0000:3b:00.1"]

[[port]]
name = "left"
device = "net_memif0,role=client,bsize=4608"
rate = "25Gb/s"
mtu = 2048
queues = 2
packets = 16384
rx_descriptors = 512
tx_descriptors = 256
promiscuous = true
lend_payload = false
mac = "02:aB:00:00:00:01"

[[port]]
name = "right"
device = "0000:3b:00.0"
)",
                                      "bed.toml");
  for (const std::string& error : read.errors) UNSCOPED_INFO(error);
  REQUIRE(read.ok());
  const Testbed& bed = read.value;
  CHECK(!bed.eal.no_huge);
  CHECK(bed.eal.in_memory);
  CHECK(bed.eal.memory == 1ULL << 30);
  CHECK(bed.eal.lcores == "0@0,1@1");
  CHECK(bed.eal.vdevs == std::vector<std::string>{"net_null0"});
  CHECK(bed.eal.pci_allow.size() == 2);
  REQUIRE(bed.ports.size() == 2);
  CHECK(bed.ports[0].name == "left");
  CHECK(bed.ports[0].device == "net_memif0,role=client,bsize=4608");
  CHECK(bed.ports[0].rate == rate_from_gbps(25));
  CHECK(bed.ports[0].mtu == 2048);
  CHECK(bed.ports[0].queues == 2);
  CHECK(bed.ports[0].packets == 16384);
  CHECK(bed.ports[0].rx_descriptors == 512);
  CHECK(bed.ports[0].tx_descriptors == 256);
  CHECK(bed.ports[0].promiscuous);
  CHECK_FALSE(bed.ports[0].lend_payload);
  REQUIRE(bed.ports[0].mac.has_value());
  CHECK(to_text(*bed.ports[0].mac) == "02:ab:00:00:00:01");
  CHECK(bed.ports[0].where == "bed.toml:13:10");
  CHECK(bed.ports[1].mtu == 4096);
  CHECK(!bed.ports[1].mac.has_value());
  CHECK(bed.ports[1].rate.bps == 0);
}

std::vector<std::string> testbed_errors(const std::string& text) {
  return read_testbed_text(text, "bed.toml").errors;
}

// One good port; tests add to it.
constexpr const char* kPort = "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n";

void refuses(const std::string& text, const std::string& expected) {
  const auto errors = testbed_errors(text);
  INFO(text);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0] == "bed.toml:" + expected);
}

TEST_CASE("testbed: errors name file, line, value and what is allowed") {
  refuses("", "1:1: a testbed needs at least one [[port]]");
  refuses("port = 3\n", "1:8: port: expected an array of tables, [[port]]");
  refuses("[[port]]\nname = \"a\"\n", "1:1: a [[port]] needs \"device\"");
  refuses(std::string(kPort) + "mtu = 1500\n",
          "4:7: port.mtu = 1500: allowed is 256, 512, 1024, 2048 or 4096");
  refuses(std::string(kPort) + "mtu = 9000\n",
          "4:7: port.mtu = 9000: out of range, allowed is [256 .. 4096]");
  refuses(std::string(kPort) + "rate = \"10\"\n",
          "4:8: port.rate = \"10\": it has no unit; expected a rate such as \"100Gb/s\" (units "
          "b/s, kb/s, "
          "Mb/s, Gb/s or Tb/s)");
  refuses(std::string(kPort) + "mac = \"01:00:00:00:00:01\"\n",
          "4:7: port.mac = \"01:00:00:00:00:01\": a group address; a port has its own");
  refuses(std::string(kPort) + "mac = \"02-00-00-00-00-01\"\n",
          "4:7: port.mac = \"02-00-00-00-00-01\": expected six bytes as in \"02:00:00:00:00:01\"");
  refuses(std::string(kPort) + "packets = 1000\n",
          "4:11: port.packets = 1000: the descriptors alone hold 2048; allowed is 2080 "
          "or more");
  refuses(std::string(kPort) + "devise = \"x\"\n",
          "4:1: unknown key \"devise\" in [port]; did you mean \"device\"?");
  refuses(std::string(kPort) + "[[port]]\nname = \"a\"\ndevice = \"net_null1\"\n",
          "5:8: port.name = \"a\": another port has this name");
  refuses(std::string(kPort) + "[[port]]\nname = \"b\"\ndevice = \"net_null0,copy=1\"\n",
          "6:10: port.device = \"net_null0,copy=1\": port \"a\" has this device; use its queues");
  refuses("[eal]\nin_memory = true\n" + std::string(kPort),
          "2:13: eal.in_memory = true: is about hugepages; allowed with eal.no_huge = false");
  refuses("[eal]\nmemory = \"12MiB\"\n" + std::string(kPort),
          "2:10: eal.memory = \"12MiB\": with eal.no_huge = true 64MiB is the least");
  refuses("[eal]\nvdevs = \"net_null0\"\n" + std::string(kPort),
          "2:9: eal.vdevs = \"net_null0\": expected an array of texts");
  refuses("schema = 2\n" + std::string(kPort), "1:10: schema = 2: this program reads schema 1");
}

// Two ports of one NIC: tests change the second.
const std::string kBond =
    "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\nbond = \"nic\"\nrate = \"10Gb/s\"\n"
    "[port.host]\naddresses = [\"10.0.0.1/24\"]\n"
    "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\nbond = \"nic\"\n";

TEST_CASE("testbed: ports of a bond are one NIC") {
  const std::vector<cc::AlgorithmInfo> algorithms(cc::algorithms().begin(), cc::algorithms().end());
  const auto read = [&](const std::string& text) {
    return read_testbed_text(text, "bed.toml", "", {algorithms, {}});
  };
  const auto spread = read(kBond + "rate = \"10Gb/s\"\n[transport]\nreliability = \"selective\"\n");
  for (const std::string& error : spread.errors) UNSCOPED_INFO(error);
  REQUIRE(spread.ok());
  CHECK(spread.value.ports[1].bond == "nic");
  CHECK(spread.value.transport.planes == "spray");
  CHECK(service_problems(spread.value).empty());
  const auto hashed = read(kBond + "rate = \"10Gb/s\"\n");
  REQUIRE(hashed.ok());
  CHECK(hashed.value.transport.planes == "hash");

  refuses(kBond,
          "11:8: port.bond = \"nic\": expected rate, mtu and queues of port \"a\", the first");
  refuses(kBond + "rate = \"10Gb/s\"\n[port.host]\naddresses = [\"10.0.0.2/24\"]\n",
          "11:8: port.bond = \"nic\": only the first port of a bond has a [port.host]");
  refuses(
      std::string(kPort) + "bond = \"my nic\"\n",
      "4:8: port.bond = \"my nic\": programs see this name: expected letters, digits, \"-\" and "
      "\"_\", at most 31");
  const auto same = read(kBond +
                         "rate = \"10Gb/s\"\n[[port]]\nname = \"nic\"\ndevice = "
                         "\"net_null2\"\n[port.host]\naddresses = [\"10.0.1.1/24\"]\n");
  REQUIRE(same.ok());
  REQUIRE(service_problems(same.value).size() == 1);
  CHECK(service_problems(same.value)[0].find("have the same name") != std::string::npos);
}

TEST_CASE("testbed: hosts") {
  const auto read = read_testbed_text(R"(
[[port]]
name = "host0"
device = "net_null0"
[port.host]
addresses = ["10.0.0.1/24", "fd00::1/64"]
gateway_v4 = "10.0.0.254"
gateway_v6 = "fe80::1"
fixed = ["10.0.0.9 02:00:00:00:00:09"]
vlan = 42
ip_mtu = 1500
answer_echo = false
retransmit = "200ms"
[[port]]
name = "rail"
device = "net_null1"
queues = 2
)",
                                      "bed.toml");
  for (const std::string& error : read.errors) UNSCOPED_INFO(error);
  REQUIRE(read.ok());
  REQUIRE(read.value.ports[0].host.has_value());
  const HostConfig& host = *read.value.ports[0].host;
  REQUIRE(host.addresses.size() == 2);
  CHECK(host.addresses[0].address == wire::IpAddress::v4(0x0A000001));
  CHECK(host.addresses[0].prefix_bits == 24);
  CHECK(host.addresses[1].prefix_bits == 64);
  CHECK(to_text(*host.gateway_v4) == "10.0.0.254");
  CHECK(to_text(*host.gateway_v6) == "fe80::1");
  REQUIRE(host.fixed.size() == 1);
  CHECK(to_text(host.fixed[0].mac) == "02:00:00:00:00:09");
  CHECK(host.vlan == 42);
  CHECK(host.ip_mtu == 1500);
  CHECK(!host.answer_echo);
  CHECK(host.retransmit == picos_from_micros(200'000));
  CHECK(!read.value.ports[1].host.has_value());
}

TEST_CASE("testbed: errors of hosts") {
  const std::string host = std::string(kPort) + "[port.host]\n";
  const std::string good = "addresses = [\"10.0.0.1/24\"]\n";
  refuses(host, "4:1: a [port.host] needs \"addresses\"");
  refuses(host + "addresses = []\n", "5:13: port.host.addresses = an array: allowed are 1 to 8");
  refuses(host + "addresses = [\"10.0.0.1\"]\n",
          "5:14: port.host.addresses = \"10.0.0.1\": expected an address and the length of its "
          "prefix, as in \"10.0.0.1/24\" or \"fd00::1/64\"");
  refuses(host + "addresses = [\"10.0.0.1/33\"]\n",
          "5:14: port.host.addresses = \"10.0.0.1/33\": the length of the prefix: allowed is [0 .. "
          "32]");
  refuses(host + good + "gateway_v4 = \"fe80::1\"\n",
          "6:14: port.host.gateway_v4 = \"fe80::1\": expected an IPv4 address as in "
          "\"10.0.0.254\"");
  refuses(host + good + "fixed = [\"10.0.0.9\"]\n",
          "6:10: port.host.fixed = \"10.0.0.9\": expected an address and a MAC address, as in "
          "\"10.0.0.9 02:00:00:00:00:09\"");
  refuses(host + good + "vlan = 4095\n",
          "6:8: port.host.vlan = 4095: out of range, allowed is [0 .. 4094]");
  refuses(host + good + "adresses = 1\n",
          "6:1: unknown key \"adresses\" in [port.host]; did you mean \"addresses\"?");
  refuses(std::string(kPort) + "queues = 2\n[port.host]\n" + good,
          "5:7: port.host: neighbours answer to one queue; port.queues = 2");

  refuses(std::string(kPort) + "clock = \"nic\"\n",
          "4:9: port.clock = \"nic\": allowed is \"device\" or \"poll\"");
  refuses(std::string(kPort) + "pause = \"always\"\n",
          "4:9: port.pause = \"always\": allowed is \"keep\", \"off\", \"receive\", \"send\" or "
          "\"both\"");
}

// The thread of a port is the service's: files of before that have this table are refused.
TEST_CASE("testbed: [[worker]] is an unknown table") {
  refuses(std::string(kPort) + "[[worker]]\nname = \"w\"\nports = [\"a\"]\n",
          "4:3: unknown key \"worker\"; allowed is \"schema\", \"eal\", \"port\", \"cc\", "
          "\"transport\" or \"service\"");
}

TEST_CASE("testbed: all errors of a file come at once") {
  CHECK(testbed_errors("[eal]\nno_huge = 1\nhuge = 2\n[[port]]\nmtu = \"x\"\n").size() == 5);
}

// Every key has a row of its own in docs/ports.md; "[.write-reference]" writes it.
TEST_CASE("testbed: the reference in docs/ports.md is the table of keys") {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) + "/docs/ports.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  CHECK(text.find(testbed_reference_markdown()) != std::string::npos);
}

TEST_CASE("write the testbed reference", "[.write-reference]") {
  const std::string path = std::string(PACELINE_SOURCE_DIR) + "/docs/ports.md";
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::string begin = "<!-- keys: begin -->\n";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find("<!-- keys: end -->");
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  text.replace(from + begin.size(), to - from - begin.size(), testbed_reference_markdown());
  std::ofstream(path) << text;
}

}  // namespace
}  // namespace paceline::config
