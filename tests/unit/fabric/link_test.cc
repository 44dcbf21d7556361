// Timing of links and of the host port.
#include <catch2/catch.hpp>

#include "dataplane/fabric/wire/link.h"
#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr Picos kDelay = picos_from_micros(1);

TEST_CASE("a packet takes serialisation and propagation on each link, to the picosecond") {
  Lab lab(star(2, rate_from_gbps(400), kDelay));
  lab.send({.at = {123}, .from = 0, .to = 1, .payload = 4096});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 1);
  // 14 + 20 + 8 + 12 + 4096 + 8 + 20 = 4178 B at 20 ps.
  CHECK(lab_wire_bytes(4096) == 4178);
  CHECK(lab.deliveries()[0].at == Picos{123 + 2 * (4178 * 20 + 1'000'000)});
  CHECK(lab.net().stats().hops == 2);
  CHECK(lab.net().stats().hop_bytes == 2 * 4178);
}

TEST_CASE("a link that is no whole number of picoseconds per byte carries the remainder") {
  LinkRate detail;
  detail.rate = rate_from_gbps(30);  // 266 2/3 ps a byte
  Picos at{0};
  bool first = true;
  for (int i = 0; i < 3'000; ++i) {
    at += detail.serialize(1'000, !first);
    first = false;
  }
  CHECK(at == Picos{800'000'000});  // 3e6 B at 30 Gb/s, exactly
  CHECK(detail.serialize(1, false) == Picos{266});
  CHECK(detail.serialize(1, true) == Picos{267});
  CHECK(detail.serialize(1, true) == Picos{267});
  CHECK(detail.serialize(1, false) == Picos{266});
}

TEST_CASE("back-to-back packets keep the line rate through a switch") {
  for (const std::uint64_t gbps : {100U, 30U}) {
    Lab lab(star(2, rate_from_gbps(gbps), kDelay));
    for (int i = 0; i < 300; ++i) lab.send({.from = 0, .to = 1, .payload = 1000});
    REQUIRE(lab.run());
    REQUIRE(lab.deliveries().size() == 300);
    const Picos span = lab.deliveries()[299].at - lab.deliveries()[0].at;
    const Picos ideal = serialization_time(299 * lab_wire_bytes(1000), rate_from_gbps(gbps));
    CHECK(std::abs((span - ideal).count) <= 2);
  }
}

TEST_CASE("the host port takes one packet while the wire is free, and says when it is") {
  EventWheel wheel(8);
  const FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  Network net(spec, wheel, 4);
  Port& port = net.host_port(0);
  CHECK(port.info().link_rate == rate_from_gbps(100));
  CHECK(port.info().mtu_bytes == 4096);
  CHECK(port.rx_ready_at() == kNever);
  CHECK(port.tx_ready_at(3) <= Picos{0});
  Packet* burst[2] = {port.packets().alloc(), port.packets().alloc()};
  for (Packet* p : burst) {
    p->header_bytes = 60;
    p->payload_bytes = 0;
    p->header.fill(std::byte{0});
  }
  CHECK(port.tx(Picos{10}, 3, burst) == 1);
  const Picos free_at{10 + 80 * (68 + 20)};
  CHECK(port.tx_ready_at(3) == free_at);
  CHECK(port.tx(free_at - Picos{1}, 3, {burst + 1, 1}) == 0);
  CHECK(port.tx(free_at, 3, {burst + 1, 1}) == 1);
  Picos time{};
  std::uint32_t actor = 0;
  REQUIRE(wheel.pop(time, actor));
  CHECK(actor == 4);  // directed link 0
}

TEST_CASE("fixed accounting: payload plus overhead, or the small packet") {
  FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  spec.wire.fixed_overhead = 48;
  spec.wire.small_packet = 60;
  Lab lab(spec);
  lab.send({.from = 0, .to = 1, .payload = 1000});
  lab.send({.from = 1, .to = 0, .payload = 0});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 2);
  CHECK(lab.deliveries()[0].at == Picos{2 * (60 * 80 + 1'000'000)});
  CHECK(lab.deliveries()[1].at == Picos{2 * (1048 * 80 + 1'000'000)});
}

TEST_CASE("strict priority: the control class overtakes what is queued, not what is on the wire") {
  Lab lab(star(3, rate_from_gbps(100), kDelay));
  for (int i = 0; i < 10; ++i) {
    lab.send({.from = 0, .to = 2, .payload = 4096});
    lab.send({.from = 1, .to = 2, .payload = 4096});
  }
  // Arrives at the switch between the third and the fourth packet of each sender.
  lab.send({.at = Picos{3 * 4178 * 80},
            .from = 1,
            .to = 2,
            .payload = 0,
            .traffic_class = kControlClass});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 21);
  std::size_t place = 0;
  while (lab.deliveries()[place].traffic_class != kControlClass) ++place;
  CHECK(place >= 3);
  CHECK(place <= 5);
}

TEST_CASE("losses and errors happen at their rate and are counted") {
  FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  spec.links[0].loss = 0.1;
  spec.links[1].error_rate = 0.05;
  Lab lab(spec);
  for (int i = 0; i < 4'000; ++i) lab.send({.from = 0, .to = 1, .payload = 64});
  REQUIRE(lab.run());
  const NetworkStats& stats = lab.net().stats();
  const std::uint64_t lost = stats.drops[static_cast<std::size_t>(DropReason::link_loss)];
  CHECK(lost > 320);  // binomial(4000, 0.1): 400, sd 19
  CHECK(lost < 480);
  CHECK(stats.delivered_packets == 4'000 - lost);
  std::uint64_t corrupt = 0;
  for (const Delivery& d : lab.deliveries()) corrupt += (d.flags & packet_flag::corrupt) != 0;
  CHECK(corrupt == stats.corrupted_packets);
  CHECK(corrupt > 120);  // of about 3600 at 0.05: 180, sd 13
  CHECK(corrupt < 240);
  CHECK(lab.net().check_conservation() == "");
}

TEST_CASE("only the named control packets are lost by drop_control_ppm") {
  FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  spec.drop_control_ppm = 300'000;
  Lab lab(spec);
  for (int i = 0; i < 1'000; ++i) {
    for (const std::uint8_t opcode :
         std::array<std::uint8_t, 6>{0x0A, 0x11, 0x81, 0xC4, 0xC0, 0xC2}) {
      lab.send({.from = 0,
                .to = 1,
                .payload = 0,
                .traffic_class = 7,
                .source_port = opcode,
                .opcode = opcode});
    }
  }
  REQUIRE(lab.run());
  const std::uint64_t lost =
      lab.net().stats().drops[static_cast<std::size_t>(DropReason::control_loss)];
  CHECK(lab.net().stats().delivered_packets == 6'000 - lost);
  CHECK(lost > 520);  // of 2000 at 0.3: 600, sd 20
  CHECK(lost < 680);
}

TEST_CASE("packets for nobody are dropped and counted") {
  FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  spec.shape = {};
  spec.hosts = 4;
  spec.switches = 2;
  spec.links = {{0, 4, rate_from_gbps(100), kDelay},
                {1, 4, rate_from_gbps(100), kDelay},
                {2, 5, rate_from_gbps(100), kDelay},
                {3, 5, rate_from_gbps(100), kDelay}};
  Lab lab(spec);
  lab.send({.from = 0, .to = 77});  // no such host
  lab.send({.from = 0, .to = 3});   // no path
  lab.send({.from = 0, .to = 1});
  REQUIRE(lab.run());
  CHECK(lab.deliveries().size() == 1);
  CHECK(lab.net().stats().drops[static_cast<std::size_t>(DropReason::no_route)] == 2);
  CHECK(lab.net().check_conservation() == "");
}

TEST_CASE("a network refuses a broken spec and a wheel without room") {
  EventWheel wheel(7);
  FabricSpec spec = star(2, rate_from_gbps(100), kDelay);
  CHECK_NOTHROW(Network(spec, wheel, 3));
  CHECK_THROWS_AS(Network(spec, wheel, 4), std::invalid_argument);
  spec.links[0].delay = {0};
  CHECK_THROWS_AS(Network(spec, wheel, 0), std::invalid_argument);
}

}  // namespace
}  // namespace paceline::fabric
