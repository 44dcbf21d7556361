// The yardstick of slowdown against sums done by hand.
//
// A plain RC packet is Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4 + FCS 4 = 62 bytes around
// its payload, the first of a WRITE 16 more (RETH); an ACK has an AETH of 4. On the link come 20
// bytes of preamble, start delimiter and gap. So a full packet of 4096 is 4178 bytes, the first
// 4194, an ACK
// 86. At 100 Gb/s a byte takes 80 ps.

#include "dataplane/driver/traffic/ideal.h"

#include <catch2/catch.hpp>

namespace paceline {
namespace {

config::Scenario scenario(std::uint64_t gbps = 100) {
  config::Scenario s;
  s.fabric.rate = rate_from_gbps(gbps);
  s.fabric.delay = picos_from_micros(1);
  s.transport.payload_bytes = 4096;
  return s;
}

TEST_CASE("ideal: bytes on a link, packet by packet", "[ideal]") {
  const IdealClock clock(scenario(), 2);
  CHECK(clock.wire_bytes(0) == 62 + 16 + 20);
  CHECK(clock.wire_bytes(1) == 62 + 16 + 4 + 20);  // padded to four bytes
  CHECK(clock.wire_bytes(4) == 62 + 16 + 4 + 20);
  CHECK(clock.wire_bytes(5) == 62 + 16 + 8 + 20);
  CHECK(clock.wire_bytes(4096) == 4194);
  CHECK(clock.wire_bytes(4097) == 4194 + 62 + 4 + 20);
  CHECK(clock.wire_bytes(8192) == 4194 + 4178);
  CHECK(clock.wire_bytes(12'288) == 4194 + 2 * 4178);
  // 10 MB = 2441 full packets and one of 1664 bytes.
  CHECK(clock.wire_bytes(10'000'000) == 4194 + 2440 * 4178 + (1664 + 82));
}

TEST_CASE("ideal: completion times by hand", "[ideal]") {
  const IdealClock star(scenario(), 2);
  // Data over two links, 2 x 1 us there, ACK over two links, 2 x 1 us back; in picoseconds.
  CHECK(star.fct(4096).count == 2 * 4194 * 80 + 2 * 86 * 80 + 4'000'000);
  CHECK(star.fct(1).count == 2 * 102 * 80 + 2 * 86 * 80 + 4'000'000);
  // Store-and-forward costs the largest packet once per further link: the shorter ones behind it
  // wait for it in the switch.
  CHECK(star.fct(8192).count == (4194 + 4178) * 80 + 4194 * 80 + 2 * 86 * 80 + 4'000'000);
  CHECK(star.fct(4097).count == (4194 + 86) * 80 + 4194 * 80 + 2 * 86 * 80 + 4'000'000);
  CHECK(star.base_rtt() == star.fct(4096));
  CHECK(star.latency().count == 4194 * 80 + 2 * 86 * 80 + 4'000'000);

  // Leaf, spine, leaf: four links, at 400 Gb/s 20 ps a byte, 500 ns each.
  config::Scenario fast = scenario(400);
  fast.fabric.delay = picos_from_nanos(500);
  const IdealClock clos(fast, 4);
  CHECK(clos.fct(4096).count == 4 * 4194 * 20 + 4 * 86 * 20 + 8 * 500'000);
}

TEST_CASE("ideal: the calibration's counting of bytes", "[ideal]") {
  config::Scenario s = scenario();
  s.transport.payload_bytes = 1000;
  s.transport.calibration = true;
  s.fabric.fixed_overhead_bytes = 48;
  s.fabric.small_packet_bytes = 60;
  const IdealClock clock(s, 2);
  CHECK(clock.wire_bytes(10'000'000) == 10'000 * 1048);
  // 10,000 packets of 83.84 ns, one of them twice, two ACKs of 4.8 ns, 4 us: 842.49344 us.
  CHECK(clock.fct(10'000'000).count == 838'400'000 + 83'840 + 2 * 4'800 + 4'000'000);
  // The HPCC simulator's notes say 842.56 us, with the return path counted as a data packet's:
  // the same within one packet.
  CHECK(static_cast<double>(clock.fct(10'000'000).count) / 1e6 == Approx(842.56).margin(0.0839));
}

TEST_CASE("ideal: a frame below 64 bytes is padded, a frame overhead of 0 counts frames",
          "[ideal]") {
  config::FabricConfig fabric;
  const WireAccounting wire = wire_accounting(fabric);
  CHECK(wire.wire_bytes(62, 0) == 64 + 20);
  CHECK(wire.wire_bytes(66, 0) == 66 + 20);
  config::Scenario s = scenario();
  s.fabric.frame_overhead_bytes = 0;
  CHECK(IdealClock(s, 2).wire_bytes(4096) == 4174);
}

}  // namespace
}  // namespace paceline
