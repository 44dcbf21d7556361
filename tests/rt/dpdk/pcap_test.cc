// The net_pcap device: captures of a Linux RoCE device come in as packets, and go out again as the
// very frames that they were.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/rt/dpdk/environment.h"
#include "tests/wire/pcap.h"

namespace paceline::test {
namespace {

// Receives all of `capture` and sends each packet at once; what came out, as frames.
std::vector<Frame> through_a_port(const std::string& capture, DpdkMemory& memory,
                                  const std::string& folder, std::size_t expected) {
  const std::string out = folder + "/" + capture + ".out.pcap";
  DpdkDeviceSettings settings;
  settings.device = "net_pcap0,rx_pcap=" + golden_path(capture + ".pcap") + ",tx_pcap=" + out;
  settings.mtu_bytes = 1024;
  DpdkMemory* const queue = &memory;
  {
    DpdkDeviceOpened opened = DpdkDevice::open(eal(), settings, {&queue, 1});
    INFO(opened.error);
    REQUIRE(opened.device != nullptr);
    CHECK(opened.device->capabilities().driver == "net_pcap");
    DpdkPortSettings port_settings;
    port_settings.link_rate = rate_from_gbps(1);
    port_settings.engine_packets = 256;
    DpdkPortMade made = DpdkPort::make(*opened.device, port_settings);
    INFO(made.error);
    REQUIRE(made.port != nullptr);
    DpdkPort& port = *made.port;
    std::array<Packet*, 16> burst;
    std::size_t n;
    while ((n = port.rx(burst)) != 0) {
      for (std::size_t i = 0; i < n; ++i) {
        Packet* packet = burst[i];
        wire::ParsedPacket parsed;
        CHECK(wire::parse_headers(packet->header_view(), packet->payload_bytes, parsed) ==
              wire::ParseError::ok);
        CHECK(packet->icrc ==
              wire::icrc(packet->header_view(), parsed.l3_offset, packet->payload_view()));
        CHECK(packet->bth_offset == parsed.bth_offset);
        CHECK(packet->ecn == parsed.ecn);
        REQUIRE(port.tx({1}, packet->traffic_class, {&packet, 1}) == 1);
      }
    }
    CHECK(port.counters().rx_packets == expected);
    CHECK(port.counters().rx_other == 0);
    CHECK(port.packets().in_use() == 0);
    made.port.reset();
    opened.device.reset();
  }
  return read_pcap(out);
}

TEST_CASE("net_pcap: captures come in, and go out as they were") {
  std::string folder = (std::filesystem::temp_directory_path() / "paceline-pcap-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  DpdkMemorySettings settings;
  settings.packets = 512;
  settings.payload_room = 1024;
  eal();
  DpdkMemoryMade made = DpdkMemory::make(settings);
  INFO(made.error);
  REQUIRE(made.memory != nullptr);
  for (const std::string& capture : golden_captures()) {
    INFO(capture);
    std::vector<Frame> frames = read_pcap(golden_path(capture + ".pcap"));
    const std::vector<Frame> out = through_a_port(capture, *made.memory, folder, frames.size());
    // What the kernel captured on its way out is not padded yet.
    for (Frame& frame : frames) frame.resize(std::max<std::size_t>(frame.size(), 60));
    CHECK(out == frames);
  }
  CHECK(made.memory->outside() == 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace paceline::test
