// NIC instances by their addresses, of which some have several ports.
#include "dataplane/service/cm/tables/nic_book.h"

#include <catch2/catch.hpp>

namespace paceline::service::cm {
namespace {

wire::IpAddress ip(const char* text) { return *wire::ip_address_from_text(text); }

// Two hosts, 10.0.0.1 and 10.0.0.2, with a second port each in 10.1.
NicBook two_ports_each(const std::uint8_t& second_up) {
  std::vector<attach::NicInfo> nics(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    nics[i].more_ports = 1;
    nics[i].gids[0] = wire::IpAddress::v4(0x0A00'0001 + i).bytes;
    nics[i].gid_kinds[0] = attach::GidKind::roce_v2_ipv4;
    nics[i].gids[1] = ip(i == 0 ? "fd00::a00:1" : "fd00::a00:2").bytes;
    nics[i].gid_kinds[1] = attach::GidKind::roce_v2_ipv6;
  }
  return {std::move(nics), [](std::size_t, const wire::IpAddress&) { return true; },
          [&](std::size_t nic, std::uint32_t port) { return nic != 0 || port != 2 || second_up; }};
}

}  // namespace

TEST_CASE("addresses of all ports belong to their instance, each to its port") {
  std::uint8_t up = 1;
  const NicBook book = two_ports_each(up);
  CHECK(book.owner(ip("10.1.0.2")) == std::size_t{1});
  CHECK(book.owner(ip("fd00::a01:1")) == std::size_t{0});
  CHECK_FALSE(book.owner(ip("10.2.0.1")));
  CHECK(book.place_of(1, ip("10.0.0.2")).port == 1);
  CHECK(book.place_of(1, ip("10.1.0.2")).port == 2);
  CHECK(book.place_of(1, ip("10.1.0.2")).index == 0);
  CHECK(book.place_of(0, ip("fd00::a01:1")).index == 1);
  CHECK(book.up(0, ip("10.1.0.1")));
  up = 0;
  CHECK_FALSE(book.up(0, ip("10.1.0.1")));
  CHECK(book.up(0, ip("10.0.0.1")));
}

TEST_CASE("an instance reaches an address from the port of that address's subnet") {
  const std::uint8_t up = 1;
  const NicBook book = two_ports_each(up);
  CHECK(book.source_for(0, ip("10.0.0.2")) == ip("10.0.0.1"));
  CHECK(book.source_for(0, ip("10.1.0.2")) == ip("10.1.0.1"));
  CHECK(book.source_for(0, ip("fd00::a01:2")) == ip("fd00::a01:1"));
  CHECK(book.source_for(0, ip("192.168.0.1")) == ip("10.0.0.1"));
}

}  // namespace paceline::service::cm
