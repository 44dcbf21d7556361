// Ports as NIC instances: what a GID leads to, and a conversation across an Ethernet.
#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/service/nics/port_nics.h"
#include "tests/support/roce_engine.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::service {
namespace {

using neighbour::test::host_config;
using neighbour::test::Hub;

// One host of the hub, as a service has it.
struct PortHost {
  PortHost(Hub& hub, std::uint32_t n, const neighbour::HostConfig& config)
      : wire(hub.port(n - 1)),
        port(wire, config, Random(5, n)),
        nics({{"p",
               {{&port}},
               ::paceline::test::roce_engine_config({}, {}, port.info(), cc::AlgorithmId::fixed)}},
             nullptr) {}
  PortHost(Hub& hub, std::uint32_t n) : PortHost(hub, n, host_config(n)) {}

  neighbour::test::HubPort& wire;
  neighbour::ResolvingPort port;
  PortNics nics;
};

wire::IpAddress ip(const char* text) { return wire::ip_address_from_text(text).value(); }

TEST_CASE("a GID leads on the link, through a gateway, or nowhere") {
  Hub hub(2);
  PortHost host(hub, 1);
  const auto leads = [&](const char* to) { return host.nics.path_to(0, ip(to)).has_value(); };
  CHECK(leads("10.0.0.2"));
  CHECK(leads("fd00::2"));
  CHECK(leads("fe80::1"));         // on every link
  CHECK_FALSE(leads("10.0.1.2"));  // no gateway
  CHECK_FALSE(leads("fd01::2"));
  CHECK_FALSE(leads("10.0.0.1"));  // a port does not hear itself
  CHECK_FALSE(leads("10.0.0.255"));
  CHECK_FALSE(leads("ff02::1"));
  CHECK_FALSE(host.nics.path_to_local(0, 1).has_value());

  neighbour::HostConfig config = host_config(2);
  config.addresses.pop_back();  // IPv4 alone
  config.gateway_v4 = ip("10.0.0.9");
  PortHost behind(hub, 2, config);
  CHECK(behind.nics.path_to(0, ip("192.168.7.7")).value().ip == ip("192.168.7.7"));
  CHECK_FALSE(behind.nics.path_to(0, ip("fd00::1")).has_value());
  CHECK_FALSE(behind.nics.path_to(0, ip("fe80::1")).has_value());  // nothing to come from
}

struct CountingDevice final : PortDevice {
  void count(PortReport& report) const override { report.known = true; }
  void tell_arrivals(ArrivalReport&) const override {}
  LoanReport loans() const override { return {5, 4, 3, 2, 1}; }
};

TEST_CASE("a port tells of the payloads that it has lent, where there is a device") {
  Hub hub(2);
  PortHost without(hub, 2);
  CHECK_FALSE(without.nics.loans(0).has_value());
  CountingDevice device;
  neighbour::ResolvingPort port(hub.port(0), host_config(1), Random(5, 1));
  PortNics nics(
      {PortNic{"p",
               {{&port, &device}},
               ::paceline::test::roce_engine_config({}, {}, port.info(), cc::AlgorithmId::fixed),
               "",
               ""}},
      nullptr);
  NicSetReport report = nics.blank_report();
  nics.describe(Picos{1}, report);
  for (const LoanReport& loans : {nics.loans(0).value(), report.nics[0].loans}) {
    CHECK(loans.sent == 5);
    CHECK(loans.copied == 4);
    CHECK(loans.recalled == 3);
    CHECK(loans.overdue == 2);
    CHECK(loans.received == 1);
  }
}

TEST_CASE("a port tells its name, its addresses and its rate, and hears the world") {
  Hub hub(1);
  PortHost host(hub, 1);
  const attach::NicInfo& info = host.nics.nic(0).info;
  CHECK(std::string(info.name.data()) == "p");
  CHECK(info.local_id == 0);
  CHECK(info.rate_mbps == 10'000);
  CHECK(info.gids[0] == ip("10.0.0.1").bytes);
  CHECK(info.gids[1] == ip("fd00::1").bytes);
  CHECK(info.mac == wire::MacAddress::local(1).bytes);
  CHECK(host.nics.receives_from_outside());
  std::vector<fabric::LinkEvent> events;
  CHECK(host.nics.plan_fault({.target = "p", .action = "down"}, events) ==
        "target: faults are of emulated links, and these are ports of the machine; "
        "`ip link set DEVICE down` takes one down");
}

}  // namespace
}  // namespace paceline::service
