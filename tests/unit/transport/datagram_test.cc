// Unreliable datagrams: address handles, Q_Keys, the header in front of the payload, and a
// congestion context per peer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kQkey = 0x1234;

struct Datagrams {
  explicit Datagrams(const LabOptions& options = make_options()) : lab(options) {
    for (unsigned side = 0; side < 2; ++side) {
      qp[side] = make(side);
      QpPath path;
      path.ip = wire::IpAddress::v4(0x0A00'0002 - side);
      path.mac = wire::MacAddress::local(2 - side);
      path.source_port = 0xC0DE;
      handle[side] = lab.side(side).engine.create_address_handle(lab.now(), 0, path);
    }
  }
  static LabOptions make_options() {
    LabOptions options;
    options.engine.payload_mtu = kMtu;
    options.qp.type = QpType::ud;
    return options;
  }
  std::uint32_t make(unsigned side) {
    Engine& engine = lab.side(side).engine;
    const std::uint32_t number = engine.create_qp(lab.qp_config(side));
    QpAttributes a;
    a.qkey = kQkey;
    a.sq_psn = Psn(0xFF'FFFE);
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      a.state = to;
      const std::uint32_t mask =
          transition_rule(QpType::ud, engine.view().state_of(number), to).required;
      REQUIRE(engine.modify_qp(lab.now(), number, a, mask | qp_attribute::state).ok());
    }
    return number;
  }
  WorkRequest request(std::uint64_t id, std::uint64_t from, std::uint64_t length,
                      WorkOpcode opcode = WorkOpcode::send) {
    WorkRequest r = lab.request(opcode, id, from, 0, length, 0xABCD);
    r.address_handle = handle[0];
    r.target_qp_number = qp[1];
    r.target_qkey = kQkey;
    return r;
  }

  Lab lab;
  std::uint32_t qp[2];
  std::uint32_t handle[2];
};

TEST_CASE("UD: datagrams arrive behind 40 bytes that hold the IP header", "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  Lab::fill(lab.a().memory, 5);
  const std::uint64_t sizes[] = {0, 1, 3, 500, kMtu};
  std::uint64_t id = 0;
  for (const WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::send_imm}) {
    for (const std::uint64_t size : sizes) {
      REQUIRE(lab.b().post_receive(id, id * 2048, 2048));
      REQUIRE(lab.post(0, d.qp[0], d.request(id, id * 2048, size, opcode)) == PostResult::ok);
      ++id;
    }
  }
  std::uint16_t port = 0;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    port = p.udp_source_port;
    return false;
  });
  CHECK(lab.run(picos_from_micros(1000)));
  CHECK(port == 0xC0DE);
  CHECK(lab.a().sent().size() == id);
  const auto received = lab.b().received();
  REQUIRE(received.size() == id);
  for (std::size_t i = 0; i < id; ++i) {
    const Completion& c = received[i];
    const std::uint64_t size = sizes[i % 5];
    CAPTURE(i);
    CHECK(c.status == CompletionStatus::success);
    CHECK(c.wr_id == i);
    CHECK(c.bytes == size + 40);
    CHECK(c.has_grh);
    CHECK(c.source_qp_number == d.qp[0]);
    CHECK(c.has_immediate == (i >= 5));
    if (c.has_immediate) CHECK(c.immediate == 0xABCD);
    const std::byte* buffer = lab.b().memory.data() + i * 2048;
    CHECK(std::memcmp(buffer + 40, lab.a().memory.data() + i * 2048, size) == 0);
    // The last 20 bytes are the IPv4 header: version, protocol, addresses.
    CHECK(std::all_of(buffer, buffer + 20, [](std::byte b) { return b == std::byte{0}; }));
    CHECK(buffer[20] == std::byte{0x45});
    CHECK(buffer[29] == std::byte{17});
    CHECK(buffer[35] == std::byte{1});
    CHECK(buffer[39] == std::byte{2});
  }
  CHECK(lab.a().counters().rx_packets == 0);
  CHECK(lab.leftovers().empty());
}

// Programs share Q_Keys, and send again for minutes what was for a program that has ended.
TEST_CASE("UD: datagrams for a queue pair that is gone reach nobody", "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  std::uint64_t id = 0;
  const std::uint32_t dead = d.qp[1];
  for (unsigned life = 0; life < 8; ++life) {
    lab.b().engine.destroy_qp(lab.now(), d.qp[1]);
    lab.touch(1);
    d.qp[1] = d.make(1);  // in the place of the one before, and with buffers
    REQUIRE(lab.b().post_receive(++id, 0, 2048));
    WorkRequest stale = d.request(id, 0, 64);
    stale.target_qp_number = dead;
    REQUIRE(lab.post(0, d.qp[0], stale) == PostResult::ok);
    CHECK(lab.run(lab.now() + picos_from_micros(1000)));
    CHECK(lab.b().received().empty());
    CHECK(lab.b().counters().no_queue_pair == life + 1);
  }
  REQUIRE(lab.post(0, d.qp[0], d.request(9, 0, 64)) == PostResult::ok);
  CHECK(lab.run(lab.now() + picos_from_micros(1000)));
  CHECK(lab.b().received().size() == 1);
  CHECK(lab.leftovers().empty());
}

// 9.6.1.5, and 10.2.5: a key with the highest bit stands for the sender's own.
TEST_CASE("UD: a wrong Q_Key is dropped and counted", "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  REQUIRE(lab.b().post_receive(1, 0, 2048));
  WorkRequest request = d.request(1, 0, 8);
  request.target_qkey = kQkey + 1;
  lab.post(0, d.qp[0], request);
  CHECK(lab.run(picos_from_micros(100)));
  CHECK(lab.b().counters().qkey_violations == 1);
  CHECK(lab.b().received().empty());
  request.target_qkey = 0x8000'0000;
  lab.post(0, d.qp[0], request);
  CHECK(lab.run(picos_from_micros(200)));
  CHECK(lab.b().counters().qkey_violations == 1);
  CHECK(lab.b().received().size() == 1);
}

TEST_CASE("UD: what may be posted", "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  CHECK(lab.post(0, d.qp[0], d.request(1, 0, kMtu + 1)) == PostResult::bad_length);
  CHECK(lab.post(0, d.qp[0], d.request(1, 0, 8, WorkOpcode::write)) == PostResult::bad_opcode);
  WorkRequest request = d.request(1, 0, 8);
  request.address_handle += 1;
  CHECK(lab.post(0, d.qp[0], request) == PostResult::bad_target);
  request.address_handle = lab.a().engine.create_address_handle(
      lab.now(), 7, {wire::IpAddress::v4(0x0A00'0002), wire::MacAddress::local(2)});
  CHECK(lab.post(0, d.qp[0], request) == PostResult::bad_target);  // another domain
  request = d.request(1, 0, 8);
  request.target_qp_number = 1U << 24;
  CHECK(lab.post(0, d.qp[0], request) == PostResult::bad_target);
  // A handle in use stays; a number of one that is gone is refused.
  REQUIRE(lab.post(0, d.qp[0], d.request(1, 0, 8)) == PostResult::ok);
  CHECK(!lab.a().engine.destroy_address_handle(lab.now(), d.handle[0]));
  CHECK(lab.run(picos_from_micros(100)));
  CHECK(lab.a().engine.destroy_address_handle(lab.now(), d.handle[0]));
  CHECK(!lab.a().engine.destroy_address_handle(lab.now(), d.handle[0]));
  CHECK(lab.post(0, d.qp[0], d.request(1, 0, 8)) == PostResult::bad_target);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("UD: no receive request, or one too small: the datagram is dropped, the request stays",
          "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  lab.post(0, d.qp[0], d.request(1, 0, 100));
  CHECK(lab.run(picos_from_micros(100)));
  CHECK(lab.b().counters().unreliable_drops == 1);
  REQUIRE(lab.b().post_receive(9, 0, 139));
  lab.post(0, d.qp[0], d.request(2, 0, 100));
  CHECK(lab.run(picos_from_micros(200)));
  CHECK(lab.b().counters().unreliable_drops == 2);
  lab.post(0, d.qp[0], d.request(3, 0, 99));
  CHECK(lab.run(picos_from_micros(300)));
  const auto received = lab.b().received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 9);
  CHECK(lab.b().engine.view().state_of(d.qp[1]) == QpState::rts);
}

// One queue pair, two destinations: each destination's context paces its own, in posting order.
TEST_CASE("UD: a context per peer, and queue pairs move between them", "[transport][ud]") {
  LabOptions options = Datagrams::make_options();
  const std::pair<std::string_view, double> params[] = {{"rate_mbps", 1000.0}};
  options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
  Datagrams d(options);
  Lab& lab = d.lab;
  QpPath elsewhere;
  elsewhere.ip = wire::IpAddress::v4(0x0A00'0077);
  elsewhere.mac = wire::MacAddress::local(2);  // over the same cable; b is not that address
  const std::uint32_t other = lab.a().engine.create_address_handle(lab.now(), 0, elsewhere);
  const std::uint32_t second_qp = d.make(0);
  for (std::uint64_t id = 0; id < 60; ++id) {
    WorkRequest request = d.request(id, 0, kMtu);
    if (id % 2 != 0) request.address_handle = other;
    REQUIRE(lab.post(0, id % 3 == 0 ? second_qp : d.qp[0], request) == PostResult::ok);
    CHECK(lab.a().engine.view().check_conservation() == "");
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 60);
  std::uint64_t last[2] = {0, 0};
  for (const Completion& c : sent) {  // in order on each queue pair
    std::uint64_t& before = last[c.qp_number == second_qp ? 1 : 0];
    CHECK((before == 0 || c.wr_id > before));
    before = c.wr_id;
  }
  // 30 packets each at 1 Gb/s, both at the same time: 30 * 1,114 bytes * 8 / 1 Gb/s = 267 us.
  const auto& departures = lab.a().port.departures();
  const double us = static_cast<double>((departures.back().at - departures.front().at).count) / 1e6;
  CHECK(us > 0.9 * 267);
  CHECK(us < 1.6 * 267);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("UD: marked datagrams bring CNPs, which slow the peer's context", "[transport][ud]") {
  LabOptions options = Datagrams::make_options();
  options.engine.primary = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.engine.cnp_interval = picos_from_micros(4);
  options.qp.send_queue_depth = 1024;
  Datagrams d(options);
  Lab& lab = d.lab;
  lab.b().cable.set_script([](const wire::ParsedPacket&, ImpairmentVerdict& verdict) {
    verdict.mark = true;
    return true;
  });
  for (std::uint64_t id = 0; id < 1000; ++id) {
    REQUIRE(lab.b().post_receive(id, 0, 2048));
    REQUIRE(lab.post(0, d.qp[0], d.request(id, 0, kMtu)) == PostResult::ok);
  }
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(lab.b().received().size() == 1000);
  CHECK(lab.b().counters().cnps_sent > 5);
  CHECK(lab.a().counters().cnps_received == lab.b().counters().cnps_sent);
  const auto& departures = lab.a().port.departures();
  CHECK((departures.back().at - departures.front().at) > picos_from_micros(180));
  CHECK(lab.leftovers().empty());
}

TEST_CASE("UD: flushed with all its work, reset and destroyed without a trace", "[transport][ud]") {
  for (int how = 0; how < 3; ++how) {
    LabOptions options = Datagrams::make_options();
    const std::pair<std::string_view, double> params[] = {{"rate_mbps", 100.0}};
    options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
    Datagrams d(options);
    Lab& lab = d.lab;
    for (std::uint64_t id = 0; id < 20; ++id) lab.post(0, d.qp[0], d.request(id, 0, kMtu));
    lab.run(picos_from_micros(200));
    const std::size_t before = lab.a().sent().size();
    CHECK(before > 0);
    CHECK(before < 20);
    QpAttributes a;
    a.state = how == 0 ? QpState::error : QpState::reset;
    if (how < 2) {
      CHECK(lab.a().engine.modify_qp(lab.now(), d.qp[0], a, qp_attribute::state).ok());
    } else {
      lab.a().engine.destroy_qp(lab.now(), d.qp[0]);
    }
    lab.touch(0);
    CAPTURE(how);
    CHECK(lab.a().engine.view().check_conservation() == "");
    CHECK(lab.run(lab.now() + picos_from_micros(10'000)));
    CHECK(lab.a().sent().size() == (how == 1 ? 0 : 20 - before));
    CHECK(lab.a().engine.destroy_address_handle(lab.now(), d.handle[0]));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("UD under cadence: datagrams use the peer's channel", "[transport][ud]") {
  LabOptions options = Datagrams::make_options();
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.qp.send_queue_depth = 1024;
  Datagrams d(options);
  Lab& lab = d.lab;
  for (std::uint64_t id = 0; id < 600; ++id) {
    REQUIRE(lab.b().post_receive(id, 0, 2048));
    REQUIRE(lab.post(0, d.qp[0], d.request(id, 0, kMtu)) == PostResult::ok);
  }
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(lab.b().received().size() == 600);
  CHECK(lab.a().counters().requests_sent > 0);
  CHECK(lab.b().counters().grants_sent > 0);
  CHECK(lab.leftovers().empty());
}

// Datagrams without payload are not backlog: of those that wait behind others the second class's
// channel has heard, and forgotten, by the time that it is their turn.
TEST_CASE("UD under cadence: empty datagrams go to a second class of the peer", "[transport][ud]") {
  LabOptions options = Datagrams::make_options();
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.qp.send_queue_depth = 1024;
  Datagrams d(options);
  Lab& lab = d.lab;
  QpPath path;
  path.ip = wire::IpAddress::v4(0x0A00'0002);
  path.mac = wire::MacAddress::local(2);
  path.traffic_class = 5;
  const std::uint32_t other = lab.a().engine.create_address_handle(lab.now(), 0, path);
  constexpr std::uint64_t kCount = 900;
  for (std::uint64_t id = 0; id < kCount; ++id) {
    REQUIRE(lab.b().post_receive(id, 0, 2048));
    const bool empty = id % 300 >= 200;
    WorkRequest request = d.request(id, 0, empty ? 0 : kMtu);
    if (empty) request.address_handle = other;
    REQUIRE(lab.post(0, d.qp[0], request) == PostResult::ok);
  }
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(lab.b().received().size() == kCount);
  CHECK(lab.leftovers().empty());
}

// 100 datagrams queued at a slow rate; the contexts of both handles change four times meanwhile.
TEST_CASE("UD: datagrams that wait go with their handles into other contexts", "[transport][ud]") {
  Datagrams d;
  Lab& lab = d.lab;
  const LabOptions options = Datagrams::make_options();
  const std::pair<std::string_view, double> slow[] = {{"rate_mbps", 2000}};
  Lab::fill(lab.a().memory, 8);
  const std::uint32_t others = d.make(0);
  Engine& engine = lab.a().engine;
  const auto change = [&](cc::AlgorithmId id,
                          std::span<const std::pair<std::string_view, double>> values = {}) {
    engine.reconfigure(lab.now(),
                       {choose_cc(id, options, values), choose_cc(cc::AlgorithmId::dcqcn, options)},
                       0, 0);
    lab.touch(0);
  };
  change(cc::AlgorithmId::fixed, slow);
  lab.run(lab.now() + picos_from_micros(60));
  constexpr std::uint64_t kCount = 100;
  for (std::uint64_t id = 0; id < kCount; ++id) {
    REQUIRE(lab.b().post_receive(id, id * 2048, 2048));
    REQUIRE(lab.post(0, id % 3 == 0 ? others : d.qp[0], d.request(id, id * 2048, kMtu)) ==
            PostResult::ok);
  }
  for (const cc::AlgorithmId id : {cc::AlgorithmId::cadence, cc::AlgorithmId::dcqcn,
                                   cc::AlgorithmId::cadence, cc::AlgorithmId::fixed}) {
    change(id, id == cc::AlgorithmId::fixed
                   ? std::span<const std::pair<std::string_view, double>>(slow)
                   : std::span<const std::pair<std::string_view, double>>{});
    CHECK(engine.view().check_conservation() == "");
    lab.run(lab.now() + picos_from_micros(8));
    CHECK(engine.view().check_conservation() == "");
  }
  CHECK(lab.run(lab.now() + picos_from_micros(10'000)));
  CHECK_FALSE(engine.view().reconfiguring());
  CHECK(engine.view().population().contexts == 1);
  CHECK(lab.a().sent().size() == kCount);
  CHECK(lab.b().received().size() == kCount);
  CHECK(lab.leftovers() == "");
}

}  // namespace
}  // namespace paceline::transport::test
