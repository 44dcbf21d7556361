// Two engines, unchanged, with a resolving port each, on one Ethernet in virtual time. They move
// verified bytes while requests get lost, a peer gets another MAC address, entries age, and a third
// station invents neighbours.
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/transport/engine.h"
#include "tests/support/roce_engine.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::neighbour {
namespace {

using namespace transport;
using test::host_config;
using test::Hub;
using wire::MacAddress;

constexpr std::size_t kMemory = std::size_t{1} << 20;
constexpr std::uint64_t kBase = 0x1000'0000;
constexpr std::uint64_t kBlock = 16 * 1024;

// The engine does not know where anybody is: the port behind it writes every address.
EngineConfig engine_config(std::uint32_t n, bool ipv6, const PortInfo& port) {
  return paceline::test::roce_engine_config(host_config(n).addresses[ipv6 ? 1 : 0].address,
                                            MacAddress{}, port, cc::AlgorithmId::fixed);
}

struct Host {
  Host(Hub& hub, std::size_t station, bool ipv6, const HostConfig& config)
      : wire(hub.port(station)),
        port(wire, config, Random(3, station)),
        engine(engine_config(static_cast<std::uint32_t>(station + 1), ipv6, port.info()), port),
        send_cq(256),
        receive_cq(256),
        receives(64),
        memory(kMemory),
        key(engine.regions().add_plain(kBase, memory, access::local_write | access::remote)) {
    QpConfig qp_config;
    qp_config.send_cq = &send_cq;
    qp_config.receive_cq = &receive_cq;
    qp_config.receive_queue = &receives;
    // A neighbour that is asked three times is silent for 3 s: the engine is more patient.
    qp_config.retransmit_timeout = picos_from_micros(100'000);
    qp_config.retry_count = 255;
    qp = engine.create_qp(qp_config);
  }
  Picos next(Picos now) const {
    return later(now, earlier(engine.next_deadline(), port.rx_ready_at()));
  }
  void poll(Picos now) {
    wire.set_now(now);
    port.poll(now);
    engine.poll(now);
    REQUIRE(engine.next_deadline() > now);
    REQUIRE(port.next_deadline() > now);
  }

  test::HubPort& wire;
  ResolvingPort port;
  Engine engine;
  CompletionQueue send_cq;
  CompletionQueue receive_cq;
  ReceiveQueue receives;
  std::vector<std::byte> memory;
  std::uint32_t key;
  std::uint32_t qp = 0;
};

// A writes block after block into B's memory, each with other bytes, and B's answers come back;
// each block is compared when it is complete.
struct World {
  explicit World(bool ipv6, const std::function<void(HostConfig&)>& change = {}) : hub(3) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      HostConfig config = host_config(i + 1);
      if (change) change(config);
      hosts[i] = std::make_unique<Host>(hub, i, ipv6, config);
    }
    for (unsigned i = 0; i < 2; ++i) {
      const QpAddress far = hosts[1 - i]->engine.address_of(hosts[1 - i]->qp, Psn(100));
      REQUIRE(hosts[i]->engine.connect(now, hosts[i]->qp, far, Psn(100),
                                       static_cast<std::uint16_t>(0xC001 + i)));
    }
  }
  ~World() {
    for (auto& host : hosts) {
      const std::size_t waiting = host->port.parked();
      CHECK(host->port.check_conservation() == "");
      CHECK(waiting == 0);
    }
    hosts = {};
    CHECK(hub.port(0).packets().in_use() == 0);
    CHECK(hub.port(1).packets().in_use() == 0);
  }

  void post() {
    Host& a = *hosts[0];
    const std::uint64_t offset = posted * kBlock % (kMemory / 2);
    Random random(posted, 8);
    for (std::uint64_t i = 0; i < kBlock; ++i) {
      a.memory[offset + i] = static_cast<std::byte>(random.next());
    }
    WorkRequest request;
    request.wr_id = posted++;
    request.opcode = WorkOpcode::write;
    request.length = kBlock;
    request.local_address = kBase + offset;
    request.local_key = a.key;
    request.remote_address = kBase + kMemory / 2 + offset;
    request.remote_key = hosts[1]->key;
    REQUIRE(a.engine.post_send(now, a.qp, request) == PostResult::ok);
    a.poll(now);
  }

  void collect() {
    std::array<Completion, 16> batch;
    const std::size_t n = hosts[0]->send_cq.poll(batch);
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(batch[i].status == CompletionStatus::success);
      REQUIRE(batch[i].wr_id == completed);
      const std::uint64_t offset = completed++ * kBlock % (kMemory / 2);
      REQUIRE(std::memcmp(hosts[0]->memory.data() + offset,
                          hosts[1]->memory.data() + kMemory / 2 + offset, kBlock) == 0);
    }
  }

  void run(Picos until) {
    for (;;) {
      const Picos next = earlier(hosts[0]->next(now), hosts[1]->next(now));
      if (next > until) break;
      now = next;
      for (auto& host : hosts) {
        if (host->next(now) <= now) host->poll(now);
      }
      collect();
    }
    now = until;
  }

  // A block every `interval`, at most eight in flight, for that time; returns the longest time
  // without progress.
  Picos traffic(Picos duration, Picos interval) {
    const Picos end = now + duration;
    Picos longest{0};
    Picos last = now;
    std::uint64_t seen = completed;
    while (now < end) {
      if (posted - completed < 8) post();
      run(now + interval);
      if (completed != seen) {
        last = now;
        seen = completed;
      }
      longest = later(longest, now - last);
    }
    return longest;
  }

  void finish() {
    run(now + seconds(10));
    REQUIRE(completed == posted);
  }

  Hub hub;
  std::array<std::unique_ptr<Host>, 2> hosts;
  Picos now{0};
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
};

constexpr Picos kMillisecond = picos_from_micros(1000);

bool is_roce(const Packet& packet) { return packet.bth_offset != 0; }

}  // namespace

TEST_CASE("engines: they find each other and move verified bytes, IPv4 and IPv6, tagged or not") {
  const bool ipv6 = GENERATE(false, true);
  const bool tagged = GENERATE(false, true);
  CAPTURE(ipv6, tagged);
  World world(ipv6, [&](HostConfig& c) {
    if (tagged) c.vlan_id = 42;
  });
  CHECK(world.traffic(kMillisecond * 50, kMillisecond) < kMillisecond * 5);
  world.finish();
  CHECK(world.posted == 50);
  // Nothing was lost to resolution: what was first waited for the answer.
  CHECK(world.hosts[0]->port.counters().tx_dropped() == 0);
  CHECK(world.hosts[1]->port.counters().tx_dropped() == 0);
  CHECK(world.hosts[0]->engine.counters().timeouts == 0);
  CHECK(world.hosts[0]->port.table().counters().solicits_multicast == 1);
}

TEST_CASE("engines: through the loss of the first requests") {
  World world(false);
  int lost = 0;
  world.hub.carry = [&](std::size_t, const Packet& packet) {
    return is_roce(packet) || ++lost > 2;
  };
  world.traffic(kMillisecond * 3000, kMillisecond * 10);
  world.finish();
  CHECK(world.completed > 50);
  CHECK(world.hosts[0]->port.table().counters().solicits_multicast == 3);
}

TEST_CASE("engines: the peer changes its MAC address under traffic and announces it") {
  const bool ipv6 = GENERATE(false, true);
  CAPTURE(ipv6);
  World world(ipv6, [](HostConfig& c) { c.announcements = 2; });
  world.traffic(kMillisecond * 100, kMillisecond);
  world.hosts[1]->port.set_mac(world.now, MacAddress::local(99));
  const Picos longest = world.traffic(kMillisecond * 500, kMillisecond);
  // What was on its way to the old address is lost: one retransmission timeout.
  CHECK(longest <= kMillisecond * 110);
  world.finish();
  const NeighbourTable& table = world.hosts[0]->port.table();
  const auto peer = host_config(2).addresses[ipv6 ? 1 : 0].address;
  CHECK(table[table.find(peer)].mac == MacAddress::local(99));
}

TEST_CASE("engines: ageing in the middle of traffic is not noticed") {
  World world(false, [](HostConfig& c) {
    c.timing.reachable = kMillisecond * 100;
    c.timing.delay_first_probe = kMillisecond * 20;
    c.timing.retransmit = kMillisecond * 10;
  });
  CHECK(world.traffic(seconds(3), kMillisecond) < kMillisecond * 5);
  world.finish();
  const NeighbourTable& table = world.hosts[0]->port.table();
  CHECK(table.counters().solicits_unicast > 10);  // 100 ms and some: every 70 to 170
  CHECK(table.counters().solicits_multicast == 1);
  CHECK(world.hosts[0]->port.counters().tx_dropped() == 0);
  CHECK(world.hosts[0]->engine.counters().timeouts == 0);
}

TEST_CASE("engines: 10,000 invented neighbours do not disturb those who talk") {
  World world(false, [](HostConfig& c) {
    c.limits.capacity = 64;
    c.limits.heard_capacity = 16;
    c.addresses[0].prefix_bits = 8;
  });
  world.traffic(kMillisecond * 20, kMillisecond);
  const std::uint64_t misses = world.hosts[0]->port.counters().slow_lookups;
  std::vector<std::byte> frame(42);
  std::uint32_t invented = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i) {
      wire::ArpMessage m;
      m.sender_mac = MacAddress::local(1'000'000 + invented);
      m.sender = wire::IpAddress::v4(0x0A10'0000 + invented++);
      m.target = host_config(1).addresses[0].address;
      const std::size_t at = wire::store_ethernet(frame.data(), wire::kBroadcastMac, m.sender_mac,
                                                  {}, wire::kEtherTypeArp);
      wire::store_arp(frame.data() + at, m);
      world.hub.port(0).inject(world.now, frame);
    }
    CHECK(world.traffic(kMillisecond, kMillisecond) < kMillisecond * 5);
  }
  world.finish();
  const ResolvingPort& port = world.hosts[0]->port;
  CHECK(port.host().counters().arp_requests >= 10'000);
  CHECK(port.table().heard() == 16);
  CHECK(port.table().counters().evicted_heard == 10'000 - 16);
  CHECK(port.table().counters().evicted_stale == 0);
  CHECK(port.counters().tx_dropped() == 0);
  CHECK(world.hosts[0]->engine.counters().timeouts == 0);
  // Once a second, not once a packet or an invention.
  CHECK(port.counters().slow_lookups - misses < 20);
}

}  // namespace paceline::neighbour
