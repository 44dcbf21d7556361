// Faults of a running service's emulated links: all of a request or none, in the status, and to the
// programs whose port loses its link.
#include <infiniband/verbs.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/service/controlled_service.h"

using namespace paceline;
using namespace paceline::test;
using Json = nlohmann::json;

namespace {

constexpr const char* kTwoApart = R"(
schema = 1
[fabric]
hosts = 2
ports = 2
rate = "25Gb/s"
delay = "1us"
[nic]
shape = "separate"
)";

Json fault_of(const std::string& target, const std::string& action) {
  return {{"target", target}, {"action", action}};
}

// Status of NIC `nic`, once `holds` is true of it; null: that does not come.
template <class Holds>
Json nic_when(ControlClient& client, std::size_t nic, Holds holds) {
  for (int i = 0; i < 10'000; ++i) {
    Json status = client.good("status").at("status").at("workers")[0].at("nics")[nic];
    if (holds(status)) return status;
    ::usleep(1000);
  }
  return {};
}

}  // namespace

TEST_CASE("faults: all of a request, or none", "[threads]") {
  ControlledService service;
  ControlClient client(service.control->path());
  const auto up = [](bool is) { return [is](const Json& nic) { return nic.at("up") == is; }; };
  const auto refused = client.errors(
      "fault",
      {{"events", {fault_of("h0", "down"), fault_of("h2", "down"), fault_of("h1.1", "up")}}});
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].starts_with("events[1].target: no NIC or port \"h2\""));
  CHECK(refused[1].starts_with("events[2].target: no NIC or port \"h1.1\""));
  // The next one has an effect, and the one before had none.
  CHECK(client.good("fault", {{"events", {fault_of("h1", "down")}}}).at("links") == 1);
  CHECK_FALSE(nic_when(client, 1, up(false)).is_null());
  CHECK_FALSE(nic_when(client, 0, up(true)).is_null());
  CHECK(client.good("fault", {{"events", {fault_of("leaf0", "clear")}}}).at("links") == 2);
  CHECK_FALSE(nic_when(client, 1, up(true)).is_null());
}

TEST_CASE("faults: the links of a request have a limit", "[threads]") {
  ControlledService service(hosts_from("[fabric]\nhosts = 64\nrate = \"1Gb/s\"\n"));
  ControlClient client(service.control->path());
  const std::vector<Json> many(400, fault_of("leaf0", "clear"));
  CHECK(
      client.errors("fault", {{"events", many}}) ==
      std::vector<std::string>{"events: 307200 events of links, allowed are 65536 in one request"});
}

TEST_CASE("faults: the status tells those in force and to come, until they are taken back",
          "[threads]") {
  ControlledService service(
      hosts_from("[fabric]\nhosts = 3\nrate = \"1Gb/s\"\nflow_control = \"pfc\"\n"));
  ControlClient client(service.control->path());
  const auto told = [&] { return client.good("status").at("status").at("faults"); };
  CHECK(told() == Json::array());
  Json limit = fault_of("h1", "pcie_limit");
  limit.update({{"severity", 4}, {"for_us", 3e9}});
  Json later = fault_of("h2", "down");
  later["after_us"] = 3e9;
  client.good("fault", {{"events", {limit, later}}});
  const Json two = told();
  REQUIRE(two.size() == 2);
  CHECK(two[0].at("target") == "h1");
  CHECK(two[0].at("action") == "pcie_limit");
  CHECK(two[0].at("severity") == 4);
  CHECK(two[0].at("in_force") == true);
  CHECK(two[0].at("ends_us") > 2e9);
  CHECK(two[1].at("in_force") == false);
  CHECK(two[1].at("begins_us") > 2e9);
  CHECK(two[1].at("ends_us").is_null());
  client.good("fault", {{"events", {fault_of("h1", "clear")}}});
  REQUIRE(told().size() == 1);
  CHECK(told()[0].at("target") == "h2");
  client.good("fault", {{"events", {fault_of("leaf0", "clear")}}});  // of all links: h2's, too
  CHECK(told() == Json::array());
}

TEST_CASE("faults: pauses and classes of a NIC are counted", "[threads]") {
  ControlledService service(
      hosts_from("[fabric]\nhosts = 2\nrate = \"1Gb/s\"\nflow_control = \"pfc\"\n"));
  ControlClient client(service.control->path());
  const auto pausing = [](const Json& nic) { return nic.at("pausing_us") > 0; };
  CHECK(client.good("status")["status"]["workers"][0]["nics"][1].at("pausing_us") == 0);
  client.good("fault", {{"events", {fault_of("h1", "pfc_storm")}}});
  CHECK(nic_when(client, 1, pausing).at("reclassed_packets") == 0);
  CHECK(client.good("status")["status"]["workers"][0]["nics"][0].at("pausing_us") == 0);
}

TEST_CASE("faults: programs hear of their own port alone", "[threads]") {
  ControlledService service(hosts_from(kTwoApart));
  ControlClient control(service.control->path());
  AttachClient first(service.running.path());
  AttachClient other(service.running.path());
  REQUIRE(first.open("h0p0"));
  REQUIRE(other.open("h0p1"));
  CHECK(first.info().up == 1);
  control.good("fault", {{"events", {fault_of("h0.0", "down")}}});
  CHECK(first.notice().event == IBV_EVENT_PORT_ERR);
  AttachClient late(service.running.path());
  REQUIRE(late.open("h0p0"));
  CHECK(late.info().up == 0);
  control.good("fault", {{"events", {fault_of("h0.0", "up"), fault_of("h0.1", "down")}}});
  CHECK(first.notice().event == IBV_EVENT_PORT_ACTIVE);
  CHECK(first.notice().event == IBV_EVENT_GID_CHANGE);
  CHECK(late.notice().event == IBV_EVENT_PORT_ACTIVE);
  CHECK(other.notice().event == IBV_EVENT_PORT_ERR);  // the first that it hears
  CHECK(first.notice(0).event == 0xFFFF'FFFF);
}

TEST_CASE("faults: one port of a bonded NIC is no event, and shows", "[threads]") {
  ControlledService service(
      hosts_from("[fabric]\nhosts = 2\nports = 2\nrate = \"25Gb/s\"\ndelay = \"1us\"\n"
                 "[transport]\nreliability = \"selective\"\n"));
  ControlClient control(service.control->path());
  AttachClient program(service.running.path());
  REQUIRE(program.open("h1"));
  const auto ports = [](bool one, bool two) {
    return [=](const Json& nic) { return nic.at("ports_up") == Json{one, two}; };
  };
  CHECK_FALSE(nic_when(control, 1, ports(true, true)).is_null());
  control.good("fault", {{"events", {fault_of("h1.0", "down")}}});
  CHECK(nic_when(control, 1, ports(false, true)).at("up") == true);
  control.good("fault", {{"events", {fault_of("h1.1", "down")}}});
  CHECK_FALSE(nic_when(control, 1, ports(false, false)).is_null());
  CHECK(program.notice().event == IBV_EVENT_PORT_ERR);  // the first
  control.good("fault", {{"events", {fault_of("plane1", "up")}}});
  CHECK(program.notice().event == IBV_EVENT_PORT_ACTIVE);
  CHECK(nic_when(control, 1, ports(false, true)).at("up") == true);
}

TEST_CASE("faults: a device of several ports tells which one it is", "[threads]") {
  ControlledService service(
      hosts_from("[fabric]\nhosts = 2\nports = 2\nrate = \"25Gb/s\"\ndelay = \"1us\"\n"
                 "[nic]\nshape = \"multiport\"\n"));
  ControlClient control(service.control->path());
  AttachClient first(service.running.path());
  REQUIRE(first.open("h0"));
  CHECK(attach::ports_of(first.info()) == 2);
  CHECK(first.info().up == 3);
  const auto expect = [](AttachClient& program, std::uint32_t event, std::uint32_t port) {
    const attach::AsyncNotice notice = program.notice();
    CHECK(notice.event == event);
    CHECK(notice.handle == port);
  };
  control.good("fault", {{"events", {fault_of("h0.0", "down")}}});
  expect(first, IBV_EVENT_PORT_ERR, 1);
  AttachClient late(service.running.path());
  REQUIRE(late.open("h0"));
  CHECK(late.info().up == 2);
  CHECK(nic_when(control, 0, [](const Json& nic) {
          return nic.at("ports_up") == Json{false, true};
        }).at("up") == true);
  control.good("fault", {{"events", {fault_of("h0.1", "down"), fault_of("h0.0", "up")}}});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> told;
  for (int i = 0; i < 3; ++i) {
    const attach::AsyncNotice notice = late.notice();
    told.emplace_back(notice.event, notice.handle);
  }
  std::sort(told.begin(), told.end());
  decltype(told) expected{
      {IBV_EVENT_PORT_ACTIVE, 1}, {IBV_EVENT_PORT_ERR, 2}, {IBV_EVENT_GID_CHANGE, 1}};
  std::sort(expected.begin(), expected.end());
  CHECK(told == expected);
}
