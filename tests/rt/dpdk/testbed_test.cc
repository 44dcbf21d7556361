// From a testbed file to open ports.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "cc/registry.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/ports/dpdk_testbed.h"
#include "tests/rt/dpdk/environment.h"

namespace paceline::test {
namespace {

TEST_CASE("testbed: the files in configs/testbeds are good") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PACELINE_SOURCE_DIR) +
                                                               "/configs/testbeds")) {
    const auto read = config::read_testbed_file(entry.path(), {cc::algorithms(), {}});
    for (const std::string& error : read.errors) UNSCOPED_INFO(error);
    ++files;
    if (entry.path().filename() != "nic.toml") {
      CHECK(read.ok());
      continue;
    }
    // It says at its head what is to be filled in.
    REQUIRE(read.errors.size() == 2);
    for (const std::string& error : read.errors) {
      CHECK(error.find("\"<PCI address>\"") != std::string::npos);
      CHECK(error.find("a placeholder") != std::string::npos);
    }
  }
  CHECK(files >= 3);
}

TEST_CASE("testbed: ports are opened, and refused with their place in the file", "[may_skip]") {
  if (eal_is_up()) {
    WARN("skipped: EAL is up already: run this case alone");
    return;
  }
  const auto good = config::read_testbed_text(R"(
[[port]]
name = "null"
device = "net_null0,copy=1"
rate = "10Gb/s"
queues = 2
packets = 3000
mac = "02:00:00:00:00:07"
pause = "both"
)",
                                              "good.toml");
  REQUIRE(good.ok());
  const auto opened = DpdkTestbed::open(good.value);
  INFO(opened.error);
  REQUIRE(opened.testbed != nullptr);
  TestbedPort* const port = opened.testbed->find("null");
  REQUIRE(port != nullptr);
  CHECK(opened.testbed->find("other") == nullptr);
  REQUIRE(port->ports.size() == 2);
  CHECK(port->device->mac() == wire::MacAddress{{std::byte{2}, {}, {}, {}, {}, std::byte{7}}});
  for (const auto& queue : port->ports) {
    CHECK(queue->info().link_rate == rate_from_gbps(10));
    CHECK(queue->info().mtu_bytes == 4096);
    // The null device makes up frames of zeros.
    std::array<Packet*, 8> burst;
    REQUIRE(queue->rx(burst) == burst.size());
    for (Packet* packet : burst) {
      CHECK(packet->bth_offset == 0);
      queue->packets().free(packet);
    }
    Packet* packet = queue->packets().alloc();
    packet->header_bytes = 14;
    packet->payload_bytes = 0;
    packet->payload_kind = PayloadKind::none;
    packet->bth_offset = 0;
    CHECK(queue->tx({1}, 0, {&packet, 1}) == 1);
  }
  const auto report = opened.testbed->report();
  REQUIRE(!report.empty());
  CHECK(report[0].find("port null: net_null0: driver net_null, ") == 0);
  // It continues without what it cannot do, and says so once.
  const auto lines_with = [&](const std::string& text) {
    return std::count_if(report.begin(), report.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  CHECK(lines_with("pause = \"both\" has no effect") == 1);
  CHECK(lines_with("no say in pause frames (IEEE 802.3x: Operation not supported)") == 1);
  CHECK(lines_with("packets arrive when a poll finds them, by the processor's clock: the device "
                   "offers no receive timestamps") == 1);
  CHECK(!port->device->capabilities().pause.offered);
  CHECK(!port->device->statistics().pause.counted);
}

TEST_CASE("testbed: ports of a bond have one memory and one pool", "[may_skip]") {
  if (eal_is_up()) {
    WARN("skipped: EAL is up already: run this case alone");
    return;
  }
  const auto good = config::read_testbed_text(R"(
[[port]]
name = "a"
bond = "nic"
device = "net_null0,copy=1"
rate = "10Gb/s"
packets = 3000
[port.host]
addresses = ["10.0.0.1/24"]
[[port]]
name = "b"
bond = "nic"
device = "net_null1,copy=1"
rate = "10Gb/s"
packets = 2500
)",
                                              "bond.toml");
  REQUIRE(good.ok());
  const auto opened = DpdkTestbed::open(good.value);
  INFO(opened.error);
  REQUIRE(opened.testbed != nullptr);
  std::vector<TestbedPort>& ports = opened.testbed->ports();
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].memories == ports[1].memories);
  CHECK(ports[0].memories[0]->packets() == 5500);
  PacketPool& pool = ports[0].ports[0]->packets();
  REQUIRE(&ports[1].ports[0]->packets() == &pool);
  CHECK(pool.capacity() == 5500 - 4 * 1024);
  REQUIRE(ports[1].resolver != nullptr);
  CHECK(ports[1].resolver->host().routes().address(0) ==
        ports[0].resolver->host().routes().address(0));
  for (TestbedPort& port : ports) CHECK_FALSE(port.ports[0]->info().lends_payload);
  // What one has received, the other sends, or the pool takes back.
  std::array<Packet*, 8> burst;
  REQUIRE(ports[1].ports[0]->rx(burst) == burst.size());
  CHECK(pool.in_use() == burst.size());
  CHECK(ports[0].ports[0]->tx({1}, 0, {burst.data(), 4}) == 4);
  CHECK(pool.in_use() == 4);
  for (std::size_t i = 4; i < burst.size(); ++i) pool.free(burst[i]);
  CHECK(pool.in_use() == 0);
}

TEST_CASE("testbed: what cannot be opened names its line", "[may_skip]") {
  if (eal_is_up()) {
    WARN("skipped: EAL is up already: run this case alone");
    return;
  }
  const auto bad = config::read_testbed_text(
      "[[port]]\nname = \"x\"\ndevice = \"net_memif0,role=server\"\n", "bad.toml");
  REQUIRE(bad.ok());
  const auto opened = DpdkTestbed::open(bad.value);
  CHECK(opened.testbed == nullptr);
  CHECK_THAT(opened.error, Catch::StartsWith("bad.toml:3:10: port \"x\": device ") &&
                               Catch::Contains("bsize=4202 or more"));
}

}  // namespace
}  // namespace paceline::test
