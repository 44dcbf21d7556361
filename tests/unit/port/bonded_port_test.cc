#include "dataplane/port/bonded_port.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "dataplane/port/packet_pool.h"
#include "dataplane/wire/packet/header_template.h"

namespace paceline {
namespace {

// One link: takes a packet when the wire is free, and keeps what it took.
class Plane final : public Port {
 public:
  explicit Plane(PacketPool& pool) : pool_(pool) {}

  std::size_t rx(std::span<Packet*> burst) override {
    std::size_t n = 0;
    while (n < burst.size() && !arrived.empty()) {
      burst[n++] = arrived.front();
      arrived.erase(arrived.begin());
    }
    return n;
  }
  std::size_t tx(Picos now, std::uint8_t, std::span<Packet* const> burst) override {
    if (burst.empty() || !link || paused || busy > now) return 0;
    sent.push_back(burst[0]);
    busy = now + Picos{100};
    return 1;
  }
  Picos rx_ready_at() const override { return arrived.empty() ? kNever : Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return paused || !link ? kNever : busy; }
  std::uint8_t links_up() const override { return link ? 1 : 0; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override {
    PortInfo info;
    info.link_rate = rate_from_gbps(50);
    return info;
  }

  std::vector<Packet*> arrived, sent;
  Picos busy{0};
  bool link = true, paused = false;

 private:
  PacketPool& pool_;
};

class Bond {
 public:
  explicit Bond(std::size_t planes, std::optional<std::uint16_t> first_subnet = {}) {
    std::vector<Port*> ports;
    for (std::size_t i = 0; i < planes; ++i) ports.push_back(&planes_.emplace_back(pool_));
    port_ = first_subnet ? std::make_unique<BondedPort>(ports, *first_subnet)
                         : std::make_unique<BondedPort>(ports);
  }

  Packet* packet(std::uint32_t from, std::uint32_t to, std::uint16_t source_port) {
    wire::FlowAddressing flow;
    flow.source = wire::IpAddress::v4(from);
    flow.destination = wire::IpAddress::v4(to);
    flow.udp_source_port = source_port;
    const wire::HeaderTemplate header = wire::make_header_template(flow);
    Packet* packet = pool_.alloc();
    std::copy(header.bytes.begin(), header.bytes.begin() + header.bth_offset() + 12,
              packet->header.begin());
    packet->header_bytes = static_cast<std::uint16_t>(header.bth_offset() + 12U);
    packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    return packet;
  }
  // By which plane it left; -1: it was refused.
  int send(std::uint8_t traffic_class, std::uint32_t to, std::uint16_t source_port, Picos now) {
    Packet* one = packet(1, to, source_port);
    if (port_->tx(now, traffic_class, {&one, 1}) == 0) return -1;
    for (std::size_t i = 0; i < planes_.size(); ++i) {
      if (!planes_[i].sent.empty() && planes_[i].sent.back() == one) return static_cast<int>(i);
    }
    FAIL("the packet is nowhere");
    return -1;
  }
  void arrive(std::size_t plane, std::uint32_t from) {
    planes_[plane].arrived.push_back(packet(from, 1, 0xC000));
    std::array<Packet*, 4> burst;
    REQUIRE(port_->rx(burst) == 1);
  }

  BondedPort& port() { return *port_; }
  Plane& plane(std::size_t i) { return planes_[i]; }

 private:
  PacketPool pool_{512};
  std::deque<Plane> planes_;
  std::unique_ptr<BondedPort> port_;
};

constexpr std::uint8_t kData = kDefaultDataClass;

TEST_CASE("bond: the source port names the plane") {
  Bond bond(4);
  CHECK(bond.port().info().link_rate == rate_from_gbps(200));
  for (std::uint16_t i = 0; i < 12; ++i) {
    CHECK(bond.send(kData, 2, static_cast<std::uint16_t>(0xC000 + i), Picos{i * 1000}) == i % 4);
  }
}

TEST_CASE("bond: a packet waits for its own plane, while others send") {
  Bond bond(2);
  REQUIRE(bond.send(kData, 2, 0xC000, Picos{0}) == 0);
  CHECK(bond.port().tx_ready_at(kData) == Picos{0});  // of the other plane
  CHECK(bond.send(kData, 2, 0xC000, Picos{10}) == -1);
  CHECK(bond.port().tx_ready_at(kData) == Picos{100});
  CHECK(bond.send(kData, 2, 0xC001, Picos{10}) == 1);
  CHECK(bond.send(kData, 2, 0xC000, Picos{100}) == 0);
}

TEST_CASE("bond: what a plane that is down or paused would carry is spread over the others") {
  for (const bool paused : {false, true}) {
    Bond bond(4);
    bond.plane(2).paused = paused;
    bond.plane(2).link = paused;
    std::array<unsigned, 4> count{};
    for (std::uint16_t i = 0; i < 400; ++i) {
      const int plane = bond.send(kData, 2, static_cast<std::uint16_t>(0xC000 + i),
                                  Picos{std::int64_t{i} * 1000});
      REQUIRE(plane >= 0);
      ++count[static_cast<std::size_t>(plane)];
    }
    CAPTURE(paused, count[0], count[1], count[3]);
    CHECK(count[2] == 0);
    CHECK(std::min({count[0], count[1], count[3]}) >= 100);
  }
}

TEST_CASE("bond: with no plane left nothing is taken, and it says so") {
  Bond bond(2);
  bond.plane(0).link = bond.plane(1).link = false;
  CHECK(bond.port().links_up() == 0);
  CHECK(bond.send(kData, 2, 0xC000, Picos{0}) == -1);
  CHECK(bond.port().tx_ready_at(kData) == kNever);
  bond.plane(1).link = true;
  CHECK(bond.port().links_up() == 2);
  CHECK(bond.port().tx_ready_at(kData) == Picos{0});
  CHECK(bond.send(kData, 2, 0xC000, Picos{0}) == 1);
}

TEST_CASE("bond: a packet that was refused by a plane that has gone takes another") {
  Bond bond(2);
  REQUIRE(bond.send(kData, 2, 0xC000, Picos{0}) == 0);
  REQUIRE(bond.send(kData, 2, 0xC000, Picos{10}) == -1);
  bond.plane(0).link = false;
  CHECK(bond.port().tx_ready_at(kData) == Picos{0});
  CHECK(bond.send(kData, 2, 0xC000, Picos{10}) == 1);
}

TEST_CASE("bond: control packets leave by the plane that is free first") {
  Bond bond(4);
  for (std::uint16_t i = 0; i < 3; ++i) {
    REQUIRE(bond.send(kData, 77, static_cast<std::uint16_t>(0xC000 + i), Picos{i * 10}) == i);
  }
  CHECK(bond.send(kControlClass, 77, 0xC000, Picos{30}) == 3);
  CHECK(bond.send(kControlClass, 77, 0xC000, Picos{100}) == 0);
  CHECK(bond.send(kControlClass, 77, 0xC000, Picos{110}) == 1);
  bond.plane(2).link = false;
  CHECK(bond.send(kControlClass, 77, 0xC000, Picos{130}) == 3);
}

TEST_CASE("bond: control packets keep to planes by which their peer is heard") {
  Bond bond(4);
  std::array<unsigned, 4> count{};
  for (int i = 0; i < 64; ++i) {
    if (i % 4 == 0) bond.arrive(0, 77);
    if (i % 4 == 2) bond.arrive(3, 77);
    const int plane = bond.send(kControlClass, 77, 0xC000, Picos{std::int64_t{i} * 1000});
    REQUIRE(plane >= 0);
    if (i >= 32) ++count[static_cast<std::size_t>(plane)];
  }
  CHECK(count[1] + count[2] == 0);
  CHECK(count[0] == count[3]);
  // One that comes back counts at once.
  bond.arrive(1, 77);
  std::array<unsigned, 4> after{};
  for (int i = 0; i < 30; ++i) {
    const auto at = Picos{100'000 + std::int64_t{i} * 1000};
    ++after[static_cast<std::size_t>(bond.send(kControlClass, 77, 0xC000, at))];
  }
  CHECK(after[1] == 10);
  // Other peers are not concerned; one that is silent is looked for everywhere.
  CHECK(bond.send(kControlClass, 80, 0xC000, Picos{500'000}) == 1);
  std::array<unsigned, 4> silent{};
  for (int i = 0; i < 96; ++i) {
    const auto at = Picos{1'000'000 + std::int64_t{i} * 1000};
    ++silent[static_cast<std::size_t>(bond.send(kControlClass, 77, 0xC000, at))];
  }
  CHECK(*std::min_element(silent.begin(), silent.end()) >= 8);
}

TEST_CASE("bond: packets of all planes are received, however many one plane has") {
  Bond bond(3);
  for (int i = 0; i < 8; ++i) bond.plane(0).arrived.push_back(bond.packet(5, 1, 0xC000));
  bond.plane(2).arrived.push_back(bond.packet(6, 1, 0xC002));
  CHECK(bond.port().rx_ready_at() == Picos{0});
  for (int call = 0; call < 3; ++call) {
    std::array<Packet*, 2> burst;
    CHECK(bond.port().rx(burst) > 0);
  }
  CHECK(bond.plane(2).arrived.empty());
}

TEST_CASE("bond: with an address a link, packets take the link of their source, as it is") {
  constexpr std::uint32_t kFirst = 0x0A00'0001;
  constexpr std::uint32_t kSecond = 0x0A01'0001;
  Bond bond(2, std::uint16_t{0x0A00});
  CHECK(bond.port().info().link_rate == rate_from_gbps(50));
  const auto send = [&](std::uint8_t traffic_class, std::uint32_t from, Picos now) {
    Packet* one = bond.packet(from, from + 1, 0xC000);
    return bond.port().tx(now, traffic_class, {&one, 1}) == 1;
  };
  for (const std::uint8_t traffic_class : {kData, kControlClass}) {
    for (std::size_t i = 0; i < 2; ++i) {
      bond.plane(i).sent.clear();
      bond.plane(i).busy = Picos{0};
    }
    CHECK(send(traffic_class, kSecond, Picos{0}));
    CHECK(bond.plane(1).sent.size() == 1);
    // One that its link does not take yet waits for that link.
    CHECK_FALSE(send(traffic_class, kSecond, Picos{10}));
    CHECK(bond.port().tx_ready_at(traffic_class) == Picos{100});
    CHECK(send(traffic_class, kFirst, Picos{10}));
    CHECK(send(traffic_class, 0x0B00'0001, Picos{200}));  // from no port's subnet
    CHECK(bond.plane(0).sent.size() == 2);
    bond.plane(1).paused = true;
    CHECK_FALSE(send(traffic_class, kSecond, Picos{300}));
    CHECK(bond.port().tx_ready_at(traffic_class) == kNever);
    bond.plane(1).paused = false;
    bond.plane(1).link = false;
    CHECK_FALSE(send(traffic_class, kSecond, Picos{300}));  // such a link decides; others are free
    CHECK(bond.plane(0).sent.size() == 2);
    CHECK(bond.port().links_up() == 1);
    bond.plane(1).link = true;
  }
}

}  // namespace
}  // namespace paceline
