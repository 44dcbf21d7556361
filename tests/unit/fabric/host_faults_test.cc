// What is wrong at one end alone: hosts that pause their switch, take data slowly or send it in
// another class, and switches with other thresholds.
#include <catch2/catch.hpp>

#include "dataplane/wire/packet/patch.h"
#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr Picos us(std::int64_t n) { return picos_from_micros(n); }

FabricSpec three_hosts() { return star(3, rate_from_gbps(100), us(1)); }

// 4 MB to host 0, which take 335 us on an empty link, and 1 MB to host 2.
struct Stream {
  explicit Stream(const FabricSpec& spec) : lab(spec) {
    for (int i = 0; i < 1000; ++i) lab.send({.from = 1, .to = 0, .payload = 4096});
    for (int i = 0; i < 250; ++i) lab.send({.from = 0, .to = 2, .payload = 4096});
    REQUIRE(lab.run());
    CHECK(lab.net().check_conservation() == "");
    CHECK(lab.net().stats().total_drops() == 0);
    CHECK(lab.deliveries().size() == 1250);
  }
  Picos last_at(std::uint32_t host) const {
    Picos last{0};
    for (const Delivery& d : lab.deliveries()) {
      if (d.host == host) last = later(last, d.at);
    }
    return last;
  }
  Lab lab;
};

TEST_CASE("host fault: a host that pauses its switch gets nothing until it says so") {
  FabricSpec spec = three_hosts();
  spec.events = {
      {.at = us(20), .link = 0, .action = LinkAction::pause, .directions = 1},
      {.at = us(120), .link = 0, .action = LinkAction::resume, .directions = 1},
  };
  Stream storm(spec);
  for (const Delivery& d : storm.lab.deliveries()) {
    // The pause travels for a microsecond, and so does what the switch has sent until then.
    CHECK((d.host != 0 || d.at < us(23) || d.at > us(121)));
  }
  Stream calm(three_hosts());
  const Picos longer = storm.last_at(0) - calm.last_at(0);
  CHECK(longer > us(95));
  CHECK(longer < us(105));
  // Pauses take the wire for themselves, and wait for the packet on it.
  CHECK(storm.last_at(2) - calm.last_at(2) < us(1));
  // 0 to the switch is link 0, back is link 1.
  CHECK(storm.lab.net().link_pause_time(1) > us(99));
  CHECK(storm.lab.net().link_pause_time(1) < us(101));
  CHECK(storm.lab.net().link_pause_time(0) == Picos{0});
}

TEST_CASE("host fault: a host that takes data at half of its rate pauses, and sends as before") {
  FabricSpec spec = three_hosts();
  for (int i = 0; i < 300; ++i) {
    spec.events.push_back({.at = us(5 * i),
                           .link = 0,
                           .action = LinkAction::take,
                           .rate = rate_from_gbps(50),
                           .directions = 1});
  }
  spec.events.push_back({.at = us(1500), .link = 0, .action = LinkAction::take, .directions = 1});
  Stream slow(spec);
  Stream calm(three_hosts());
  // 4.2 MB at 50 Gb/s, of which 64 to 128 KB may wait in the host.
  CHECK(slow.last_at(0) > us(640));
  CHECK(slow.last_at(0) < us(680));
  CHECK(slow.last_at(2) - calm.last_at(2) < us(2));
  CHECK(slow.lab.net().link_pause_time(1) > us(250));
}

TEST_CASE("host fault: data in another class is neither paused nor preferred, answers stay") {
  FabricSpec spec = three_hosts();
  spec.events = {
      {.at = us(0), .link = 0, .action = LinkAction::reclass, .directions = 1, .traffic_class = 1},
      {.at = us(50), .link = 0, .action = LinkAction::reclass, .directions = 1},
  };
  Lab lab(spec);
  lab.reply(true);
  for (int i = 0; i < 10; ++i) lab.send({.from = 0, .to = 2, .payload = 4096});
  for (int i = 0; i < 5; ++i) lab.send({.at = us(60), .from = 0, .to = 2, .payload = 4096});
  for (int i = 0; i < 5; ++i) lab.send({.from = 2, .to = 0, .payload = 4096});
  REQUIRE(lab.run());
  std::array<int, kTrafficClasses> at_two{};
  std::array<int, kTrafficClasses> at_zero{};
  for (const Delivery& d : lab.deliveries()) {
    ++(d.host == 2 ? at_two : at_zero)[d.traffic_class];
  }
  CHECK(at_two[1] == 10);
  CHECK(at_two[kDefaultDataClass] == 5);
  CHECK(at_two[kControlClass] == 5);  // the answers to host 2
  CHECK(at_zero[kDefaultDataClass] == 5);
  CHECK(lab.net().reclassed_packets(0) == 10);
  CHECK(lab.net().reclassed_packets(4) == 0);
}

TEST_CASE("switch fault: thresholds times a factor, and as built again") {
  const auto marked = [](std::vector<LinkEvent> events) {
    constexpr std::uint32_t kPacket = lab_wire_bytes(1000);
    FabricSpec spec = three_hosts();
    spec.ecn.kmin_bytes = spec.ecn.kmax_bytes = 20 * kPacket;
    spec.events = std::move(events);
    Lab lab(spec);
    for (int i = 0; i < 100; ++i) {
      lab.send({.from = 0, .to = 2, .payload = 1000});
      lab.send({.from = 1, .to = 2, .payload = 1000});
    }
    REQUIRE(lab.run());
    return lab.net().stats().marked_packets;
  };
  const LinkEvent half{.link = 2, .action = LinkAction::mark_at, .directions = 2, .factor = 0.5};
  const LinkEvent twice{.link = 2, .action = LinkAction::mark_at, .directions = 2, .factor = 2};
  const LinkEvent on{.link = 2, .action = LinkAction::mark_on, .directions = 2};
  // As marking_test.cc counts them: two for each packet of a lower threshold.
  CHECK(marked({}) == 78 + 79);
  CHECK(marked({half}) == 88 + 89);
  CHECK(marked({twice}) == 58 + 59);
  CHECK(marked({half, on}) == 78 + 79);
}

}  // namespace
}  // namespace paceline::fabric
