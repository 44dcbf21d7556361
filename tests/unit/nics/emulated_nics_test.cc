// Emulated hosts as NIC instances: bytes arrive, by both families of addresses; what nobody needs
// costs nothing.
#include "dataplane/service/nics/emulated_nics.h"

#include <catch2/catch.hpp>

#include "tests/unit/nics/emulated_lab.h"

namespace paceline::service::test {
namespace {

constexpr std::string_view kPair = R"(
[fabric]
hosts = 2
rate = "25Gb/s"
delay = "2500ns"
)";

std::string with(std::string_view more) { return std::string(kPair) + std::string(more); }

TEST_CASE("nics: an emulated host says what it is", "[nics]") {
  const auto nics = nics_from(with("subnet = \"10.7.0.0/16\"\n[nic]\nnames = [\"left\"]\n"));
  REQUIRE(nics->size() == 2);
  const attach::NicInfo& left = nics->nic(0).info;
  const attach::NicInfo& other = nics->nic(1).info;
  CHECK(std::string(left.name.data()) == "left");
  CHECK(std::string(other.name.data()) == "h1");
  CHECK(left.rate_mbps == 25'000);
  CHECK(left.mtu == 4096);
  CHECK(left.local_id == 1);
  CHECK(other.local_id == 2);
  CHECK(left.gid_kinds[0] == attach::GidKind::roce_v2_ipv4);
  CHECK(left.gid_kinds[1] == attach::GidKind::roce_v2_ipv6);
  CHECK(left.gid_kinds[2] == attach::GidKind::none);
  CHECK(wire::to_text(wire::IpAddress{other.gids[0]}) == "10.7.0.2");
  CHECK(wire::to_text(wire::IpAddress{other.gids[1]}) == "fd00::a07:2");
  CHECK(left.guid != other.guid);
  CHECK_FALSE(nics->receives_from_outside());
}

TEST_CASE("nics: ways lead to the hosts there are", "[nics]") {
  const auto nics = nics_from(kPair);
  const auto by_v4 = nics->path_to(0, wire::IpAddress{nics->nic(1).info.gids[0]});
  const auto by_v6 = nics->path_to(0, wire::IpAddress{nics->nic(1).info.gids[1]});
  REQUIRE(by_v4);
  REQUIRE(by_v6);
  CHECK(by_v4->mac.bytes == nics->nic(1).info.mac);
  CHECK(by_v6->mac.bytes == nics->nic(1).info.mac);
  CHECK_FALSE(nics->path_to(0, wire::IpAddress::v4(0x0A00'0003)));
  CHECK_FALSE(nics->path_to(0, wire::IpAddress::v4(0x0A00'0000)));
  CHECK_FALSE(nics->path_to(0, *wire::ip_address_from_text("fd00::1:a00:1")));
  CHECK_FALSE(nics->path_to(0, *wire::ip_address_from_text("fe80::a00:1")));
  const auto by_id = nics->path_to_local(0, 2);
  REQUIRE(by_id);
  CHECK(by_id->ip == wire::IpAddress{nics->nic(1).info.gids[0]});
  CHECK_FALSE(nics->path_to_local(0, 0));
  CHECK_FALSE(nics->path_to_local(0, 3));
}

// Both ways at once, over each family of addresses, with every algorithm of both kinds.
TEST_CASE("nics: bytes arrive as they were, by either family of addresses", "[nics]") {
  const char* algorithm = GENERATE("dcqcn", "cadence");
  const std::size_t gid = GENERATE(std::size_t{0}, std::size_t{1});
  CAPTURE(algorithm, gid);
  const auto nics = nics_from(with("[cc]\nalgorithm = \"" + std::string(algorithm) + "\"\n"));
  constexpr std::size_t kBytes = 1'000'003;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  Side c(*nics, 0, kBytes);
  Side d(*nics, 1, kBytes);
  a.fill(1);
  d.fill(2);
  Turns turns(*nics);
  turns.connect(a, b, gid);
  turns.connect(c, d, gid);
  turns.post(a, a.write(1, kBytes, b));
  turns.post(d, d.write(2, kBytes, c));
  REQUIRE(turns.run());
  const auto sent = a.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == transport::CompletionStatus::success);
  CHECK(d.sent().size() == 1);
  CHECK(a.memory == b.memory);
  CHECK(c.memory == d.memory);
  // 1 MB at 25 Gb/s takes 320 us.
  CHECK(turns.now() > picos_from_micros(320));
  CHECK(a.engine.counters().retransmitted_packets == 0);
}

TEST_CASE("nics: a transmitter's time is told, by a link of any rate", "[nics]") {
  const auto nics = nics_from(kPair);
  constexpr std::size_t kBytes = 1'000'003;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  NicSetReport report = nics->blank_report();
  std::uint64_t sent = 0;
  Picos sending{0};
  for (const Rate rate : {rate_from_gbps(25), rate_from_gbps(5)}) {
    config::LinkFault fault;
    fault.target = "h0";
    fault.action = "rate";
    fault.rate = rate;
    fault.direction = "up";
    std::vector<fabric::LinkEvent> events;
    REQUIRE(nics->plan_fault(fault, events).empty());
    nics->change_links(turns.now(), events);
    REQUIRE(turns.run());
    turns.post(a, a.write(1, kBytes, b));
    REQUIRE(turns.run());
    nics->describe(turns.now(), report);
    const NicReport& nic = report.nics[0];
    CHECK(nic.sent_wire_bytes - sent > kBytes);
    CHECK(nic.sending - sending == serialization_time(nic.sent_wire_bytes - sent, rate));
    sent = nic.sent_wire_bytes;
    sending = nic.sending;
  }
  // Acknowledgements, by a link that has not changed.
  const NicReport& other = report.nics[1];
  CHECK(other.sent_wire_bytes < sent / 10);
  CHECK(other.sending == serialization_time(other.sent_wire_bytes, rate_from_gbps(25)));
}

TEST_CASE("nics: time in which nobody could run is told, and is no work", "[nics]") {
  const auto nics = nics_from(kPair);
  Turns turns(*nics);
  REQUIRE(turns.run());
  const Picos gap = picos_from_micros(300);
  CHECK_FALSE(nics->turn(turns.now() + gap, gap));
  nics->touch(1);  // which a caller did for a reason
  CHECK(nics->turn(turns.now() + gap * 2, gap));
  CHECK_FALSE(nics->turn(turns.now() + gap * 3, gap));
}

TEST_CASE("nics: a host reaches itself", "[nics]") {
  const auto nics = nics_from(kPair);
  Side a(*nics, 0, 10'000);
  Side b(*nics, 0, 10'000);
  a.fill(5);
  Turns turns(*nics);
  turns.connect(a, b, GENERATE(std::size_t{0}, std::size_t{1}));
  turns.post(a, a.write(1, 10'000, b));
  REQUIRE(turns.run());
  REQUIRE(a.sent().size() == 1);
  CHECK(a.memory == b.memory);
}

TEST_CASE("nics: what the fabric loses is repaired", "[nics]") {
  const auto nics = nics_from(with("loss = 0.01\nreorder = 0.01\n"));
  constexpr std::size_t kBytes = 3'000'000;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  a.fill(3);
  Turns turns(*nics);
  turns.connect(a, b, 1);
  turns.post(a, a.write(1, kBytes, b));
  REQUIRE(turns.run());
  REQUIRE(a.sent().size() == 1);
  CHECK(a.memory == b.memory);
  CHECK(a.engine.counters().retransmitted_packets > 0);
  auto& network = dynamic_cast<EmulatedNics&>(*nics).network();
  network.finish(turns.now());
  CHECK(network.stats().drops[std::size_t(fabric::DropReason::link_loss)] > 0);
  CHECK(network.check_conservation().empty());
}

// Idle for ever costs nothing: no deadline, whatever the algorithm and however it began.
TEST_CASE("nics: an idle testbed has nothing to do", "[nics]") {
  const char* algorithm = GENERATE("dcqcn", "cadence");
  const char* peers = GENERATE("paceline", "discover", "roce");
  CAPTURE(algorithm, peers);
  const auto nics = nics_from(with("[cc]\nalgorithm = \"" + std::string(algorithm) +
                                   "\"\n[transport]\npeers = \"" + peers + "\"\n"));
  Turns turns(*nics);
  REQUIRE(turns.run());
  CHECK(turns.turns() == 1);
  Side a(*nics, 0, 100'000);
  Side b(*nics, 1, 100'000);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, 100'000, b));
  REQUIRE(turns.run(picos_from_micros(1'000'000)));
  CHECK(a.sent().size() == 1);
  CHECK(nics->next_deadline() == kNever);
  CHECK_FALSE(nics->turn(turns.now() + picos_from_micros(5), Picos{0}));
}

// 64 hosts, of which two talk: only they are polled.
TEST_CASE("nics: a turn costs the work that is due", "[nics]") {
  const auto nics = nics_from("[fabric]\nhosts = 64\nrate = \"25Gb/s\"\n");
  REQUIRE(nics->size() == 64);
  Side a(*nics, 3, 40'960);
  Side b(*nics, 60, 40'960);
  a.fill(9);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, 40'960, b));
  REQUIRE(turns.run());
  CHECK(a.memory == b.memory);
  for (std::size_t h = 0; h < nics->size(); ++h) {
    if (h == 3 || h == 60) continue;
    CHECK(nics->nic(h).engine->counters().rx_packets == 0);
  }
}

// A link that fails takes what is on the wire with it; traffic continues when it is back.
TEST_CASE("nics: events of the testbed happen", "[nics]") {
  const auto nics =
      nics_from(with("[[event]]\nat = \"100us\"\nlink = \"host0\"\naction = \"down\"\n"
                     "[[event]]\nat = \"300us\"\nlink = \"host0\"\naction = \"up\"\n"));
  constexpr std::size_t kBytes = 1'000'000;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  a.fill(4);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, kBytes, b));
  REQUIRE(turns.run());
  CHECK(a.memory == b.memory);
  CHECK(turns.now() > picos_from_micros(520));
  CHECK(dynamic_cast<EmulatedNics&>(*nics).network().stats().link_failures == 1);
}

// However late the worker comes, the fabric's own time is kept, and bytes arrive.
TEST_CASE("nics: late turns and stops of the machine do no harm", "[nics]") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 6));
  CAPTURE(seed);
  Random random(seed, 0);
  const auto nics = nics_from(kPair);
  constexpr std::size_t kBytes = 500'000;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  a.fill(seed);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, kBytes, b));
  Picos now = turns.now();
  while (a.sends.empty()) {
    REQUIRE(now < picos_from_micros(1'000'000));
    const bool stopped = random.below(20) == 0;
    const Picos gap = stopped ? picos_from_micros(900) : Picos{0};
    now += gap + picos_from_nanos(static_cast<std::int64_t>(random.below(8'000)));
    nics->turn(now, gap);
  }
  CHECK(a.memory == b.memory);
  CHECK(a.engine.counters().retransmitted_packets == 0);
}

// Two hosts send to one: what waits for it, and what is marked, shows in the report.
TEST_CASE("nics: a report tells what happened in the fabric", "[nics]") {
  const auto nics = nics_from(
      "[fabric]\nhosts = 3\nrate = \"25Gb/s\"\necn = { kmin = \"20kB\", kmax = \"80kB\" }\n");
  constexpr std::size_t kBytes = 1'000'000;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  Side to_a(*nics, 2, kBytes);
  Side to_b(*nics, 2, kBytes);
  Turns turns(*nics);
  turns.connect(a, to_a, 0);
  turns.connect(b, to_b, 0);
  turns.post(a, a.write(1, kBytes, to_a));
  turns.post(b, b.write(1, kBytes, to_b));
  NicSetReport report = nics->blank_report();
  REQUIRE_FALSE(turns.run(picos_from_micros(60)));
  nics->describe(turns.now(), report);
  CHECK(report.algorithm == "dcqcn");
  CHECK(report.fabric.emulated);
  REQUIRE(report.fabric.queues.size() == 3);
  const QueueReport& queue = report.fabric.queues[2];
  CHECK(queue.from == "switch0");
  CHECK(queue.to == "h2");
  CHECK(queue.queued_bytes > 20'000);
  CHECK(queue.most_bytes >= queue.queued_bytes);
  CHECK(queue.marked > 0);
  CHECK(report.fabric.queues[0].most_bytes < queue.most_bytes);
  REQUIRE(turns.run());
  nics->describe(turns.now(), report);
  CHECK(queue.queued_bytes == 0);
  CHECK(report.fabric.marked_packets == queue.marked);
  CHECK(report.fabric.last_hop.most == Approx(static_cast<double>(queue.most_bytes)).margin(4300));
  CHECK(report.fabric.delivered_packets == report.fabric.injected_packets);
  REQUIRE(report.nics.size() == 3);
  CHECK(report.nics[2].counters.rx_data_bytes == 2 * kBytes);
  CHECK(report.nics[2].counters.rx_ce_packets == queue.marked);
}

}  // namespace
}  // namespace paceline::service::test
