#include "dataplane/driver/ports/testbed_setup.h"

#include <catch2/catch.hpp>

#include "dataplane/config/testbed/testbed_reader.h"

namespace paceline {
namespace {

// The readers of files and the parts that they configure each say what holds when nothing is said.
TEST_CASE("testbed: defaults of the file are those of the parts") {
  config::HostConfig said;
  said.addresses.push_back({wire::IpAddress::v4(0x0A000001), 24});
  const neighbour::HostConfig host = host_config_of(said, wire::MacAddress::local(1));
  CHECK(neighbour::problems(host).empty());
  const neighbour::HostConfig plain;
  CHECK(host.ip_mtu == plain.ip_mtu);
  CHECK(host.vlan_id == plain.vlan_id);
  CHECK(host.answer_echo == plain.answer_echo);
  CHECK(host.echo_per_second == plain.echo_per_second);
  CHECK(host.announcements == plain.announcements);
  CHECK(host.limits.capacity == plain.limits.capacity);
  CHECK(host.timing.retransmit == plain.timing.retransmit);
  CHECK(host.timing.reachable == plain.timing.reachable);
  CHECK(host.timing.failed_hold == plain.timing.failed_hold);
  CHECK(host.timing.stale_lifetime == plain.timing.stale_lifetime);
}

// Whatever a file may say within its ranges, the host stack takes by itself.
TEST_CASE("testbed: the ranges of the file lie within those of the host stack") {
  for (const bool most : {false, true}) {
    config::HostConfig said;
    said.addresses.push_back({wire::IpAddress::v4(0x0A000001), 24});
    const auto with = [&](const char* key) {
      for (const config::KeySpec& spec : config::host_keys()) {
        if (spec.name() == key) return most ? spec.max : spec.min;
      }
      FAIL("no key " << key);
      return 0.0;
    };
    const auto number = [&](const char* key) { return static_cast<std::uint32_t>(with(key)); };
    const auto time = [&](const char* key) { return Picos{static_cast<std::int64_t>(with(key))}; };
    said.vlan = number("vlan");
    said.ip_mtu = number("ip_mtu");
    said.echo_per_second = number("echo_per_second");
    said.announcements = number("announcements");
    said.neighbours = number("neighbours");
    said.retransmit = time("retransmit");
    said.reachable = time("reachable");
    said.failed_hold = time("failed_hold");
    said.stale_lifetime = time("stale_lifetime");
    const auto problems = neighbour::problems(host_config_of(said, wire::MacAddress::local(1)));
    for (const std::string& line : problems) UNSCOPED_INFO(line);
    CHECK(problems.empty());
  }
}

}  // namespace
}  // namespace paceline
