// Credits in place of pauses: nothing is lost whatever the load, a lone sender is not held up, what
// is outstanding and what is free make up each buffer at any time, and who shares a buffer with a
// congested flow waits with it.
#include <catch2/catch.hpp>
#include <set>

#include "dataplane/fabric/switching/credits.h"
#include "tests/unit/fabric/scenario_outcome.h"

namespace paceline::fabric::credit_test {
namespace {

constexpr Rate kLine = rate_from_gbps(100);
constexpr Picos kWire = picos_from_micros(1);
constexpr std::uint32_t kFull = lab_wire_bytes(4096);

FabricSpec with_credits(FabricSpec spec) {
  spec.pfc.enabled = false;
  spec.credit.enabled = true;
  spec.ecn.enabled = false;
  return spec;
}

void load(Lab& lab, std::uint32_t senders, int packets) {
  for (int i = 0; i < packets; ++i) {
    for (std::uint32_t from = 0; from < senders; ++from) {
      lab.send({.from = from, .to = senders, .payload = 4096});
    }
  }
}

Picos last_delivery(const Lab& lab, std::uint32_t host) {
  Picos last{0};
  for (const Delivery& d : lab.deliveries()) {
    if (d.host == host && d.traffic_class == kDefaultDataClass) last = later(last, d.at);
  }
  return last;
}

TEST_CASE("credits: a lone sender reaches line rate with the buffer that is the default") {
  for (const std::uint64_t gbps : {10U, 100U, 400U}) {
    for (const std::int64_t nanos : {5, 500, 1'000, 20'000}) {
      for (const std::uint16_t payload : {std::uint16_t{1024}, std::uint16_t{4096}}) {
        CAPTURE(gbps, nanos, payload);
        const Rate rate = rate_from_gbps(gbps);
        const Picos cable{nanos * 1'000};
        Lab lab(with_credits(star(2, rate, cable)));
        lab.reply(true);  // updates wait for ACKs on the wire
        constexpr int kPackets = 2'000;
        for (int i = 0; i < kPackets; ++i) lab.send({.to = 1, .payload = payload});
        REQUIRE(lab.run());
        // One packet after the other; the first is stored and forwarded once.
        const Picos each = serialization_time(lab_wire_bytes(payload), rate);
        CHECK(last_delivery(lab, 1) == cable * 2 + each * (kPackets + 1));
        lab.net().finish(lab.now());
        CHECK(lab.net().stats().pause_time == Picos{0});
        CHECK(lab.net().stats().credit_updates > 0);
        CHECK(lab.net().stats().pause_frames == 0);
        CHECK(lab.net().check_conservation() == "");
      }
    }
  }
}

TEST_CASE("credits: a buffer below the round trip bounds the rate to itself over the round trip") {
  FabricSpec spec = with_credits(star(2, kLine, picos_from_micros(10)));
  spec.credit.buffer_bytes = 64'000;  // of 250 kB
  Lab lab(spec);
  constexpr int kPackets = 1'000;
  for (int i = 0; i < kPackets; ++i) lab.send({.to = 1, .payload = 4096});
  REQUIRE(lab.run());
  // At least round trip and packet pass between a packet and the one that takes its place, and at
  // most 64 kB of 66 blocks each (15 packets) lie between them; a sender waits for the largest
  // packet and for updates of half of one, so at least 13.
  const Picos loop = picos_from_micros(20) + serialization_time(kFull, kLine);
  const auto takes = [&](int window) { return Picos{loop.count * kPackets / window}; };
  CHECK(last_delivery(lab, 1) > takes(15));
  CHECK(last_delivery(lab, 1) < takes(13));
  lab.net().finish(lab.now());
  // Almost all of the rest it waited: on its wire it had a third of the time.
  CHECK(lab.net().link_pause_time(0) > Picos{lab.now().count / 2});
  CHECK(lab.net().link_pause_time(0) < lab.now());
}

TEST_CASE("credits: an incast loses nothing, pauses nobody and uses the link fully") {
  Lab lab(with_credits(star(9, kLine, kWire)));
  load(lab, 8, 200);
  lab.check_every(25);
  CHECK(lab.run());
  CHECK(lab.violation() == "");
  lab.net().finish(lab.now());
  const NetworkStats& stats = lab.net().stats();
  CHECK(stats.delivered_packets == 1'600);
  CHECK(stats.total_drops() == 0);
  CHECK(stats.pause_frames == 0);
  CHECK(stats.resume_frames == 0);
  // The bottleneck never starves: more than a round trip is in flight to it.
  CHECK(last_delivery(lab, 8) == kWire * 2 + serialization_time(kFull, kLine) * 1'601);
  // Seven of eight parts of the time nobody may send; no queue holds more than all buffers.
  CHECK(stats.pause_time > Picos{7 * lab.now().count / 2});
  const std::uint64_t buffer = credit_buffer_of(lab.net().spec(), lab.net().spec().links[0]);
  CHECK(lab.net().last_hop_max_bytes() <= 8 * buffer);
  CHECK(lab.net().last_hop_max_bytes() > 8 * buffer / 2);
  CHECK(lab.net().check_conservation() == "");
}

// A trunk between two switches; host 3 behind the second is slow. What waits for it there fills
// the buffer of the trunk, and the flow to host 4, whose way is free, waits for the trunk.
TEST_CASE("credits: a victim flow is held up by a congested one that shares its buffer") {
  const auto victim_takes = [](std::uint32_t aggressors) {
    FabricSpec spec;
    spec.hosts = 5;
    spec.switches = 2;
    for (std::uint32_t h = 0; h < 5; ++h) {
      spec.links.push_back({h, h < 3 ? 5U : 6U, h == 3 ? rate_from_gbps(10) : kLine, kWire});
    }
    spec.links.push_back({5, 6, kLine, kWire});
    Lab lab(with_credits(spec));
    for (int i = 0; i < 300; ++i) {
      for (std::uint32_t from = 0; from < aggressors; ++from) {
        lab.send({.from = from, .to = 3, .payload = 4096});
      }
      lab.send({.from = 2, .to = 4, .payload = 4096});
    }
    lab.check_every(50);
    REQUIRE(lab.run());
    CHECK(lab.net().stats().total_drops() == 0);
    return last_delivery(lab, 4);
  };
  const Picos alone = victim_takes(0);
  CHECK(alone == kWire * 3 + serialization_time(kFull, kLine) * 302);
  // With one aggressor each gets the trunk in turns and the slow port sets the pace of both, a
  // tenth; two take two turns of three, which leaves the victim half of a tenth. What the buffers
  // took before they were full is less than a third of the 300 packets.
  CHECK(victim_takes(1) > Picos{alone.count * 6});
  CHECK(victim_takes(1) < Picos{alone.count * 10});
  CHECK(victim_takes(2) > Picos{alone.count * 12});
  CHECK(victim_takes(2) < Picos{alone.count * 20});
}

// Every class has buffers of its own: that is what virtual lanes are for.
TEST_CASE("credits: a flow of another lane is no victim") {
  FabricSpec spec = star(4, kLine, kWire);
  spec.links[2].rate = rate_from_gbps(1);
  spec.pfc.lossless_classes = 1U << 1 | 1U << 3;
  Lab lab(with_credits(spec));
  for (int i = 0; i < 200; ++i) {
    lab.send({.from = 0, .to = 2, .payload = 4096, .traffic_class = 3});
    lab.send({.from = 0, .to = 3, .payload = 4096, .traffic_class = 1});
  }
  REQUIRE(lab.run());
  Picos last{0};
  for (const Delivery& d : lab.deliveries()) {
    if (d.host == 3) last = later(last, d.at);
  }
  // The two take turns until class 3 has filled its buffer, with ten packets.
  CHECK(last < kWire * 2 + serialization_time(kFull, kLine) * 260);
}

// The known price: routes that form a cycle. Five switches in a ring, everybody sends two switches
// on; Clos fabrics have no such routes.
TEST_CASE("credits: routes around a ring lock up, up and down a Clos they do not") {
  FabricSpec ring;
  ring.hosts = 20;
  ring.switches = 5;
  for (std::uint32_t h = 0; h < 20; ++h) ring.links.push_back({h, 20 + h / 4, kLine, kWire});
  for (std::uint32_t s = 0; s < 5; ++s) {
    ring.links.push_back({20 + s, 20 + (s + 1) % 5, kLine, kWire});
  }
  const FabricSpec tree =
      clos({.pods = 3, .leaves = 2, .spines = 2, .cores = 2, .hosts_per_leaf = 4},
           {kLine, kLine, kLine, kWire, kWire});
  for (const FabricSpec& spec : {ring, tree}) {
    Lab lab(with_credits(spec));
    for (int i = 0; i < 300; ++i) {
      for (std::uint32_t h = 0; h < spec.hosts; ++h) {
        lab.send({.from = h,
                  .to = (h + 8) % spec.hosts,
                  .payload = 4096,
                  .source_port = static_cast<std::uint16_t>(50'000 + h)});
      }
    }
    REQUIRE(lab.run());
    CHECK(lab.net().check_conservation() == "");
    CHECK(lab.net().stats().total_drops() == 0);
    const bool all = lab.net().stats().delivered_packets == 300ULL * spec.hosts;
    CHECK(all == (spec.hosts == tree.hosts));
  }
}

// Random fabrics and traffic under credits with buffers from the least that is allowed.
RandomScenario random_credits(std::uint64_t seed, bool wild) {
  RandomScenario out = wild ? wild_scenario(seed) : random_scenario(seed);
  FabricSpec& spec = out.spec;
  Random random(seed, 3);
  spec.pfc.enabled = false;
  spec.pfc.headroom_bytes = 0;
  spec.credit.enabled = true;
  if ((spec.pfc.lossless_classes >> spec.ack_class & 1U) != 0) spec.ack_class = kControlClass;
  if (random.below(2) == 0) spec.credit.update_bytes = 1 + random.below(20'000);
  const std::uint64_t least = credit_update_of(spec) + largest_packet(spec) + kCreditBlock;
  if (random.below(3) != 0) spec.credit.buffer_bytes = least + random.below(100'000);
  for (LinkSpec& link : spec.links) link.duplicate = 0;
  std::erase_if(spec.events,
                [](const LinkEvent& event) { return event.action == LinkAction::duplicate; });
  std::uint64_t most = 0;
  for (const LinkSpec& link : spec.links) most = std::max(most, credit_buffer_of(spec, link));
  spec.buffer_bytes = spec.links.size() * 4 * most + 10'000 + random.below(80'000);
  return out;
}

TEST_CASE("credits: whatever the load, no packet of a lossless class is lost, and all arrive") {
  std::uint64_t stalled = 0, lossy_drops = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    RandomScenario scenario = random_credits(seed, false);
    for (LinkSpec& link : scenario.spec.links) link.loss = 0;
    scenario.spec.drop_control_ppm = 0;
    REQUIRE(check(scenario.spec) == std::vector<std::string>{});
    Lab lab(scenario.spec);
    lab.reply(scenario.reply);
    lab.check_every(41);  // credits and buffers balance in the middle of it, too
    std::set<std::uint64_t> lossless;
    std::uint64_t id = 0;
    for (const Send& send : scenario.sends) {
      ++id;
      if ((scenario.spec.pfc.lossless_classes >> send.traffic_class & 1U) != 0) lossless.insert(id);
      lab.send(send);
    }
    CHECK(lab.run());
    CHECK(lab.violation() == "");
    for (const Delivery& d : lab.deliveries()) lossless.erase(d.id);
    CHECK(lossless.empty());
    lab.net().finish(lab.now());
    CHECK(lab.net().check_conservation() == "");
    const NetworkStats& stats = lab.net().stats();
    CHECK(stats.delivered_packets + stats.total_drops() == stats.injected_packets);
    CHECK(stats.drops[static_cast<std::size_t>(DropReason::headroom_exhausted)] == 0);
    stalled += stats.pause_time > Picos{0} ? 1 : 0;
    lossy_drops += stats.total_drops();
  }
  CHECK(stalled > 80);
  CHECK(lossy_drops > 100);  // of classes without credits: the load was one to lose packets by
}

TEST_CASE("credits: the same whoever looks, with losses, weights and links that fail and change") {
  NetworkStats sum;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    const RandomScenario scenario = random_credits(seed, seed % 3 != 0);
    REQUIRE(check(scenario.spec) == std::vector<std::string>{});
    const ScenarioOutcome one = outcome_of(scenario, false, 12, 0, 29);
    CHECK(one.violation == "");
    for (const ScenarioOutcome& other :
         {outcome_of(scenario, true, 12, 0, 0), outcome_of(scenario, false, 20, 3, 0),
          outcome_of(scenario, true, 6, 1, 0)}) {
      CHECK(other.trace == one.trace);
      CHECK(other.stats == one.stats);
      CHECK(other.egress == one.egress);
    }
    CHECK(one.stats.pause_frames == 0);
    sum += one.stats;
  }
  CHECK(sum.drops[static_cast<std::size_t>(DropReason::headroom_exhausted)] == 0);
  CHECK(sum.drops[static_cast<std::size_t>(DropReason::link_down)] > 500);
  CHECK(sum.drops[static_cast<std::size_t>(DropReason::link_loss)] > 100);
  CHECK(sum.reordered_packets > 200);
  CHECK(sum.link_failures > 20);
  CHECK(sum.credit_updates > 10'000);
}

TEST_CASE("credits: a link that comes back counts from zero and carries on") {
  FabricSpec spec = with_credits(star(3, kLine, kWire));
  spec.links[2].rate = rate_from_gbps(10);  // its port holds packets of both senders meanwhile
  spec.events = {{.at = picos_from_micros(20), .link = 0, .action = LinkAction::down},
                 {.at = picos_from_micros(25), .link = 0, .action = LinkAction::up},
                 {.at = picos_from_micros(60), .link = 2, .action = LinkAction::down},
                 {.at = picos_from_micros(90), .link = 2, .action = LinkAction::up}};
  spec.reroute_delay = picos_from_micros(1'000'000);
  for (const bool keep : {false, true}) {
    CAPTURE(keep);
    spec.keep_queued_when_down = keep;
    Lab lab(spec);
    load(lab, 2, 300);
    lab.check_every(1);
    CHECK(lab.run());
    CHECK(lab.violation() == "");
    const NetworkStats& stats = lab.net().stats();
    CHECK(stats.link_failures == 2);
    CHECK(stats.drops[static_cast<std::size_t>(DropReason::link_down)] > 0);
    CHECK(stats.delivered_packets + stats.total_drops() == 600);
    CHECK(stats.delivered_packets > (keep ? 500U : 300U));
  }
}

TEST_CASE("credits: blocks, updates and limits of one lane") {
  FabricSpec spec = with_credits(star(2, kLine, kWire));
  spec.credit.buffer_bytes = 10'000;  // 156 blocks
  spec.credit.update_bytes = 1'000;   // 16 blocks
  CreditBook book(spec);
  CHECK(book.covers(kDefaultDataClass));
  CHECK(!book.covers(kControlClass));
  const CreditLane& lane = book.at(0, kDefaultDataClass);
  CHECK(lane.buffer == 156);
  CHECK(lane.limit == 156);
  // Largest: 4096 + 128 + 8 + 20 bytes, 67 blocks.
  CHECK(book.spend(0, kDefaultDataClass, 65));     // 2 blocks; 154 left
  CHECK(book.spend(0, kDefaultDataClass, 5'568));  // 87; 67 left
  CHECK(!book.spend(0, kDefaultDataClass, 1));     // 66 left
  book.take_in(0, kDefaultDataClass, 65);
  CHECK(lane.held == 2);
  CHECK(!book.release(0, kDefaultDataClass, 65).has_value());  // 2 blocks owed
  book.take_in(0, kDefaultDataClass, 5'568);
  const auto told = book.release(0, kDefaultDataClass, 5'568);
  REQUIRE(told.has_value());
  CHECK(*told == 156 + 89);
  CHECK(CreditBook::owed(lane) == 0);
  CHECK(book.hear(0, kDefaultDataClass, *told));
  CHECK(book.hear(0, kDefaultDataClass, 100));  // late: the higher limit stays
  CHECK(lane.limit - lane.sent == 155);
}

TEST_CASE("credits: what cannot be built is said") {
  const auto error = [](auto change) {
    FabricSpec spec = with_credits(star(4, kLine, kWire));
    change(spec);
    const std::vector<std::string> errors = check(spec);
    return errors.empty() ? std::string() : errors.front();
  };
  using Catch::Matchers::Contains;
  CHECK(error([](FabricSpec&) {}).empty());
  CHECK_THAT(error([](FabricSpec& s) { s.pfc.enabled = true; }), Contains("not both"));
  CHECK_THAT(error([](FabricSpec& s) { s.pfc.lossless_classes = 0; }), Contains("no class"));
  CHECK_THAT(error([](FabricSpec& s) { s.credit.buffer_bytes = 4'096; }),
             Contains("a buffer of 4096 B must hold"));
  CHECK_THAT(error([](FabricSpec& s) { s.links[1].duplicate = 0.1; }), Contains("duplicate"));
  CHECK_THAT(error([](FabricSpec& s) { s.buffer_bytes = 100'000; }), Contains("leave nothing"));
}

}  // namespace
}  // namespace paceline::fabric::credit_test
