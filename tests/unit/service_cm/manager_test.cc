// Ids of several programs over two NIC instances, with their messages between them, and no program.
#include <catch2/catch.hpp>

#include <cerrno>

#include "dataplane/service/cm/manager/connection_manager.h"
#include "dataplane/service/cm/tables/port_table.h"

namespace paceline::service::cm {

namespace {

constexpr Nanos kNow{1'000'000};

SocketAddress at(std::uint32_t host, std::uint16_t port) {
  SocketAddress out;
  out.family = AF_INET;
  out.ip = wire::IpAddress::v4(host == 0 ? 0 : 0x0A00'0000 + host);
  out.port = port;
  return out;
}

// h0 is 10.0.0.1, h1 is 10.0.0.2.
struct World {
  World() : manager(book(), 1) {}
  NicBook book() {
    std::vector<attach::NicInfo> nics(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      nics[i].guid = i + 1;
      nics[i].mtu = 1024;
      nics[i].gids[0] = wire::IpAddress::v4(0x0A00'0001 + i).bytes;
      nics[i].gid_kinds[0] = attach::GidKind::roce_v2_ipv4;
    }
    return {std::move(nics), [](std::size_t, const wire::IpAddress&) { return true; },
            [this](std::size_t nic, std::uint32_t) { return up[nic]; }};
  }
  CmId& make(std::uint32_t channel, PortSpace space = PortSpace::tcp, IdType type = IdType::rc) {
    std::uint32_t number = 0;
    REQUIRE(manager.create(channel, ++cookie, space, type, number) == 0);
    return found(channel, number);
  }
  CmId& found(std::uint32_t channel, std::uint32_t number) {
    CmId* out = nullptr;
    REQUIRE(manager.find(channel, number, out) == 0);
    return *out;
  }
  CmId& listener(std::uint32_t channel, std::uint16_t port, std::uint32_t backlog = 8) {
    CmId& id = make(channel);
    REQUIRE(manager.bind(id, at(0, port)) == 0);
    REQUIRE(manager.listen(id, backlog) == 0);
    return id;
  }
  CmId& routed(std::uint32_t channel, std::uint16_t port) {
    CmId& id = make(channel);
    REQUIRE(manager.resolve_address(id, {}, at(2, port)) == 0);
    REQUIRE(manager.resolve_route(id) == 0);
    REQUIRE(event(channel).kind == EventKind::address_resolved);
    REQUIRE(event(channel).kind == EventKind::route_resolved);
    return id;
  }
  Event event(std::uint32_t channel) {
    const auto out = manager.next_event(channel);
    REQUIRE(out.has_value());
    return *out;
  }

  bool up[2] = {true, true};
  std::uint64_t cookie = 0;
  ConnectionManager manager;
};

}  // namespace

TEST_CASE("a program connects to another by its address, and both learn of it") {
  World w;
  const std::uint32_t server = w.manager.open_channel(1);
  const std::uint32_t client = w.manager.open_channel(0);
  CmId& listener = w.listener(server, 7174);
  CmId& caller = w.routed(client, 7174);
  REQUIRE(*caller.nic() == 0);
  REQUIRE(caller.source().ip == wire::IpAddress::v4(0x0A00'0001));
  REQUIRE(caller.source().port != 0);
  w.manager.take_woken();
  REQUIRE(w.manager.connect(kNow, caller, {}) == 0);
  REQUIRE(w.manager.take_woken() == std::vector<std::uint32_t>{server});
  const Event request = w.event(server);
  REQUIRE(request.kind == EventKind::connect_request);
  REQUIRE(request.cookie == listener.cookie());
  CmId& accepted = w.found(server, request.id);
  REQUIRE(accepted.destination().port == caller.source().port);
  accepted.call_it(77);
  REQUIRE(w.manager.accept(kNow, accepted, Offer{}, 0) == 0);
  REQUIRE(w.event(client).kind == EventKind::connect_response);
  REQUIRE(w.manager.accept(kNow, caller, std::nullopt, 0) == 0);
  const Event established = w.event(server);
  REQUIRE((established.kind == EventKind::established && established.cookie == 77));
  SECTION("a program that ends takes its ids with it, and the other is told") {
    w.manager.close_channel(kNow, client);
    REQUIRE(w.event(server).kind == EventKind::disconnected);
    w.manager.close_channel(kNow, server);
    REQUIRE(w.manager.deadline().count == kNeverNanos.count);
  }
  SECTION("timewait is over by the clock") {
    REQUIRE(w.manager.disconnect(kNow, caller) == 0);
    REQUIRE(w.event(server).kind == EventKind::disconnected);
    REQUIRE(w.manager.disconnect(kNow, accepted) == 0);
    REQUIRE(w.event(client).kind == EventKind::disconnected);
    w.manager.expire(w.manager.deadline());
    REQUIRE(w.event(server).kind == EventKind::timewait_exit);
    REQUIRE(w.event(client).kind == EventKind::timewait_exit);
    REQUIRE(w.manager.deadline().count == kNeverNanos.count);
  }
}

TEST_CASE("a lost link loses messages; they come when it is back, or the wait is over") {
  World w;
  const std::uint32_t channel = w.manager.open_channel({});
  w.listener(channel, 1);
  CmId& caller = w.routed(channel, 1);
  w.up[1] = false;
  REQUIRE(w.manager.connect(kNow, caller, {}) == 0);
  REQUIRE_FALSE(w.manager.has_events(channel));
  SECTION("it is back") {
    w.up[1] = true;
    w.manager.expire(w.manager.deadline());
    REQUIRE(w.event(channel).kind == EventKind::connect_request);
    // The same request once more makes no second id.
    w.manager.expire(w.manager.deadline());
    REQUIRE_FALSE(w.manager.has_events(channel));
  }
  SECTION("it stays away") {
    while (!w.manager.has_events(channel)) w.manager.expire(w.manager.deadline());
    const Event told = w.event(channel);
    REQUIRE((told.kind == EventKind::unreachable && told.status == -ETIMEDOUT));
  }
}

TEST_CASE("datagrams look their peer up, and are told what to send with") {
  World w;
  const std::uint32_t channel = w.manager.open_channel({});
  CmId& listener = w.make(channel, PortSpace::udp, IdType::ud);
  REQUIRE(w.manager.bind(listener, at(2, 9)) == 0);
  REQUIRE(w.manager.listen(listener, 0) == 0);
  const auto ask = [&](std::uint16_t port) {
    CmId& caller = w.make(channel, PortSpace::udp, IdType::ud);
    REQUIRE(w.manager.resolve_address(caller, {}, at(2, port)) == 0);
    REQUIRE(w.manager.resolve_route(caller) == 0);
    w.event(channel);
    w.event(channel);
    REQUIRE(w.manager.connect(kNow, caller, {}) == 0);
  };
  ask(9);
  CmId& asked = w.found(channel, w.event(channel).id);
  Offer offer;
  offer.qp_number = 55;
  REQUIRE(w.manager.accept(kNow, asked, offer, 0) == 0);
  const Event told = w.event(channel);
  REQUIRE(
      (told.kind == EventKind::established && told.qp_number == 55 && told.qkey == 0x0123'4567));
  REQUIRE(told.path.destination == wire::IpAddress::v4(0x0A00'0002));
  ask(10);
  const Event nobody = w.event(channel);
  REQUIRE((nobody.kind == EventKind::unreachable && nobody.status == 1));
}

TEST_CASE("events go with their id, and to where it goes") {
  World w;
  const std::uint32_t channel = w.manager.open_channel({});
  const std::uint32_t other = w.manager.open_channel({});
  CmId& id = w.make(channel);
  const std::uint32_t number = id.number();
  REQUIRE(w.manager.resolve_address(id, {}, at(2, 1)) == 0);
  std::uint32_t reported = 9;
  REQUIRE(w.manager.migrate(channel, other, number, reported) == 0);
  REQUIRE(reported == 0);
  REQUIRE_FALSE(w.manager.has_events(channel));
  REQUIRE(w.event(other).kind == EventKind::address_resolved);
  REQUIRE(w.manager.resolve_route(id) == 0);
  REQUIRE(w.manager.destroy(kNow, channel, number, reported) == EINVAL);
  REQUIRE(w.manager.destroy(kNow, other, number, reported) == 0);
  REQUIRE(reported == 1);
  REQUIRE_FALSE(w.manager.has_events(other));
  REQUIRE(w.manager.destroy(kNow, other, number, reported) == ENOENT);
}

TEST_CASE("a port belongs to whoever has it, host by host") {
  PortTable ports(1);
  const auto take = [&](std::uint32_t id, const SocketAddress& address, Visible where, bool reuse) {
    PortClaim claim;
    claim.id = id;
    claim.address = address;
    claim.where = where;
    claim.reuse = reuse;
    std::uint16_t port = address.port;
    return ports.take(claim, port);
  };
  REQUIRE(take(1, at(0, 5), 0, false) == 0);
  REQUIRE(take(2, at(0, 5), 1, false) == 0);
  REQUIRE(take(3, at(0, 5), {}, false) == EADDRNOTAVAIL);
  REQUIRE(take(3, at(1, 5), 0, false) == EADDRNOTAVAIL);
  REQUIRE(take(3, at(1, 6), 0, true) == 0);
  REQUIRE(take(4, at(1, 6), 0, false) == EADDRINUSE);
  REQUIRE(take(4, at(1, 6), 0, true) == 0);
  REQUIRE(ports.listen(4) == EADDRINUSE);
  REQUIRE(ports.listen(1) == 0);
  REQUIRE(*ports.listener(PortSpace::tcp, 5, 0, wire::IpAddress::v4(0x0A00'0001)) == 1);
  REQUIRE_FALSE(ports.listener(PortSpace::tcp, 5, 1, wire::IpAddress::v4(0x0A00'0002)));
  REQUIRE_FALSE(ports.listener(PortSpace::udp, 5, 0, wire::IpAddress::v4(0x0A00'0001)));
  ports.drop(1);
  REQUIRE_FALSE(ports.listener(PortSpace::tcp, 5, 0, wire::IpAddress::v4(0x0A00'0001)));
  REQUIRE(ports.listen(99) == EINVAL);
  REQUIRE(ports.size() == 3);
}

}  // namespace paceline::service::cm
