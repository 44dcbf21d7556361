// Two ends that find out by HELLO that both speak XACK turn to selective repeat one after the
// other: each understands the other meanwhile.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint64_t kFour = 4 * std::uint64_t{kMtu};

LabOptions discovering(Reliability reliability) {
  LabOptions options = small_packets();
  options.engine.peers = PeerPolicy::discover;
  options.engine.reliability = reliability;
  return options;
}

bool is_hello(const wire::ParsedPacket& p) {
  return p.properties.operation == wire::Operation::hello;
}

TEST_CASE("a WRITE without immediate is not solicited", "[transport]") {
  for (const QpType type : {QpType::rc, QpType::uc}) {
    LabOptions options = small_packets();
    options.qp.type = type;
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    unsigned solicited = 0;
    lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      if (p.properties.operation == wire::Operation::write) solicited += p.solicited ? 1 : 0;
      return false;
    });
    REQUIRE(lab.b().post_receive(7, 0, 0));
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::write_imm}) {
      WorkRequest request = lab.request(opcode, 1, 0, 0, 2 * kMtu);
      request.solicited = true;
      REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
    }
    CHECK(lab.run(picos_from_micros(1'000)));
    CHECK(solicited == 1);
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].solicited);
  }
}

// b has heard that a speaks XACK, a hears nothing.
TEST_CASE("selective: a responder that has turned serves a requester that has not",
          "[transport][selective]") {
  Lab lab(discovering(Reliability::selective));
  Lab::fill(lab.b().memory, 4);
  const Lab::Pair pair = lab.connect();
  unsigned responses = 0;
  lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = is_hello(p);
    if (p.properties.operation == wire::Operation::read_response) {
      verdict.drop = ++responses == 3;
    }
    return true;
  });
  lab.run(picos_from_micros(50));
  WorkRequest solicited = lab.request(WorkOpcode::write, 1, 0, 0, kMtu);
  solicited.solicited = true;
  REQUIRE(lab.post(0, pair.a, solicited) == PostResult::ok);
  REQUIRE(lab.b().post_receive(7, 0, 0));
  const std::uint64_t to = Lab::kMemoryBytes / 2;
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write_imm, 2, to, to, kFour)) ==
          PostResult::ok);
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::read, 3, to, kMtu, 40 * kMtu)) ==
          PostResult::ok);
  CHECK(lab.run(lab.now() + picos_from_micros(20'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 3);
  for (const Completion& c : sent) CHECK(c.status == CompletionStatus::success);
  const auto received = lab.b().received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].bytes == kFour);
  CHECK(std::memcmp(lab.a().memory.data() + to, lab.b().memory.data() + kMtu, 40 * kMtu) == 0);
  CHECK(lab.leftovers() == "");
}

// a has heard that b speaks XACK, b hears nothing until 150 us.
TEST_CASE("selective: a requester does not turn before its peer", "[transport][selective]") {
  Lab lab(discovering(Reliability::selective));
  const Lab::Pair pair = lab.connect();
  unsigned split = 0;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = is_hello(p) && lab.now() < picos_from_micros(150);
    if (p.opcode == wire::Opcode::rc_write_only && p.solicited) ++split;
    return true;
  });
  const auto write = [&](std::uint64_t id) {
    REQUIRE(lab.b().post_receive(id, 0, 0));
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write_imm, id, 0, 0, kFour)) ==
            PostResult::ok);
    lab.run(lab.now() + picos_from_micros(30));
    CHECK(lab.a().sent().size() == 1);
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].bytes == kFour);
  };
  lab.run(picos_from_micros(50));
  for (std::uint64_t id = 0; id < 3; ++id) write(id);
  CHECK(split == 0);
  lab.run(picos_from_micros(2'000));
  // The first tells a that b has turned.
  for (std::uint64_t id = 10; id < 15; ++id) write(id);
  CHECK(split == 4 * 3);
  CHECK(lab.run(lab.now() + picos_from_micros(20'000)));
  CHECK(lab.leftovers() == "");
}

// Programs that keep a queue full are the usual ones.
TEST_CASE("selective: a requester turns though requests are always under way",
          "[transport][selective]") {
  constexpr std::uint64_t kRequests = 60;
  const WorkOpcode opcode = GENERATE(WorkOpcode::write, WorkOpcode::read);
  LabOptions options = discovering(Reliability::selective);
  options.engine.multipath = Multipath::packet;
  options.engine.paths = 8;
  Lab lab(options);
  Lab::fill(lab.a().memory, 3);
  Lab::fill(lab.b().memory, 4);
  const Lab::Pair pair = lab.connect();
  unsigned split = 0;
  std::set<std::uint16_t> first_ports;  // of the responses to the first READ
  std::set<std::uint16_t> ports;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.opcode == wire::Opcode::rc_write_only && p.solicited) ++split;
    return false;
  });
  unsigned responses = 0;
  lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.properties.operation != wire::Operation::read_response) return false;
    ports.insert(p.udp_source_port);
    if (++responses <= 4) first_ports.insert(p.udp_source_port);
    return false;
  });
  const std::uint64_t to = Lab::kMemoryBytes / 2;
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  while (done < kRequests) {
    while (posted < kRequests && posted < done + 12) {
      REQUIRE(lab.post(0, pair.a, lab.request(opcode, posted++, 0, to, kFour)) == PostResult::ok);
    }
    lab.run(lab.now() + picos_from_nanos(500));
    for (const Completion& c : lab.a().sent()) {
      CHECK(c.status == CompletionStatus::success);
      ++done;
    }
    REQUIRE((done < posted || posted == kRequests));
    REQUIRE(lab.now() < picos_from_micros(100'000));
  }
  const telemetry::EngineCounters& counters = lab.a().engine.counters();
  CHECK(counters.timeouts == 0);
  if (opcode == WorkOpcode::write) {
    CHECK(split > 0);
    CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data() + to, kFour) == 0);
  } else {
    CHECK(first_ports.size() == 1);
    CHECK(ports.size() > 4);
    CHECK(counters.retransmitted_packets < 8);
    CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data() + to, kFour) == 0);
  }
  CHECK(lab.run(lab.now() + picos_from_micros(20'000)));
  CHECK(lab.leftovers() == "");
}

}  // namespace
}  // namespace paceline::transport::test
