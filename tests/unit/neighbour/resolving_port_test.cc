// The port in front of a hub: resolution, tags, who waits for whom, and that no packet is lost
// without a reason.
#include "dataplane/neighbour/resolving_port.h"

#include <catch2/catch.hpp>
#include <map>
#include <stdexcept>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::neighbour {
namespace {

using test::host_config;
using test::Hub;
using test::v4;
using test::v6;
using wire::IpAddress;
using wire::MacAddress;

// A RoCEv2 packet with `number` as its PSN, as an engine makes it: no MAC addresses, no tag.
Packet* make(Port& port, const IpAddress& source, const IpAddress& destination,
             std::uint32_t number, std::uint16_t payload = 0) {
  Packet* packet = port.packets().alloc();
  if (packet == nullptr) throw std::runtime_error("the pool is empty");
  wire::FlowAddressing flow;
  flow.source = source;
  flow.destination = destination;
  flow.dscp = 26;
  wire::TransportFields fields;
  fields.opcode = wire::Opcode::rc_send_only;
  fields.psn = Psn(number);
  fields.payload_bytes = payload;
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  packet->header_bytes =
      static_cast<std::uint16_t>(wire::build_data(header, packet->header, fields));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  packet->payload_kind = payload == 0 ? PayloadKind::none : PayloadKind::owned;
  packet->payload_bytes = payload;
  for (std::uint16_t i = 0; i < payload; ++i) {
    packet->payload[i] = static_cast<std::byte>(number + i);
  }
  packet->icrc = wire::icrc(packet->header_view(), wire::kEthernetBytes, packet->payload_view());
  return packet;
}

struct Net {
  explicit Net(std::size_t stations, const std::function<void(HostConfig&)>& change = {})
      : hub(stations) {
    for (std::size_t i = 0; i < stations; ++i) {
      HostConfig config = host_config(static_cast<std::uint32_t>(i + 1));
      if (change) change(config);
      ports.push_back(std::make_unique<ResolvingPort>(hub.port(i), config, Random(1, i)));
    }
    arrived.resize(stations);
  }
  ~Net() {
    for (std::size_t i = 0; i < ports.size(); ++i) ports[i].reset();
    for (std::size_t i = 0; i < ports.size(); ++i) {
      CHECK(hub.port(i).packets().in_use() == 0);
    }
  }

  ResolvingPort& operator[](std::size_t i) { return *ports[i]; }
  std::size_t send(std::size_t from, Packet* packet, std::uint8_t traffic_class = 3) {
    hub.port(from).set_now(now);
    return ports[from]->tx(now, traffic_class, {&packet, 1});
  }
  void run(Picos until) {
    for (;;) {
      Picos next = kNever;
      for (const auto& port : ports) next = earlier(next, port->rx_ready_at());
      if (next > until) break;
      now = later(now, next);
      for (std::size_t i = 0; i < ports.size(); ++i) step(i);
    }
    now = until;
  }
  void step(std::size_t i) {
    hub.port(i).set_now(now);
    ports[i]->poll(now);
    std::array<Packet*, 16> burst;
    std::size_t n;
    do {
      n = ports[i]->rx(burst);
      for (std::size_t k = 0; k < n; ++k) take(i, burst[k]);
    } while (n == burst.size());
    REQUIRE(ports[i]->next_deadline() > now);
    REQUIRE(ports[i]->check_conservation() == "");
  }
  void take(std::size_t i, Packet* packet) {
    wire::ParsedPacket parsed;
    REQUIRE(wire::parse_headers(packet->header_view(), packet->payload_bytes, parsed) ==
            wire::ParseError::ok);
    REQUIRE_FALSE(parsed.has_vlan);
    REQUIRE(parsed.destination_mac == ports[i]->host().mac());
    REQUIRE(packet->bth_offset == parsed.bth_offset);
    REQUIRE(packet->icrc ==
            wire::icrc(packet->header_view(), parsed.l3_offset, packet->payload_view()));
    arrived[i].push_back(parsed);
    hub.port(i).packets().free(packet);
  }

  Hub hub;
  std::vector<std::unique_ptr<ResolvingPort>> ports;
  std::vector<std::vector<wire::ParsedPacket>> arrived;
  Picos now{0};
};

std::uint16_t ether_type(const Packet& packet) {
  const std::uint16_t type = wire::load_be16(packet.header.data() + 12);
  return type == wire::kEtherTypeVlan ? wire::load_be16(packet.header.data() + 16) : type;
}
bool is_arp(const Packet& packet) { return ether_type(packet) == wire::kEtherTypeArp; }

}  // namespace

TEST_CASE("resolving: the first packet waits for the answer, later ones do not") {
  const bool tagged = GENERATE(false, true);
  const bool ipv6 = GENERATE(false, true);
  CAPTURE(tagged, ipv6);
  Net net(3, [&](HostConfig& c) {
    if (tagged) c.vlan_id = 100;
  });
  const auto at = [&](std::uint32_t n) { return ipv6 ? v6(n) : v4(n); };
  std::vector<std::uint16_t> tcis;
  net.hub.carry = [&](std::size_t, const Packet& packet) {
    const bool tag = wire::load_be16(packet.header.data() + 12) == wire::kEtherTypeVlan;
    CHECK(tag == tagged);
    if (tag) tcis.push_back(wire::load_be16(packet.header.data() + 14));
    return true;
  };
  REQUIRE(net.send(0, make(net[0], at(1), at(2), 7, 100)) == 1);
  CHECK(net[0].parked() == 1);
  net.run(picos_from_micros(100));
  REQUIRE(net.arrived[1].size() == 1);
  CHECK(net.arrived[1][0].psn == Psn(7));
  CHECK(net.arrived[1][0].source_mac == MacAddress::local(1));
  CHECK(net.arrived[2].empty());
  const std::uint64_t misses = net[0].counters().slow_lookups;
  for (std::uint32_t n = 8; n < 20; ++n) net.send(0, make(net[0], at(1), at(2), n));
  CHECK(net[0].counters().slow_lookups == misses + 1);
  // The far side heard our request: it knows where to answer.
  net.send(1, make(net[1], at(2), at(1), 50));
  CHECK(net[1].parked() == 0);
  net.run(picos_from_micros(200));
  CHECK(net.arrived[1].size() == 13);
  CHECK(net.arrived[0].size() == 1);
  CHECK(net[0].table().counters().solicits_multicast == 1);
  CHECK(net[1].table().counters().solicits_multicast == 0);
  if (tagged) {
    CHECK(tcis.front() == wire::vlan_tci(kControlClass, 100));
    CHECK(tcis.back() == wire::vlan_tci(3, 100));
    CHECK(net[0].info().wire.frame_overhead == 24);
  }
}

TEST_CASE("resolving: two requests are lost, the third is answered") {
  Net net(2);
  int lost = 0;
  net.hub.carry = [&](std::size_t from, const Packet& packet) {
    return from != 0 || !is_arp(packet) || ++lost > 2;
  };
  for (std::uint32_t n = 0; n < 5; ++n) net.send(0, make(net[0], v4(1), v4(2), n));
  net.run(seconds(2) - Picos{1});
  CHECK(net.arrived[1].empty());
  net.run(seconds(3));
  REQUIRE(net.arrived[1].size() == 5);
  for (std::uint32_t n = 0; n < 5; ++n) CHECK(net.arrived[1][n].psn == Psn(n));
}

TEST_CASE("resolving: a dead host delays nobody else; its packets are counted out") {
  Net net(2);
  net.send(0, make(net[0], v4(1), v4(2), 0));
  net.run(picos_from_micros(100));
  // One burst: dead, alive, alive, dead, ..., in one class.
  std::vector<Packet*> burst;
  for (std::uint32_t n = 0; n < 60; ++n) {
    burst.push_back(make(net[0], v4(1), n % 3 == 0 ? v4(99) : v4(2), 100 + n));
  }
  CHECK(net[0].tx(net.now, 3, burst) == 60);
  net.run(picos_from_micros(200));
  CHECK(net.arrived[1].size() == 1 + 40);
  CHECK(net[0].parked() == 16);
  CHECK(net[0].counters().drop_park_full == 4);
  net.run(seconds(3));
  CHECK(net[0].parked() == 16);
  net.run(seconds(3) + picos_from_micros(200));
  CHECK(net[0].counters().drop_unanswered == 16);
  net.send(0, make(net[0], v4(1), v4(99), 1));
  CHECK(net[0].counters().drop_failed == 1);
  net.run(seconds(5));
  net.send(0, make(net[0], v4(1), v4(99), 1));  // a second later it is asked again
  CHECK(net[0].parked() == 1);
}

TEST_CASE("resolving: what was parked leaves before what comes later, however slow the port") {
  Net net(2);
  for (std::uint32_t n = 0; n < 4; ++n) net.send(0, make(net[0], v4(1), v4(2), n));
  REQUIRE(net[0].parked() == 4);
  net.hub.port(0).limit_calls(1);
  // The answer comes after two delays; the port behind takes one packet, and is busy then.
  net.run(picos_from_micros(10));
  REQUIRE(net[0].parked() == 0);
  std::uint32_t next = 4;
  while (net.arrived[1].size() < 8) {
    net.now += picos_from_micros(1);  // idle again, and nobody has polled
    Packet* packet = make(net[0], v4(1), v4(2), next);
    if (net.send(0, packet) == 1) {
      ++next;
    } else {
      net[0].packets().free(packet);
    }
    net.step(1);
    REQUIRE(net.now < seconds(1));
  }
  for (std::uint32_t n = 0; n < 8; ++n) CHECK(net.arrived[1][n].psn == Psn(n));
}

TEST_CASE("resolving: destinations without a way are counted by reason") {
  Net net(2, [](HostConfig& c) { c.ip_mtu = 1280; });
  const auto counts = [&](const IpAddress& to, std::uint16_t payload = 0) {
    const std::uint64_t before = net[0].counters().tx_dropped();
    net.send(0, make(net[0], to.is_v4() ? v4(1) : v6(1), to, 1, payload));
    return net[0].counters().tx_dropped() - before;
  };
  CHECK(counts(v4(1)) == 1);
  CHECK(net[0].counters().drop_own_address == 1);
  CHECK(counts(v4(255)) == 1);
  CHECK(counts(IpAddress::v4(0xE000'0001)) == 1);
  CHECK(counts(IpAddress::v4(0xFFFF'FFFF)) == 1);
  CHECK(net[0].counters().drop_not_unicast == 3);
  CHECK(counts(IpAddress::v4(0x0B00'0001)) == 1);
  CHECK(net[0].counters().drop_no_route == 1);
  // IP 20, UDP 8, BTH 12, ICRC 4: 1236 bytes fit.
  CHECK(counts(v4(2), 1240) == 1);
  CHECK(net[0].counters().drop_too_long == 1);
  CHECK(counts(v4(2), 1236) == 0);
  CHECK(net[0].info().mtu_bytes == 1024);
  Packet* junk = net[0].packets().alloc();
  junk->header_bytes = 60;
  junk->payload_bytes = 0;
  junk->header.fill(std::byte{0});
  net.send(0, junk);
  CHECK(net[0].counters().drop_not_ip == 1);
  junk = net[0].packets().alloc();
  junk->header_bytes = 13;
  net.send(0, junk);
  CHECK(net[0].counters().drop_not_ip == 2);
}

TEST_CASE("resolving: other networks go to the gateway, one request for all of them") {
  Net net(2, [](HostConfig& c) {
    if (c.mac == MacAddress::local(1)) {
      c.gateway_v4 = v4(2);
      c.gateway_v6 = v6(2);
    }
  });
  std::vector<MacAddress> to;
  net.hub.carry = [&](std::size_t, const Packet& packet) {
    if (packet.bth_offset != 0) {
      to.push_back(MacAddress::load(packet.header.data()));
    }
    return true;
  };
  for (std::uint32_t n = 0; n < 10; ++n) {
    net.send(0, make(net[0], v4(1), IpAddress::v4(0x0B00'0001 + n), n));
  }
  IpAddress far = v6(1);
  far.bytes[3] = std::byte{9};
  net.send(0, make(net[0], v6(1), far, 1));
  net.run(picos_from_micros(100));
  CHECK(to.size() == 11);
  for (const MacAddress& m : to) CHECK(m == MacAddress::local(2));
  CHECK(net[0].table().size() == 2);
  CHECK(net[1].host().counters().other_address == 11);  // the stations here are not routers
}

TEST_CASE("resolving: a peer that moves is followed at its announcement, or found by probes") {
  const bool announces = GENERATE(true, false);
  CAPTURE(announces);
  Net net(2, [&](HostConfig& c) { c.announcements = announces ? 2 : 0; });
  net.send(0, make(net[0], v4(1), v4(2), 0));
  net.run(picos_from_micros(100));
  REQUIRE(net.arrived[1].size() == 1);
  if (!announces) net.hub.plug(1, false);
  net[1].set_mac(net.now, MacAddress::local(77));
  net.run(net.now + seconds(1));
  net.hub.plug(1, true);
  std::uint32_t sent = 0;
  Picos found = kNever;
  const Picos start = net.now;
  for (int i = 0; i < 700; ++i) {  // ten packets a second
    net.send(0, make(net[0], v4(1), v4(2), ++sent));
    net.run(net.now + picos_from_micros(100'000));
    if (found == kNever && net.arrived[1].size() > 1) found = net.now;
  }
  REQUIRE(found != kNever);
  if (announces) {
    CHECK(net.arrived[1].size() == 1 + sent);
  } else {
    // Reachable for at most 45 s, then delay 5 s and three probes of a second.
    CHECK(found <= start + seconds(45 + 5 + 3 + 1));
    CHECK(net[0].table().counters().restarted == 1);
    CHECK(net[1].host().counters().other_mac > 0);
  }
  CHECK(net[0].table()[net[0].table().find(v4(2))].mac == MacAddress::local(77));
}

TEST_CASE("resolving: start and failover are announced; who uses our address is told once") {
  Net net(2, [](HostConfig& c) { c.announcements = 2; });
  int announcements = 0;
  net.hub.carry = [&](std::size_t, const Packet&) {
    ++announcements;
    return true;
  };
  net.run(seconds(1));
  CHECK(announcements == 4);  // two hosts, an ARP and an advertisement each
  net.run(seconds(10));
  CHECK(announcements == 8);
  CHECK(net[0].table().size() == 0);  // announcements alone make nobody known
  // A third party claims 10.0.0.1, twice within ten seconds.
  wire::ArpMessage claim;
  claim.sender_mac = MacAddress::local(66);
  claim.sender = claim.target = v4(1);
  std::vector<std::byte> frame(42);
  const std::size_t at = wire::store_ethernet(frame.data(), wire::kBroadcastMac, claim.sender_mac,
                                              {}, wire::kEtherTypeArp);
  wire::store_arp(frame.data() + at, claim);
  for (int i = 0; i < 2; ++i) {
    net.hub.port(0).inject(net.now, frame);
    net.run(net.now + seconds(1));
  }
  CHECK(announcements == 9);
  CHECK(net[0].host().counters().conflicts == 2);
  CHECK(net[0].host().counters().defences == 1);
}

TEST_CASE("resolving: configuration is judged as a whole") {
  Hub hub(1);
  HostConfig config = host_config(1);
  CHECK(problems(config).empty());
  config.mac = wire::kBroadcastMac;
  config.addresses[0].prefix_bits = 33;
  config.gateway_v4 = IpAddress::v4(0x0B00'0001);
  config.vlan_id = 4095;
  config.ip_mtu = 100;
  config.limits.capacity = 1;
  const auto wrong = problems(config);
  CHECK(wrong.size() >= 6);
  CHECK_THROWS_AS(ResolvingPort(hub.port(0), config, Random(1)), std::invalid_argument);
  bool named = false;
  for (const std::string& w : wrong) named = named || w == "vlan_id is 4095; allowed: 1 to 4094";
  CHECK(named);
  CHECK(path_mtu_of(1500) == 1024);
  CHECK(path_mtu_of(4180) == 4096);
  CHECK(path_mtu_of(4179) == 2048);
  CHECK(path_mtu_of(200) == 0);
}

TEST_CASE("resolving: random traffic: every packet leaves in order, to its host, or has a reason") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    Random random(seed, 3);
    const bool tagged = random.below(2) == 0;
    Net net(4, [&](HostConfig& c) {
      if (tagged) c.vlan_id = 5;
      c.timing.reachable = seconds(1);
      c.timing.delay_first_probe = seconds(1);
      c.limits.capacity = 16;
      c.limits.heard_capacity = 4;
      c.limits.parked_per_neighbour = 4;
      c.limits.parked = 12;
    });
    net.hub.carry = [&](std::size_t, const Packet& packet) {
      return packet.bth_offset != 0 || random.below(3) != 0;
    };
    std::uint32_t number = 0;
    std::uint64_t offered = 0;
    std::vector<Packet*> waiting;  // what was refused is offered again first, as an engine does
    std::uint8_t waiting_class = 0;
    for (int step = 0; step < 600; ++step) {
      net.hub.port(0).limit_calls(random.below(3) == 0 ? 1 + random.below(3) : 1000);
      std::vector<Packet*> burst = waiting;
      const auto traffic_class =
          waiting.empty() ? static_cast<std::uint8_t>(random.below(8)) : waiting_class;
      while (burst.size() < 1 + random.below(20)) {
        const auto to = static_cast<std::uint32_t>(random.below(8) == 0 ? 20 + random.below(30)
                                                                        : 1 + random.below(6));
        const bool ipv6 = random.below(2) == 0;
        // The class in the PSN's low bits: order holds within a class.
        burst.push_back(make(net[0], ipv6 ? v6(1) : v4(1), ipv6 ? v6(to) : v4(to),
                             number++ << 3 | traffic_class));
        ++offered;
      }
      net.hub.port(0).set_now(net.now);
      const std::size_t taken = net[0].tx(net.now, traffic_class, burst);
      waiting.assign(burst.begin() + static_cast<long>(taken), burst.end());
      waiting_class = traffic_class;
      REQUIRE(net[0].check_conservation() == "");
      REQUIRE(net[0].counters().tx_taken + waiting.size() == offered);
      net.run(net.now + Picos{static_cast<std::int64_t>(random.below(
                            random.below(4) == 0 ? 1'000'000'000'000U : 20'000'000U))});
    }
    for (Packet* packet : waiting) net[0].packets().free(packet);
    net.run(net.now + seconds(10));
    const ResolvingCounters& c = net[0].counters();
    CHECK(net[0].parked() == 0);
    CHECK(c.tx_taken == c.tx_sent + c.tx_dropped());
    std::uint64_t arrived = 0;
    for (std::size_t i = 1; i < 4; ++i) {
      std::map<std::pair<bool, std::uint32_t>, std::uint32_t> last;  // by family and class
      for (const wire::ParsedPacket& p : net.arrived[i]) {
        REQUIRE(p.destination == (p.ipv6 ? v6(static_cast<std::uint32_t>(i + 1))
                                         : v4(static_cast<std::uint32_t>(i + 1))));
        std::uint32_t& before = last[{p.ipv6, p.psn.value() & 7U}];
        REQUIRE(p.psn.value() + 1 > before);
        before = p.psn.value() + 1;
        ++arrived;
      }
    }
    CHECK(arrived == c.tx_sent);
    CHECK(c.tx_parked > 0);
    CHECK(c.drop_unanswered > 0);
    CHECK(c.drop_own_address > 0);
  }
}

}  // namespace paceline::neighbour
