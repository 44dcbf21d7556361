// Queue pair 1 of two ports on one Ethernet.
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>

#include "dataplane/service/adapters/management_pair.h"
#include "dataplane/service/nics/port_nics.h"
#include "tests/support/roce_engine.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::service {
namespace {

using neighbour::test::host_config;
using neighbour::test::Hub;

struct ManagedPort {
  ManagedPort(Hub& hub, std::uint32_t n)
      : wire(hub.port(n - 1)),
        port(wire, host_config(n), Random(9, n)),
        nics({{"p",
               {{&port}},
               ::paceline::test::roce_engine_config({}, {}, port.info(), cc::AlgorithmId::fixed)}},
             nullptr),
        bell(std::make_shared<const attach::Descriptor>(::eventfd(0, EFD_NONBLOCK))),
        pair(std::make_unique<ManagementPair>(Picos{0}, *nics.nic(0).engine, 99, bell)) {}

  void turn(Picos now) {
    wire.set_now(now);
    nics.touch(0);
    nics.turn(now, Picos{0});
    if (pair != nullptr) pair->collect(now);
  }
  bool rung() const {
    std::uint64_t rings = 0;
    return ::read(bell->get(), &rings, sizeof rings) == sizeof rings;
  }

  neighbour::test::HubPort& wire;
  neighbour::ResolvingPort port;
  PortNics nics;
  ManagementPair::Bell bell;
  std::unique_ptr<ManagementPair> pair;
};

struct Ethernet {
  Ethernet() : hub(2), a(hub, 1), b(hub, 2) {}
  void run() {
    for (int i = 0; i < 2000; ++i) {
      now = now + picos_from_micros(10);
      a.turn(now);
      b.turn(now);
    }
  }
  bool send(ManagedPort& from, const wire::IpAddress& to, unsigned first) {
    std::array<std::byte, ManagementPair::kDatagramBytes> bytes{};
    bytes[0] = static_cast<std::byte>(first);
    bytes[255] = std::byte{0xEE};
    const auto path = from.nics.path_to(0, to);
    REQUIRE(path.has_value());
    return from.pair->send(now, *path, bytes);
  }

  Hub hub;
  ManagedPort a;
  ManagedPort b;
  Picos now{0};
};

}  // namespace

TEST_CASE("a management datagram arrives with the addresses that it went by") {
  Ethernet net;
  const bool ipv6 = GENERATE(false, true);
  const auto address = [&](std::uint32_t n) {
    return ipv6 ? neighbour::test::v6(n) : neighbour::test::v4(n);
  };
  REQUIRE(net.send(net.a, address(2), 7));
  net.run();
  REQUIRE(net.b.rung());
  REQUIRE_FALSE(net.b.rung());
  ManagementPair::Arrival arrival;
  REQUIRE(net.b.pair->take(arrival));
  REQUIRE(arrival.source == address(1));
  REQUIRE(arrival.destination == address(2));
  REQUIRE((arrival.bytes[0] == std::byte{7} && arrival.bytes[255] == std::byte{0xEE}));
  REQUIRE_FALSE(net.b.pair->take(arrival));
  REQUIRE(net.b.pair->lost() == 0);
  REQUIRE(net.a.nics.nic(0).engine->counters().rx_data_packets == 0);
}

TEST_CASE("more datagrams than there is room for are lost and counted, and later ones come") {
  Ethernet net;
  constexpr unsigned kSent = 1000;
  unsigned accepted = 0;
  for (unsigned i = 0; i < kSent; ++i) {
    accepted += net.send(net.a, neighbour::test::v4(2), i) ? 1 : 0;
    if (i % 64 == 0) net.run();
  }
  net.run();
  ManagementPair::Arrival arrival;
  unsigned came = 0;
  while (net.b.pair->take(arrival)) ++came;
  REQUIRE(came == 128);
  REQUIRE(came + net.b.pair->lost() == accepted);
  REQUIRE(net.send(net.a, neighbour::test::v4(2), 1));
  net.run();
  REQUIRE(net.b.pair->take(arrival));
}

TEST_CASE("queue pair 1 takes datagrams of 256 bytes from queue pair 1, and no others") {
  Ethernet net;
  transport::Engine& engine = *net.a.nics.nic(0).engine;
  // A program's queue pair with the Q_Key: it cannot be told by that.
  transport::QpConfig config;
  config.type = transport::QpType::ud;
  config.max_inline = ManagementPair::kDatagramBytes;
  transport::CompletionQueue queue(16);
  config.send_cq = config.receive_cq = &queue;
  const std::uint32_t program = engine.create_qp(config);
  transport::QpAttributes a;
  a.qkey = transport::kManagementQkey;
  using transport::QpState;
  for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
    a.state = to;
    const std::uint32_t needed =
        transition_rule(transport::QpType::ud, engine.view().state_of(program), to).required;
    REQUIRE(engine.modify_qp(net.now, program, a, needed | transport::qp_attribute::state).ok());
  }
  transport::WorkRequest request;
  const std::array<std::byte, ManagementPair::kDatagramBytes> bytes{};
  request.inline_bytes = bytes.data();
  request.address_handle =
      engine.create_address_handle(net.now, 0, *net.a.nics.path_to(0, neighbour::test::v4(2)));
  request.target_qp_number = transport::kManagementQpNumber;
  request.target_qkey = transport::kManagementQkey;
  std::uint64_t sent = 0;
  for (const std::uint64_t length : {std::uint64_t{256}, std::uint64_t{255}, std::uint64_t{0}}) {
    request.length = length;
    REQUIRE(engine.post_send(net.now, program, request) == transport::PostResult::ok);
    ++sent;
  }
  net.run();
  ManagementPair::Arrival arrival;
  REQUIRE_FALSE(net.b.pair->take(arrival));
  REQUIRE_FALSE(net.b.rung());
  REQUIRE(net.b.pair->lost() == sent);
  engine.destroy_qp(net.now, program);
}

TEST_CASE("a port speaks with more peers than it keeps address handles for") {
  Ethernet net;
  for (std::uint32_t n = 3; n < 250; ++n) {
    net.send(net.a, neighbour::test::v4(n), n);  // nobody is there
    net.run();
  }
  REQUIRE(net.send(net.a, neighbour::test::v4(2), 1));
  net.run();
  ManagementPair::Arrival arrival;
  REQUIRE(net.b.pair->take(arrival));
}

TEST_CASE("without its owner queue pair 1 is not there") {
  Ethernet net;
  net.b.pair.reset();
  REQUIRE(net.send(net.a, neighbour::test::v4(2), 1));
  net.run();
  REQUIRE(net.b.nics.nic(0).engine->counters().no_queue_pair == 1);
}

}  // namespace paceline::service
