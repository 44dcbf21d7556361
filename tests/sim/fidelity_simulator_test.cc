// Rules of the HPCC authors' simulator (alibaba-edu/High-Precision-Congestion-Control @9f4be2a)
// that change results: acknowledgements that wait behind data, units of telemetry and a window
// of payload. docs/fidelity.md has the figures.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "dataplane/base/jain.h"
#include "tests/sim/figure.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

// Its packets: 1000 bytes and 48 of headers, 42 more with telemetry; answers of 60.
std::string simulator_packets(const std::string& more_fabric, const std::string& transport) {
  return "[fabric]\nhosts = 20\nrate = \"100Gb/s\"\nfixed_overhead_bytes = 48\n"
         "small_packet_bytes = 60\n" +
         more_fabric + "[transport]\ncalibration = true\npayload_bytes = 1000\n" + transport;
}

// Jain's index of three flows that join at 0, 1 and 25 ms, over 45 to 50 ms.
double share_of_three(const std::string& params, const std::string& delay) {
  const Watched w =
      watch_flows("cc = { algorithm = \"hpcc\", profile = \"simulator\"" + params + " }\n" +
                      simulator_packets("int = true\ndelay = \"" + delay + "\"\n",
                                        "reliability = \"selective\"\nwindow_packets = 4096\n"),
                  {{0, 3, 0}, {1, 3, 1'000}, {2, 3, 25'000}}, 3, 50'000, 1'000);
  const std::vector<double> rates = w.rates({0, 1, 2}, 45'000, 50'000);
  UNSCOPED_INFO("FIGURE hpcc simulator" << params << ", " << delay << ": " << rates[0] << " "
                                        << rates[1] << " " << rates[2] << " Gb/s");
  CHECK(rates[0] + rates[1] + rates[2] > 80);
  JainIndex jain;
  for (const double rate : rates) jain.add(rate);
  return jain.value();
}

TEST_CASE("fidelity: three flows under HPCC's simulator profile come to equal shares",
          "[fidelity][slow]") {
  for (const char* const delay : {"1us", "1010ns", "1025ns"}) {
    CHECK(share_of_three("", delay) > 0.9);
  }
}

// Hosts 1 and 2 send 1 MB each to host 0, from the beginning and at line rate. At 50 us host 0
// sends 1000 bytes to host 3, by links on which nobody else sends data: until when are they
// acknowledged?
double beside_an_incast(const std::string& keys) {
  const tools::PreparedScenario p =
      prepared(kFixed + simulator_packets("ecn = { enabled = false }\n" + keys, ""));
  MessagePlan plan;
  plan.messages = {{.src = 1, .dst = 0, .bytes = 1'000'000},
                   {.src = 2, .dst = 0, .bytes = 1'000'000},
                   {.src = 0, .dst = 3, .bytes = 1000, .start = picos_from_micros(50)}};
  VirtualWorld world(p.scenario, plan, checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(broken_law(world) == "");
  CHECK(world.network().stats().pause_frames == 0);
  const MessageRecord& record = world.records()[2];
  return static_cast<double>((record.completed - record.ready).count) / 1e6;
}

// Bidirectional: the acknowledgement comes to the switch at 53.17 us, and with it as many packets
// of 83.84 ns wait for the port to host 0 as have left it since 1.08 us: 622.
TEST_CASE("fidelity: acknowledgements wait behind data where switches queue them with it",
          "[fidelity]") {
  constexpr double kAlone = 2 * 0.08384 + 2 * 0.0048 + 4;
  constexpr double kPacket = 0.08384;
  CHECK(beside_an_incast("") == Approx(kAlone).margin(2 * kPacket));
  CHECK(beside_an_incast("ack_class = 3\n") == Approx(kAlone + 622 * kPacket).margin(2 * kPacket));
  // Behind every class of data: until the port has nothing else, after 2 MB.
  CHECK(beside_an_incast("ack_class = 0\n") ==
        Approx(1.08 + 2000 * kPacket + 1 - 50).margin(2 * kPacket));
}

}  // namespace
}  // namespace paceline::simtest
