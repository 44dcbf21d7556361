// Emulated NICs of several ports, whose links fail and return while they run.
#include <array>
#include <catch2/catch.hpp>

#include "dataplane/service/nics/emulated_nics.h"
#include "tests/unit/nics/emulated_lab.h"

namespace paceline::service::test {
namespace {

constexpr std::string_view kTwoPorts = R"(
[fabric]
hosts = 2
ports = 2
planes = "own"
rate = "25Gb/s"
delay = "2500ns"
[transport]
reliability = "selective"
)";

void give_fault(NicSet& nics, Picos now, const config::LinkFault& fault) {
  std::vector<fabric::LinkEvent> events;
  REQUIRE(nics.plan_fault(fault, events) == "");
  nics.change_links(now, events);
}

std::vector<bool> links_up(NicSet& nics, Picos now, std::size_t nic) {
  NicSetReport report = nics.blank_report();
  nics.describe(now, report);
  return report.nics[nic].links_up;
}

TEST_CASE("ports: a bonded NIC delivers by the ports that have a link", "[nics]") {
  const auto nics = nics_from(kTwoPorts);
  REQUIRE(nics->size() == 2);
  constexpr std::size_t kBytes = 1'000'003;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  a.fill(6);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  REQUIRE(turns.run());
  CHECK(nics->link_changes() == 0);
  CHECK(links_up(*nics, turns.now(), 0) == std::vector<bool>{true, true});

  // While nothing is in flight, and while something is.
  const std::string target = GENERATE("h0.1", "h1.0");
  const Picos after = GENERATE(picos_from_micros(0), picos_from_micros(60));
  CAPTURE(target, after.count);
  give_fault(*nics, turns.now(), {.target = target, .action = "down", .after = after});
  turns.post(a, a.write(1, kBytes, b));
  REQUIRE(turns.run());
  const auto sent = a.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == transport::CompletionStatus::success);
  CHECK(a.memory == b.memory);
  CHECK(nics->link_changes() > 0);
  const std::size_t failed = target == "h0.1" ? 0 : 1;
  CHECK(links_up(*nics, turns.now(), failed) == std::vector<bool>{failed == 0, failed == 1});
  CHECK(links_up(*nics, turns.now(), 1 - failed) == std::vector<bool>{true, true});
  CHECK(nics->ports_up(0) == 1);
  CHECK(nics->ports_up(1) == 1);

  give_fault(*nics, turns.now(), {.target = target, .action = "clear"});
  REQUIRE(turns.run());
  CHECK(links_up(*nics, turns.now(), failed) == std::vector<bool>{true, true});
}

TEST_CASE("ports: a NIC is down without any link, and its queue pairs outlive that", "[nics]") {
  const auto nics = nics_from(kTwoPorts);
  constexpr std::size_t kBytes = 300'000;
  Side a(*nics, 0, kBytes);
  Side b(*nics, 1, kBytes);
  a.fill(7);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  REQUIRE(turns.run());
  const Picos begin = turns.now();
  const Picos lasts = picos_from_micros(700);
  give_fault(*nics, begin, {.target = "h1", .action = "down", .lasts = lasts});
  turns.post(a, a.write(1, kBytes, b));
  turns.run(begin + picos_from_micros(300));
  CHECK(nics->ports_up(0) == 1);
  CHECK(nics->ports_up(1) == 0);
  CHECK(a.sends.empty());
  const std::uint64_t changes = nics->link_changes();
  REQUIRE(turns.run());
  CHECK(nics->ports_up(1) == 1);
  CHECK(nics->link_changes() > changes);
  CHECK(a.sent().size() == 1);
  CHECK(a.memory == b.memory);
  CHECK(turns.now() > begin + lasts);
}

TEST_CASE("ports: apart, each is a device of its plane", "[nics]") {
  const auto nics =
      nics_from(std::string(kTwoPorts) + "[nic]\nnames = [\"left\"]\nshape = \"separate\"\n");
  REQUIRE(nics->size() == 4);
  const std::array<std::string, 4> names{"leftp0", "h1p0", "leftp1", "h1p1"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const attach::NicInfo& info = nics->nic(i).info;
    CHECK(info.name.data() == names[i]);
    CHECK(info.rate_mbps == 25'000);
    CHECK(links_up(*nics, Picos{0}, i).size() == 1);
    for (std::size_t other = 0; other < names.size(); ++other) {
      CAPTURE(names[i], names[other]);
      const bool linked = i / 2 == other / 2;
      const attach::NicInfo& to = nics->nic(other).info;
      CHECK(nics->path_to(i, wire::IpAddress{to.gids[0]}).has_value() == linked);
      CHECK(nics->path_to(i, wire::IpAddress{to.gids[1]}).has_value() == linked);
      CHECK(nics->path_to_local(i, to.local_id).has_value() == linked);
      CHECK((info.guid == to.guid) == (i == other));
    }
  }

  // One that fails says nothing of the other.
  Side a(*nics, 2, 10'000);
  Side b(*nics, 3, 10'000);
  a.fill(8);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  give_fault(*nics, turns.now(), {.target = "left.0", .action = "down"});
  turns.post(a, a.write(1, 10'000, b));
  REQUIRE(turns.run());
  CHECK(a.memory == b.memory);
  CHECK(nics->ports_up(0) == 0);
  CHECK(nics->ports_up(2) == 1);
}

TEST_CASE("ports: of planes with spines in common, every device reaches every other", "[nics]") {
  const auto nics = nics_from(
      "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nports = 2\n"
      "planes = \"shared\"\n[nic]\nshape = \"separate\"\n");
  REQUIRE(nics->size() == 4);
  Side a(*nics, 0, 10'000);
  Side b(*nics, 3, 10'000);  // port 1 of the other host
  a.fill(9);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, 10'000, b));
  REQUIRE(turns.run());
  CHECK(a.memory == b.memory);
}

TEST_CASE("ports: of one device, each has addresses, a link and a state of its own", "[nics]") {
  const std::string planes = GENERATE("own", "shared");
  const std::size_t gid = GENERATE(0U, 1U);
  CAPTURE(planes, gid);
  const auto nics = nics_from(
      "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nports = 2\n"
      "planes = \"" +
      planes + "\"\n[nic]\nshape = \"multiport\"\n");
  REQUIRE(nics->size() == 2);
  const attach::NicInfo& info = nics->nic(1).info;
  CHECK(info.rate_mbps == nics->nic(0).congestion.facts.link_rate.bps / 1'000'000);
  REQUIRE(attach::ports_of(info) == 2);
  CHECK(attach::is_up(info, 2));
  CHECK(wire::to_text(wire::IpAddress{attach::gid_of(info, 1, 0)}) == "10.0.0.2");
  CHECK(wire::to_text(wire::IpAddress{attach::gid_of(info, 2, 0)}) == "10.1.0.2");
  const wire::IpAddress second{attach::gid_of(info, 2, gid)};
  CHECK(nics->path_to(0, second)->ip == second);
  const std::uint16_t local_id = attach::local_id_of(info, 2);
  CHECK(wire::IpAddress{attach::gid_of(info, 2, 0)} == nics->path_to_local(0, local_id)->ip);
  CHECK_FALSE(nics->path_to(0, wire::in_subnet(second, wire::subnet_of(second) + 1)));
  CHECK_FALSE(nics->path_to_local(0, attach::local_id_of(info, 3)));

  constexpr std::size_t kBytes = 100'000;
  Side a1(*nics, 0, kBytes);
  Side b1(*nics, 1, kBytes);
  Side a2(*nics, 0, kBytes);
  Side b2(*nics, 1, kBytes);
  a1.fill(1);
  a2.fill(2);
  Turns turns(*nics);
  turns.connect(a1, b1, gid, 1);
  turns.connect(a2, b2, gid, 2);
  turns.post(a1, a1.write(1, kBytes, b1));
  turns.post(a2, a2.write(1, kBytes, b2));
  REQUIRE(turns.run());
  CHECK(a1.memory == b1.memory);
  CHECK(a2.memory == b2.memory);
  CHECK(a1.sent().size() == 1);
  CHECK(a2.sent().size() == 1);
  CHECK(nics->ports_up(0) == 3);

  // Queue pairs of the port that fails end, those of the other do not notice.
  const bool first = GENERATE(true, false);
  give_fault(*nics, turns.now(), {.target = first ? "h0.0" : "h1.1", .action = "down"});
  turns.post(a1, a1.write(2, kBytes, b1));
  turns.post(a2, a2.write(2, kBytes, b2));
  REQUIRE(turns.run());
  CHECK(nics->ports_up(0) == (first ? 2 : 3));
  CHECK(nics->ports_up(1) == (first ? 3 : 1));
  using transport::CompletionStatus;
  const auto of_first = a1.sent();
  const auto of_second = a2.sent();
  REQUIRE(of_first.size() == 1);
  REQUIRE(of_second.size() == 1);
  CHECK((first ? of_first : of_second)[0].status == CompletionStatus::retry_exceeded);
  CHECK((first ? of_second : of_first)[0].status == CompletionStatus::success);
}

TEST_CASE("ports: a device has up to eight, and an engine finds its address to each", "[nics]") {
  const auto nics =
      nics_from("[fabric]\nhosts = 2\nports = 8\nplanes = \"own\"\n[nic]\nshape = \"multiport\"\n");
  const attach::NicInfo& info = nics->nic(0).info;
  REQUIRE(attach::ports_of(info) == 8);
  CHECK(info.up == 0xFF);
  CHECK(nics->ports_up(1) == 0xFF);
  constexpr std::size_t kBytes = 10'000;
  Turns turns(*nics);
  for (std::uint32_t port = 1; port <= 8; ++port) {
    CAPTURE(port);
    const std::uint16_t id = attach::local_id_of(nics->nic(1).info, port);
    CHECK(nics->path_to_local(0, id)->ip.bytes == attach::gid_of(nics->nic(1).info, port, 0));
    Side a(*nics, 0, kBytes);
    Side b(*nics, 1, kBytes);
    a.fill(port);
    turns.connect(a, b, port % 2, port);
    turns.post(a, a.write(1, kBytes, b));
    REQUIRE(turns.run());
    CHECK(a.memory == b.memory);
  }

  transport::EngineConfig config;
  config.address = wire::IpAddress::v4(0x0A00'0001);
  config.other_address = *wire::ip_address_from_text("fd00::a00:1");
  config.addressed_ports = 8;
  const auto source = [&](const char* to) {
    return wire::to_text(config.source_for(*wire::ip_address_from_text(to)));
  };
  CHECK(source("10.0.0.2") == "10.0.0.1");
  CHECK(source("10.7.0.2") == "10.7.0.1");
  CHECK(source("10.8.0.2") == "10.0.0.1");  // no port's subnet
  CHECK(source("9.255.0.2") == "10.0.0.1");
  CHECK(source("fd00::a03:2") == "fd00::a03:1");
}

TEST_CASE("ports: those of one device carry traffic at the same time", "[nics]") {
  const auto nics = nics_from(std::string(kTwoPorts) + "[nic]\nshape = \"multiport\"\n");
  constexpr std::size_t kBytes = 4'000'000;
  Side a1(*nics, 0, kBytes);
  Side b1(*nics, 1, kBytes);
  Side a2(*nics, 0, kBytes);
  Side b2(*nics, 1, kBytes);
  Turns turns(*nics);
  turns.connect(a1, b1, 0, 1);
  turns.connect(a2, b2, 0, 2);
  turns.post(a1, a1.write(1, kBytes, b1));
  turns.post(a2, a2.write(1, kBytes, b2));
  REQUIRE(turns.run());
  REQUIRE(a1.sent().size() == 1);
  REQUIRE(a2.sent().size() == 1);
  // Both by one link of 25 Gb/s would take 2.56 ms.
  CHECK(turns.now() < picos_from_micros(2'100));
}

}  // namespace
}  // namespace paceline::service::test
