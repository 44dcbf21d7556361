// Links that fail, return and change under traffic.
#include <catch2/catch.hpp>

#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr ClosLinks kEvenLinks{rate_from_gbps(100), rate_from_gbps(100), rate_from_gbps(100),
                               picos_from_micros(1), picos_from_micros(1)};
constexpr ClosShape kTwoSpines{.leaves = 2, .spines = 2, .hosts_per_leaf = 2};
constexpr std::uint32_t kFirstUplink = 4;  // leaf 0 to spine 0; 5: to spine 1

std::uint64_t dropped(const Network& net, DropReason reason) {
  return net.stats().drops[static_cast<std::size_t>(reason)];
}

FabricSpec quiet(FabricSpec spec) {
  spec.ecn.enabled = spec.pfc.enabled = false;
  return spec;
}

// One flow at line rate over a leaf-spine for 100 us.
struct Flap {
  explicit Flap(FabricSpec spec) : lab(spec) {
    for (int i = 0; i < 300; ++i) lab.send({.from = 0, .to = 2, .payload = 4096});
    REQUIRE(lab.run());
    CHECK(lab.net().check_conservation() == "");
  }
  Lab lab;
};

TEST_CASE("link event: in-flight packets are lost, later ones find the other way") {
  FabricSpec spec = quiet(clos(kTwoSpines, kEvenLinks));
  // Whichever uplink the flow hashes to: take down both in turn and look at which mattered.
  std::uint64_t lost[2] = {};
  for (std::uint32_t which = 0; which < 2; ++which) {
    FabricSpec failing = spec;
    failing.reroute_delay = picos_from_micros(10);
    failing.events = {{.at = picos_from_micros(30), .link = kFirstUplink + which}};
    Flap flap(failing);
    const Network& net = flap.lab.net();
    lost[which] = dropped(net, DropReason::link_down);
    CHECK(net.stats().link_failures == 1);
    CHECK(flap.lab.deliveries().size() + lost[which] == 300);
    // After the reroute the other uplink carries everything.
    CHECK(net.stats().total_drops() == lost[which]);
  }
  // One link was idle and nothing happened. On the other: three packets in the 1 us of wire and
  // the one being sent, and those that arrive within 10 us: 10 / 0.3342 = 30, each within one.
  CHECK(std::min(lost[0], lost[1]) == 0);
  CHECK(std::max(lost[0], lost[1]) >= 32);
  CHECK(std::max(lost[0], lost[1]) <= 36);
}

TEST_CASE("link event: what waits for a failed link is dropped or kept") {
  for (const bool keep : {false, true}) {
    FabricSpec spec = quiet(star(3, rate_from_gbps(100), picos_from_micros(1)));
    spec.keep_queued_when_down = keep;
    spec.events = {{.at = picos_from_micros(20), .link = 0, .action = LinkAction::down},
                   {.at = picos_from_micros(60), .link = 0, .action = LinkAction::up}};
    Lab lab(spec);
    for (int i = 0; i < 100; ++i) {
      lab.send({.from = 1, .to = 0, .payload = 4096});
      lab.send({.from = 2, .to = 0, .payload = 4096});
    }
    REQUIRE(lab.run());
    const std::uint64_t lost = dropped(lab.net(), DropReason::link_down);
    CHECK(lab.deliveries().size() + lost == 200);
    // 200 packets take 67 us; 33 us of arrivals meet a link that is down from 20 us on.
    if (keep) {
      CHECK(lost <= 5);  // on the wire
      CHECK(lost >= 3);
    } else {
      CHECK(lost > 100);
    }
    for (const Delivery& d : lab.deliveries()) {
      CHECK((d.at < picos_from_micros(20) || d.at > picos_from_micros(61)));
    }
  }
}

TEST_CASE("link event: a host whose link is down is not asked for packets until it returns") {
  FabricSpec spec = quiet(star(2, rate_from_gbps(100), picos_from_micros(1)));
  spec.events = {{.at = picos_from_micros(10), .link = 0, .action = LinkAction::down},
                 {.at = picos_from_micros(50), .link = 0, .action = LinkAction::up}};
  Lab lab(spec);
  for (int i = 0; i < 100; ++i) lab.send({.from = 0, .to = 1, .payload = 4096});
  REQUIRE(lab.run());
  CHECK(lab.violation() == "");
  const std::uint64_t lost = dropped(lab.net(), DropReason::link_down);
  CHECK(lost >= 3);
  CHECK(lost <= 5);
  CHECK(lab.deliveries().size() == 100 - lost);
  // 70 packets were left at 10 us, and start at 50.
  CHECK(lab.now() >
        picos_from_micros(50) + serialization_time(69 * lab_wire_bytes(4096), rate_from_gbps(100)));
}

TEST_CASE("link event: a failure forgets pauses, and the link works when it is back") {
  FabricSpec spec = star(5, rate_from_gbps(100), picos_from_micros(1));
  spec.buffer_bytes = 1'000'000;
  for (std::uint32_t link = 0; link < 5; ++link) {
    spec.events.push_back({.at = picos_from_micros(150 + 30 * link), .link = link});
    spec.events.push_back(
        {.at = picos_from_micros(170 + 30 * link), .link = link, .action = LinkAction::up});
  }
  Lab lab(spec);
  lab.check_every(1);
  for (std::uint32_t from = 1; from < 5; ++from) {
    for (int i = 0; i < 400; ++i) lab.send({.from = from, .to = 0, .payload = 4096});
  }
  REQUIRE(lab.run());
  CHECK(lab.violation() == "");
  CHECK(lab.net().stats().pause_frames > 10);
  CHECK(lab.net().stats().link_failures == 5);
  CHECK(lab.deliveries().size() + lab.net().stats().total_drops() == 1'600);
  CHECK(dropped(lab.net(), DropReason::headroom_exhausted) == 0);
}

TEST_CASE("link event: rate and delay change from one packet to the next") {
  FabricSpec spec = quiet(star(2, rate_from_gbps(100), picos_from_micros(1)));
  spec.events = {{.at = picos_from_micros(10),
                  .link = 1,
                  .action = LinkAction::rate,
                  .rate = rate_from_gbps(10)},
                 {.at = picos_from_micros(100),
                  .link = 1,
                  .action = LinkAction::delay,
                  .delay = picos_from_micros(3)},
                 {.at = picos_from_micros(200),
                  .link = 1,
                  .action = LinkAction::delay,
                  .delay = picos_from_nanos(10)}};
  Lab lab(spec);
  for (int i = 0; i < 100; ++i) lab.send({.from = 0, .to = 1, .payload = 4096});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 100);
  const Picos slow = serialization_time(lab_wire_bytes(4096), rate_from_gbps(10));
  std::vector<Picos> gaps;
  for (std::size_t i = 1; i < 100; ++i) {
    const Delivery& d = lab.deliveries()[i];
    CHECK(d.id == lab.deliveries()[i - 1].id + 1);  // the shorter delay overtakes nobody
    gaps.push_back(d.at - lab.deliveries()[i - 1].at);
  }
  CHECK(std::count(gaps.begin(), gaps.end(), slow) >= 64);
  CHECK(std::count(gaps.begin(), gaps.end(), slow + picos_from_micros(2)) == 1);
  CHECK(std::count(gaps.begin(), gaps.end(), Picos{1}) ==
        0);  // 3.4 us apart: 2.99 us catch up none
  CHECK(std::count(gaps.begin(), gaps.end(), slow - picos_from_nanos(2'990)) == 1);
}

TEST_CASE("link event: losses, damage, copies and late packets, begun and ended") {
  struct Case {
    LinkAction action;
    std::uint64_t NetworkStats::*counter;
  };
  for (const Case& c : {Case{LinkAction::corrupt, &NetworkStats::corrupted_packets},
                        Case{LinkAction::duplicate, &NetworkStats::duplicated_packets},
                        Case{LinkAction::reorder, &NetworkStats::reordered_packets}}) {
    FabricSpec spec = quiet(star(2, rate_from_gbps(100), picos_from_micros(1)));
    spec.events = {{.at = Picos{0}, .link = 1, .action = c.action, .probability = 0.1},
                   {.at = picos_from_micros(500), .link = 1, .action = c.action}};
    Lab lab(spec);
    lab.check_every(5);
    for (int i = 0; i < 3'000; ++i) lab.send({.from = 0, .to = 1, .payload = 4096});
    lab.run();
    REQUIRE(lab.violation() == "");
    const NetworkStats& stats = lab.net().stats();
    // 500 us: 1495 packets of 334 ns; a tenth of them, standard deviation 12.
    CHECK(stats.*c.counter > 100);
    CHECK(stats.*c.counter < 200);
    CHECK(lab.deliveries().size() == 3'000 + stats.duplicated_packets);
    std::uint64_t flagged = 0, backwards = 0;
    for (std::size_t i = 0; i < lab.deliveries().size(); ++i) {
      const Delivery& d = lab.deliveries()[i];
      flagged += d.flags != 0 ? 1 : 0;
      if (i != 0 && d.id < lab.deliveries()[i - 1].id) ++backwards;
      // What left after 500 us is whole; the last late one may arrive 10 us on.
      if (d.at > picos_from_micros(515)) CHECK(d.flags == 0);
    }
    if (c.action == LinkAction::corrupt) CHECK(flagged == stats.corrupted_packets);
    if (c.action == LinkAction::duplicate) CHECK(flagged == stats.duplicated_packets);
    if (c.action == LinkAction::reorder) {
      CHECK(backwards > 80);  // late by up to 30 packets' time: few keep their place
    } else {
      CHECK(backwards == 0);
    }
  }
}

TEST_CASE("link event: routes through a regular fabric come back as they were") {
  FabricSpec spec =
      clos({.pods = 2, .leaves = 2, .spines = 2, .cores = 2, .hosts_per_leaf = 2}, kEvenLinks);
  Topology topology(spec);
  const Topology before(spec);
  std::vector<bool> down(spec.links.size(), false);
  const std::uint32_t leaf_link = spec.hosts;  // leaf 0 to spine 0
  down[leaf_link] = true;
  topology.reroute(spec, down);
  for (std::uint32_t to = 2; to < spec.hosts; ++to) {
    for (std::uint32_t entropy = 0; entropy < 50; ++entropy) {
      for (const auto& path : {topology.path(0, to, entropy), topology.path(to, 0, entropy)}) {
        REQUIRE(!path.empty());
        for (const std::uint32_t link : path) CHECK(link / 2 != leaf_link);
      }
    }
  }
  down.assign(down.size(), false);
  topology.reroute(spec, down);
  for (std::uint32_t to = 1; to < spec.hosts; ++to) {
    for (std::uint32_t entropy = 0; entropy < 50; ++entropy) {
      CHECK(topology.path(0, to, entropy) == before.path(0, to, entropy));
    }
  }
}

TEST_CASE("link event: nonsense is refused") {
  FabricSpec spec = star(2, rate_from_gbps(100), picos_from_micros(1));
  spec.events = {{.at = Picos{-1}, .link = 2, .action = LinkAction::rate},
                 {.action = LinkAction::delay},
                 {.action = LinkAction::loss, .probability = 2}};
  CHECK(check(spec).size() == 5);
}

}  // namespace
}  // namespace paceline::fabric
