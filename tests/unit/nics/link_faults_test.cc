// Faults as an operator names them, as events of links.
#include "dataplane/service/nics/link_faults.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/nics/emulated_lab.h"

namespace paceline::service::test {
namespace {

using Indices = std::vector<std::uint32_t>;

// Hosts 0 to 3 of two ports, each plane a leaf-spine: links 0 to 3 are of ports 0, 4 to 7 of ports
// 1, 8 and 9 of leaves 0 and 1 to spine 0, 10 and 11 of leaves 2 and 3 to spine 1.
constexpr std::string_view kPlanes = R"(
[fabric]
topology = "leaf_spine"
leaves = 2
hosts_per_leaf = 2
spines = 1
ports = 2
rate = "25Gb/s"
delay = "2500ns"
uplink_rate = "50Gb/s"
loss = 0.125
corrupt = 0.25
duplicate = 0.375
reorder = 0.5
[transport]
reliability = "selective"
[nic]
names = ["left"]
)";

std::vector<fabric::LinkEvent> events_of(const NicSet& nics, const config::LinkFault& fault) {
  std::vector<fabric::LinkEvent> out;
  REQUIRE(nics.plan_fault(fault, out) == "");
  return out;
}

Indices failing(const NicSet& nics, const std::string& target) {
  Indices links;
  for (const fabric::LinkEvent& event : events_of(nics, {.target = target, .action = "down"})) {
    CHECK(event.action == fabric::LinkAction::down);
    CHECK(event.at == Picos{0});
    links.push_back(event.link);
  }
  return links;
}

TEST_CASE("faults: what a target is", "[nics]") {
  const auto nics = nics_from(kPlanes);
  CHECK(failing(*nics, "left") == Indices{0, 4});
  CHECK(failing(*nics, "left.0") == Indices{0});
  CHECK(failing(*nics, "left.1") == Indices{4});
  CHECK(failing(*nics, "h3") == Indices{3, 7});
  CHECK(failing(*nics, "host3.p1") == Indices{7});
  CHECK(failing(*nics, "leaf0") == Indices{0, 1, 8});
  CHECK(failing(*nics, "leaf3-spine1") == Indices{11});
  CHECK(failing(*nics, "plane1") == Indices{4, 5, 6, 7, 10, 11});

  std::vector<fabric::LinkEvent> none;
  for (const char* target : {"h0", "left.2", "h3p1"}) {
    CAPTURE(target);
    CHECK(nics->plan_fault({.target = target, .action = "down"}, none)
              .starts_with("target: no NIC or port \"" + std::string(target) +
                           "\" (the first is \"left\", the last \"h3.1\"); as a link: "));
  }
  CHECK(
      nics->plan_fault({.target = "leaf4", .action = "clear"}, none) ==
      "target: no NIC or port \"leaf4\" (the first is \"left\", the last \"h3.1\"); as a link: no "
      "\"leaf4\"; allowed is leaf0 .. leaf3");
  CHECK(none.empty());
}

TEST_CASE("faults: where ports are devices, these are targets, too", "[nics]") {
  const auto nics = nics_from(std::string(kPlanes) + "shape = \"separate\"\n");
  CHECK(failing(*nics, "left") == Indices{0, 4});
  CHECK(failing(*nics, "left.1") == Indices{4});
  CHECK(failing(*nics, "leftp0") == Indices{0});
  CHECK(failing(*nics, "leftp1") == Indices{4});
  CHECK(failing(*nics, "h3p1") == Indices{7});
}

// The value that a fault sets, or that its end restores.
double value_in(const fabric::LinkEvent& event) {
  using fabric::LinkAction;
  if (event.action == LinkAction::rate) return static_cast<double>(event.rate.bps);
  if (event.action == LinkAction::delay) return static_cast<double>(event.delay.count);
  return event.probability;
}

TEST_CASE("faults: what lasts ends with the values of the file", "[nics]") {
  const auto nics = nics_from(kPlanes);
  using fabric::LinkAction;
  struct Case {
    const char* name;
    LinkAction action;
    double during, after;
  };
  constexpr Case kCases[] = {
      {"rate", LinkAction::rate, 1e9, 50e9},          {"delay", LinkAction::delay, 9e6, 2.5e6},
      {"loss", LinkAction::loss, 1, 0.125},           {"corrupt", LinkAction::corrupt, 1, 0.25},
      {"duplicate", LinkAction::duplicate, 1, 0.375}, {"reorder", LinkAction::reorder, 1, 0.5}};
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const config::LinkFault fault{.target = "leaf1-spine0",
                                  .action = c.name,
                                  .rate = Rate{static_cast<std::uint64_t>(c.during)},
                                  .delay = Picos{static_cast<std::int64_t>(c.during)},
                                  .probability = c.during,
                                  .direction = "up",
                                  .after = picos_from_micros(3),
                                  .lasts = picos_from_micros(5)};
    const auto events = events_of(*nics, fault);
    REQUIRE(events.size() == 2);
    for (const fabric::LinkEvent& event : events) {
      CHECK(event.link == 9);
      CHECK(event.action == c.action);
      CHECK(event.directions == 1);
    }
    CHECK(events[0].at == picos_from_micros(3));
    CHECK(events[1].at == picos_from_micros(8));
    CHECK(value_in(events[0]) == c.during);
    CHECK(value_in(events[1]) == c.after);
  }
  const auto events =
      events_of(*nics, {.target = "left", .action = "down", .lasts = picos_from_micros(5)});
  REQUIRE(events.size() == 4);
  CHECK(std::count_if(events.begin(), events.end(), [](const fabric::LinkEvent& event) {
          return event.action == LinkAction::up && event.at == picos_from_micros(5);
        }) == 2);
}

TEST_CASE("faults: clear is the file's link, up, and nothing that was planned", "[nics]") {
  using fabric::LinkAction;
  const auto nics = nics_from(kPlanes);
  const auto events =
      events_of(*nics, {.target = "h1.0", .action = "clear", .after = picos_from_micros(7)});
  const std::pair<LinkAction, double> expected[] = {{LinkAction::rate, 25e9},
                                                    {LinkAction::delay, 2.5e6},
                                                    {LinkAction::loss, 0.125},
                                                    {LinkAction::corrupt, 0.25},
                                                    {LinkAction::duplicate, 0.375},
                                                    {LinkAction::reorder, 0.5},
                                                    {LinkAction::mark_on, 0},
                                                    {LinkAction::reclass, 0},
                                                    {LinkAction::take, 0},
                                                    {LinkAction::resume, 0},
                                                    {LinkAction::up, 0},
                                                    {LinkAction::forget, 0}};
  CHECK(events.size() == std::size(expected));
  CHECK(events.front().action == LinkAction::forget);
  for (const auto& [action, value] : expected) {
    const auto at =
        std::find_if(events.begin(), events.end(),
                     [wanted = action](const fabric::LinkEvent& e) { return e.action == wanted; });
    REQUIRE(at != events.end());
    CHECK(value_in(*at) == value);
    CHECK(at->link == 1);
    CHECK(at->at == picos_from_micros(7));
    CHECK(at->directions == fabric::kBothDirections);
    CHECK(at->rate == (action == LinkAction::rate ? rate_from_gbps(25) : Rate{}));
    CHECK(at->traffic_class == kTrafficClasses);
    CHECK(at->factor == 1);
  }
}

TEST_CASE("faults: a kind of scenarios does here what it does there", "[nics]") {
  using fabric::LinkAction;
  const auto nics = nics_from(kPlanes);
  const auto slow = events_of(*nics, {.target = "left",
                                      .action = "slow_nic",
                                      .severity = 5,
                                      .after = picos_from_micros(3),
                                      .lasts = picos_from_micros(4)});
  REQUIRE(slow.size() == 4);  // both ports
  CHECK(slow[0].rate == rate_from_gbps(5));
  CHECK(slow[0].at == picos_from_micros(3));
  CHECK(slow[1].rate == rate_from_gbps(25));
  CHECK(slow[1].at == picos_from_micros(7));
  CHECK(slow[2].link == 4);
  // Without an end it lasts until it is cleared.
  const auto flaps =
      events_of(*nics, {.target = "h3.1", .action = "flapping_port", .severity = 10});
  REQUIRE(flaps.size() == 2);
  CHECK(flaps[0].link == 7);
  CHECK(flaps[0].every == picos_from_micros(100'000));
  CHECK(flaps[0].until == kNever);
  CHECK(events_of(*nics, {.target = "plane1", .action = "dead_port"}).size() == 6);
  CHECK(events_of(*nics, {.target = "h1", .action = "dead_port"}).size() == 2);
  CHECK(events_of(*nics, {.target = "h2", .action = "wrong_dscp"}).front().traffic_class == 0);
  CHECK(events_of(*nics, {.target = "leaf1", .action = "ecn_off"}).size() == 3);
  CHECK(events_of(*nics, {.target = "h2", .action = "pfc_storm"}).size() == 4);
  const auto lossy =
      events_of(*nics, {.target = "leaf0-spine0", .action = "lossy_link", .seed = 9});
  REQUIRE(lossy.size() == 1);
  CHECK(lossy[0].seed == 9);
  CHECK(lossy[0].probability == 0.002);
}

TEST_CASE("faults: what a kind cannot have is told", "[nics]") {
  std::vector<fabric::LinkEvent> none;
  const auto nics = nics_from(kPlanes);
  const auto wrong = [&](const NicSet& set, const char* target, const char* kind) {
    return set.plan_fault({.target = target, .action = kind}, none);
  };
  CHECK(wrong(*nics, "leaf0", "pcie_limit") ==
        "target: allowed with fault.kind = \"pcie_limit\" is a NIC, such as \"host3\"");
  CHECK(wrong(*nics, "left", "bad_path") ==
        "target: allowed with fault.kind = \"bad_path\" is one link between switches, such as "
        "\"leaf0-spine1\"");
  CHECK(wrong(*nics, "leaf0-spine0", "hash_collision") ==
        "action: hash_collision needs one path a connection: fabric.ports = 1, "
        "fabric.load_balance = \"ecmp\", transport.multipath = \"none\"");
  const auto lossy =
      nics_from("[fabric]\nhosts = 2\nflow_control = \"none\"\n[fabric.ecn]\nenabled = false\n");
  CHECK(wrong(*lossy, "h1", "slow_receiver") ==
        "action: slow_receiver needs fabric.flow_control = \"pfc\"");
  CHECK(wrong(*lossy, "leaf0", "ecn_off") == "action: ecn_off needs fabric.ecn.enabled = true");
  CHECK(none.empty());
}

TEST_CASE("faults: a connection's source port can lead it by a link", "[nics]") {
  const auto nics = nics_from(
      "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n");
  CHECK(nics->plan_fault({.target = "leaf0-spine1", .action = "hash_collision"},
                         *std::make_unique<std::vector<fabric::LinkEvent>>()) == "");
  const std::vector<std::uint32_t> links = nics->fault_links("leaf0-spine1");
  REQUIRE(links == std::vector<std::uint32_t>{5});
  const auto to = wire::IpAddress::v4(0x0A00'0004);  // h3, behind the other leaf
  std::size_t other = 0;
  for (std::uint16_t port = 50'000; port < 50'040; ++port) {
    const std::uint16_t led = nics->port_past(5, 0, to, port);
    CHECK(nics->port_past(5, 0, to, led) == led);  // it does lead there
    other += led != port ? 1U : 0U;
  }
  CHECK(other > 5);  // by chance half of them
  CHECK(nics->port_past(5, 0, wire::IpAddress::v4(0x0A00'0002), 50'000) == 50'000);
}

}  // namespace
}  // namespace paceline::service::test
