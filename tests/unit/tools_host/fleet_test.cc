// Fleet files, where NICs of many hosts stand in a fabric, and what looks at them become.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/diagnose/testbed/fabric_places.h"
#include "tools/diagnose/testbed/look_file.h"
#include "tools/diagnose/testbed/testbed_evidence.h"
#include "tools/fleet/fleet_file.h"

namespace paceline::tools {

namespace {

config::Read<Fleet> read(const std::string& text) {
  return read_fleet_text("schema = 1\n" + text, "fleet.toml", "", {cc::algorithms(), {}});
}

// Two leaves of two NICs, two spines between.
constexpr const char* kFabric =
    "fabric = { topology = \"leaf_spine\", leaves = 2, hosts_per_leaf = 2, spines = 2 }\n";

looks::SeenNic nic(const std::string& name, const std::string& address, bool emulated = false) {
  looks::SeenNic out;
  out.name = name;
  out.emulated = emulated;
  out.status = {{"addresses", {address}}};
  return out;
}

SightedHost host(std::vector<looks::SeenNic> nics, std::uint64_t start = 1) {
  SightedHost out;
  out.host.start_unix_ns = start;
  out.host.nics = std::move(nics);
  return out;
}

SightedHost silent() {
  SightedHost out;
  out.error = "no daemon";
  return out;
}

// A queue pair to an IPv4 address that has sent so many bytes.
telemetry::QueuePairRecord pair_to(const std::string& address, std::uint64_t bytes) {
  telemetry::QueuePairRecord out;
  out.number = 7;
  out.peer_number = 9;
  const auto peer = wire::ip_address_from_text(address);
  for (std::size_t i = 0; i < out.peer.size(); ++i) {
    out.peer[i] = static_cast<std::uint8_t>(peer->bytes[i]);
  }
  out.tx_bytes = bytes;
  out.source_port = 50'000;
  return out;
}

struct World {
  World()
      : fleet(read(std::string(kFabric) + "[[host]]\nname = \"a\"\nurl = \"unix:/a\"\n").value) {}
  Fleet fleet;
  WorldPlan plan = plan_world(fleet.scenario);
};

std::vector<std::uint64_t> bytes_of(const diagnosis::PairEvidence& pair) {
  std::vector<std::uint64_t> out;
  for (const diagnosis::PairWindow& window : pair.windows) out.push_back(window.bytes);
  return out;
}

}  // namespace

TEST_CASE("a fleet file has hosts, and the fabric as a scenario has it", "[fleet]") {
  const auto fleet = read(std::string(kFabric) +
                          "[[host]]\nname = \"a\"\nurl = \"https://a.example:7471\"\n"
                          "token_file = \"a.token\"\nca = \"ca.pem\"\nnics = [\"x\", \"y\"]\n"
                          "places = [3, 0]\n"
                          "[[host]]\nname = \"b\"\nurl = \"http://[::1]:80/\"\n");
  REQUIRE(fleet.errors == std::vector<std::string>{});
  CHECK(fleet.value.name == "fleet");
  CHECK(fleet.value.has_fabric);
  REQUIRE(fleet.value.hosts.size() == 2);
  CHECK(fleet.value.hosts[0].daemon.host == "a.example");
  CHECK(fleet.value.hosts[0].daemon.port == 7471);
  CHECK(fleet.value.hosts[0].places == std::vector<std::uint32_t>{3, 0});
  CHECK(fleet.value.hosts[1].daemon.host == "::1");
  CHECK_FALSE(read("[[host]]\nname = \"a\"\nurl = \"unix:/a\"\n").value.has_fabric);
}

TEST_CASE("mistakes in a fleet file are told with their places", "[fleet]") {
  const auto refused = [](const std::string& text, const std::string& part) {
    const auto fleet = read(text);
    std::string all;
    for (const std::string& error : fleet.errors) all += error + "\n";
    CAPTURE(text, all);
    CHECK(all.find(part) != std::string::npos);
  };
  const std::string a = "[[host]]\nname = \"a\"\n";
  refused("", "fleet.toml:1:1: a fleet needs at least one [[host]]");
  refused("workload = {}\n" + a + "url = \"unix:/a\"\n", "fleet.toml:2:1: unknown key");
  refused(a + "url = \"unix:/a\"\nport = 3\n", "fleet.toml:5:1: unknown key");
  refused(a, "a [[host]] needs \"url\"");
  refused("[[host]]\nurl = \"unix:/a\"\n", "a [[host]] needs a name");
  refused(a + "url = \"unix:/a\"\n" + a + "url = \"unix:/b\"\n", "a second host named \"a\"");
  for (const char* const url : {"a:7471", "unix:a", "https://a", "https://a:0", "https://a:70000",
                                "http://:80", "http://a:80/x", "http://a b:80", "http://a:b:80"}) {
    refused(a + "url = \"" + url + "\"\n", "fleet.toml:4:7: host.url = ");
  }
  refused(a + "url = \"https://a:1\"\n", "https needs token_file");
  refused(a + "url = \"http://a:1\"\ntoken_file = \"t\"\n", "is of TLS");
  refused(a + "url = \"unix:/a\"\nplaces = [1]\n", "needs host.nics");
  refused(a + "url = \"unix:/a\"\nnics = [\"x\"]\nplaces = [1, 2]\n", "2 places for 1 NICs");
  refused(a + "url = \"unix:/a\"\nnics = [\"x\", \"x\"]\n", "it is there twice");
  refused(a + "url = \"unix:/a\"\nnics = []\n", "expected at least one");
  refused("transport = { mtu = 1024 }\n" + a + "url = \"unix:/a\"\n", "[fabric] is needed");
  refused("fabric = { hosts = 1 }\n" + a + "url = \"unix:/a\"\n", "fabric.hosts");
}

TEST_CASE("NICs stand at given places, by their addresses, or one after the other", "[fleet]") {
  const World world;
  const std::vector<PlacedHost> hosts{{"a", {}, {}}, {"b", {}, {}}};
  const auto names = [&](const std::vector<PlacedHost>& of, const std::vector<SightedHost>& look) {
    FabricPlaces places(of, world.plan.fabric);
    CHECK(places.open(look) == std::vector<std::string>{});
    std::vector<std::string> out;
    for (const auto& sight : places.sights(look)) out.push_back(sight.seen ? sight.name : "-");
    return out;
  };
  using Names = std::vector<std::string>;
  const std::vector<SightedHost> described{host({nic("x", "10.0.0.4"), nic("y", "10.0.0.1")}),
                                           host({nic("x", "10.0.0.2")})};
  CHECK(names(hosts, described) == Names{"a:y", "b:x", "-", "a:x"});
  const std::vector<SightedHost> others{host({nic("x", "192.168.0.9"), nic("y", "10.0.0.1")}),
                                        host({nic("x", "10.0.0.2")})};
  CHECK(names(hosts, others) == Names{"a:x", "a:y", "b:x", "-"});
  CHECK(names({{"a", {"y"}, {2}}, {"b", {}, {}}}, others) == Names{"-", "b:x", "a:y", "-"});
  CHECK(names({{"a", {"x"}, {2}}, {"b", {}, {}}}, {others[0], host({nic("x", "10.9.0.2")})}) ==
        Names{"-", "-", "a:x", "b:x"});
  const auto refused = [&](const std::vector<PlacedHost>& of, const std::vector<SightedHost>& look,
                           const std::string& part) {
    FabricPlaces places(of, world.plan.fabric);
    const auto errors = places.open(look);
    REQUIRE(!errors.empty());
    CAPTURE(errors);
    CHECK(errors.front().find(part) != std::string::npos);
  };
  refused({{"a", {"z"}, {}}, {"b", {}, {}}}, others, "host a: it has no NIC z; it has x y");
  refused({{"a", {"x"}, {4}}, {"b", {}, {}}}, others, "would stand at place 4; the fabric has 4");
  refused({{"a", {"x", "y"}, {1, 1}}, {"b", {}, {}}}, others, "stand both at place 1");
  refused(hosts, {others[0], host({nic("x", "10.0.0.1")})}, "the same address, 10.0.0.1");
  looks::SeenNic old = nic("x", "10.0.0.1");
  old.status = nlohmann::json::object();
  refused(hosts, {host({old}), others[1]}, "does not tell its addresses");
}

TEST_CASE("pairs go from host to host; a host that did not answer catches up", "[fleet]") {
  const World world;
  const std::vector<PlacedHost> hosts{{"a", {}, {}}, {"b", {}, {}}};
  FabricPlaces places(hosts, world.plan.fabric);
  TestbedEvidence evidence(world.fleet.scenario, world.plan.fabric);
  const auto a_with = [](std::uint64_t bytes, std::uint64_t start = 1) {
    looks::SeenNic out = nic("x", "192.168.0.1");
    if (bytes != 0) out.queue_pairs = {pair_to("192.168.0.3", bytes)};
    return host({out, nic("y", "192.168.0.2")}, start);
  };
  const SightedHost b = host({nic("x", "192.168.0.3")});
  REQUIRE(places.open({a_with(1000), b}) == std::vector<std::string>{});
  std::int64_t at = 0;
  const auto look = [&](const SightedHost& a, const SightedHost& other) {
    evidence.look(Picos{at++ * 1'000'000}, places.sights({a, other}));
  };
  look(a_with(1000), b);         // counted before
  look(a_with(1600), silent());  // the receiver's host need not answer
  look(silent(), b);
  look(silent(), b);
  look(a_with(1900), b);     // 100 a window
  look(a_with(50, 2), b);    // another service, from 0 on
  look(a_with(2050, 2), b);  // the same
  const diagnosis::Evidence out = evidence.finish();
  REQUIRE(out.pairs.size() == 1);
  CHECK(out.pairs[0].src == 0);
  CHECK(out.pairs[0].dst == 2);
  CHECK(bytes_of(out.pairs[0]) == std::vector<std::uint64_t>{600, 100, 100, 100, 50, 2000});
  CHECK(out.nics[2].name == "b:x");
  // Rules find a NIC's link by its name.
  CHECK(std::count_if(out.links.begin(), out.links.end(), [](const diagnosis::LinkEvidence& link) {
          return link.of_host && (link.first == "b:x" || link.second == "b:x");
        }) == 1);
  CHECK(out.nics[3].windows.size() == 6);
  // Over the spines: which one is not known where switches are real.
  CHECK(out.pairs[0].way.empty());
}

TEST_CASE("ways are known of emulated fabrics, and where there is only one", "[fleet]") {
  const World world;
  const bool emulated = GENERATE(false, true);
  const std::string far = GENERATE("10.0.0.2", "10.0.0.3");  // the same leaf, another one
  CAPTURE(emulated, far);
  const std::vector<PlacedHost> hosts{{"a", {}, {}}};
  FabricPlaces places(hosts, world.plan.fabric);
  TestbedEvidence evidence(world.fleet.scenario, world.plan.fabric);
  SightedHost all = host({nic("x", "10.0.0.1", emulated), nic("y", "10.0.0.2", emulated),
                          nic("z", "10.0.0.3", emulated)});
  all.host.nics[0].queue_pairs = {pair_to(far, 1)};
  REQUIRE(places.open({all}) == std::vector<std::string>{});
  evidence.look(Picos{0}, places.sights({all}));
  all.host.nics[0].queue_pairs = {pair_to(far, 10)};
  evidence.look(Picos{1'000'000}, places.sights({all}));
  const diagnosis::Evidence out = evidence.finish();
  REQUIRE(out.pairs.size() == 1);
  const std::size_t links = far == "10.0.0.2" ? 2 : emulated ? 4 : 0;
  CHECK(out.pairs[0].way.size() == links);
  CHECK(out.pairs[0].ack_way.size() == links);
}

TEST_CASE("looks are kept and read again; what is none is refused", "[fleet]") {
  LookFileHead head;
  REQUIRE(read_head_line(head_line({"fleet", "f.toml", "schema = 1\n\"\xC3\xA9\"", {"a=b"}}),
                         head) == "");
  CHECK(head.of == "fleet");
  CHECK(head.description == "schema = 1\n\"\xC3\xA9\"");
  CHECK(head.overrides == std::vector<std::string>{"a=b"});
  for (const char* const line : {"", "[]", "{}", R"({"kind": "paceline looks", "schema": 2})",
                                 R"({"kind": "paceline looks", "schema": 1, "of": "x"})"}) {
    CAPTURE(line);
    CHECK_FALSE(read_head_line(line, head).empty());
  }
  looks::SeenNic seen = nic("x", "10.0.0.1");
  seen.queue_pairs = {pair_to("10.0.0.2", 17)};
  const std::string line = look_line(Picos{5}, {host({seen}, 3), silent()});
  KeptLook look;
  REQUIRE(read_look_line(line, 2, look) == "");
  CHECK(look.at == Picos{5});
  CHECK(look.hosts[0].host.nics[0].queue_pairs[0].tx_bytes == 17);
  CHECK(look.hosts[1].error == "no daemon");
  CHECK(look_line(look.at, look.hosts) == line);
  for (const std::string& wrong :
       {std::string("7"), line.substr(0, 40), std::string(R"({"at_ps": -1, "hosts": [{}, {}]})"),
        std::string(R"({"at_ps": 1, "hosts": [{}]})"),
        std::string(R"({"at_ps": 1, "hosts": [{}, 3]})")}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_look_line(wrong, 2, look).empty());
  }
}

}  // namespace paceline::tools
