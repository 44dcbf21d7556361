// Payloads that leave a port from the memory they are in: who may read there, and until when.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "dataplane/transport/engine.h"
#include "dataplane/wire/packet/header_template.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/rt/dpdk/environment.h"
#include "tests/rt/dpdk/ring_pair.h"
#include "tests/support/impair.h"
#include "tests/support/roce_engine.h"

namespace paceline::test {
namespace {

using namespace transport;

constexpr Picos kNow{5'000'000};

// A packet whose payload is `bytes` of `memory`, which begin with `first` and count up.
Packet* lend(const RingPair& pair, DpdkPort& port, std::byte* memory, std::uint16_t bytes,
             unsigned first) {
  Packet* const packet = pair.make(port, bytes, first);
  if (packet == nullptr) return nullptr;
  std::memcpy(memory, packet->payload, bytes);
  std::memset(packet->payload, 0xEE, bytes);
  port.packets().lend(*packet, memory);
  return packet;
}

bool icrc_holds(const Packet& packet) {
  return packet.icrc ==
         wire::icrc(packet.header_view(), wire::kEthernetBytes, packet.payload_view());
}

TEST_CASE("dpdk loans: a payload is read where it lies, and given back") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  REQUIRE(a.info().lends_payload);
  std::vector<std::byte> memory(1024);
  Packet* packet = lend(pair, a, memory.data(), 1000, 7);
  REQUIRE(a.tx(kNow, 0, {&packet, 1}) == 1);
  CHECK(a.packets().lent() == 0);  // it is the device's
  CHECK(pair.memory->lent() == 1);
  Packet* const got = RingPair::receive(b);
  REQUIRE(got != nullptr);
  CHECK(got->bytes() == memory.data());
  CHECK(RingPair::payload_is(*got, 1000, 7));
  CHECK(icrc_holds(*got));
  CHECK(b.packets().lent() == 1);
  CHECK(b.counters().rx_lent == 1);
  b.packets().free(got);
  CHECK(pair.memory->lent() == 0);
  CHECK(a.packets().in_use() + b.packets().in_use() == 0);
  // The packet serves its next user as any other.
  Packet* next = pair.make(b, 1024, 3);
  REQUIRE(b.tx(kNow, 0, {&next, 1}) == 1);
  Packet* const back = RingPair::receive(a);
  REQUIRE(back != nullptr);
  CHECK(RingPair::payload_is(*back, 1024, 3));
  a.packets().free(back);
}

TEST_CASE("dpdk loans: ended, what is on its way has its bytes, and memory may be written") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  std::vector<std::byte> memory(3 * 1024);
  const bool closed = GENERATE(false, true);
  CAPTURE(closed);
  std::array<Packet*, 2> burst{};
  for (unsigned i = 0; i < 2; ++i) burst[i] = lend(pair, a, memory.data() + 1024 * i, 1024, 10 + i);
  REQUIRE(a.tx(kNow, 0, burst) == 2);
  if (closed) {
    pair.ports[0].reset();
  } else {
    // One that has not left, too.
    Packet* waiting = lend(pair, a, memory.data() + 2048, 512, 12);
    a.packets().end_loans();
    CHECK(a.counters().tx_recalled == 2);
    CHECK(a.counters().tx_overdue == 0);
    CHECK(a.packets().lent() == 0);
    std::fill(memory.begin(), memory.end(), std::byte{0xDD});
    REQUIRE(a.tx(kNow, 0, {&waiting, 1}) == 1);
    CHECK(a.counters().tx_lent == 2);
  }
  std::fill(memory.begin(), memory.end(), std::byte{0xDD});
  for (unsigned i = 0; i < (closed ? 2U : 3U); ++i) {
    Packet* const got = RingPair::receive(b);
    REQUIRE(got != nullptr);
    CHECK(RingPair::payload_is(*got, i == 2 ? 512 : 1024, 10 + i));
    CHECK(icrc_holds(*got));
    b.packets().free(got);
  }
  CHECK(pair.memory->lent() == 0);
}

TEST_CASE("dpdk loans: a receiver that keeps a packet copies it before it takes others") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  std::vector<std::byte> memory(1024);
  Packet* packet = lend(pair, a, memory.data(), 1024, 9);
  REQUIRE(a.tx(kNow, 0, {&packet, 1}) == 1);
  Packet* const kept = RingPair::receive(b);
  REQUIRE(kept != nullptr);
  CHECK(RingPair::receive(b) == nullptr);
  CHECK(pair.memory->lent() == 0);
  std::fill(memory.begin(), memory.end(), std::byte{0});
  CHECK(kept->payload_kind == PayloadKind::owned);
  CHECK(RingPair::payload_is(*kept, 1024, 9));
  b.packets().free(kept);
}

TEST_CASE("dpdk loans: what is more than a port may lend is copied") {
  constexpr unsigned kMany = 1200;  // a port has 1024 loans
  RingPair pair({.packets = 4096, .slots = 2048});
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  std::vector<std::byte> memory(std::size_t{kMany} * 256);
  for (unsigned i = 0; i < kMany; ++i) {
    Packet* packet = lend(pair, a, memory.data() + std::size_t{i} * 256, 256, i);
    REQUIRE(packet != nullptr);
    REQUIRE(a.tx(kNow, 0, {&packet, 1}) == 1);
  }
  CHECK(a.counters().tx_lent == 1024);
  CHECK(a.counters().tx_lent_copied == kMany - 1024);
  for (unsigned i = 0; i < kMany; ++i) {
    Packet* const got = RingPair::receive(b);
    REQUIRE(got != nullptr);
    REQUIRE(RingPair::payload_is(*got, 256, i));
    b.packets().free(got);
  }
  CHECK(pair.memory->lent() == 0);
}

TEST_CASE("dpdk loans: what a full ring does not take stays lent, unharmed") {
  RingPair pair({.slots = 16});  // it holds 15
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  std::vector<std::byte> memory(20 * 1024);
  std::array<Packet*, 20> burst{};
  for (unsigned i = 0; i < 20; ++i) burst[i] = lend(pair, a, memory.data() + 1024 * i, 1024, i);
  REQUIRE(a.tx(kNow, 0, burst) == 15);
  // However often it is tried: that takes none of the 1024 loans of a port.
  for (unsigned i = 0; i < 1100; ++i) {
    REQUIRE(a.tx(kNow, 0, std::span<Packet* const>(burst).subspan(15)) == 0);
  }
  CHECK(a.packets().lent() == 5);
  CHECK(pair.memory->lent() == 15);
  CHECK(a.counters().tx_lent == 15);
  CHECK(a.counters().tx_lent_copied == 0);
  for (unsigned i = 0; i < 20; ++i) {
    if (i == 15) {
      REQUIRE(a.tx(kNow, 0, std::span<Packet* const>(burst).subspan(15)) == 5);
    }
    Packet* const got = RingPair::receive(b);
    REQUIRE(got != nullptr);
    CHECK(RingPair::payload_is(*got, 1024, i));
    CHECK(icrc_holds(*got));
    b.packets().free(got);
  }
  CHECK(a.packets().in_use() + b.packets().in_use() == 0);
  CHECK(pair.memory->lent() == 0);
}

// One that only WRITEs, its peer; both polled by the test.
struct Writer {
  Writer(unsigned index, Port& port, std::size_t bytes)
      : memory(bytes),
        send_cq(256),
        receive_cq(64),
        receives(64),
        engine(roce_engine_config(wire::IpAddress::v4(0x0A00'0001 + index),
                                  wire::MacAddress::local(index + 1), port.info(),
                                  cc::AlgorithmId::fixed),
               port) {
    key = engine.regions().add_plain(kBase, memory, access::local_write | access::remote_write);
    QpConfig config;
    config.send_cq = &send_cq;
    config.receive_cq = &receive_cq;
    config.receive_queue = &receives;
    config.retransmit_timeout = picos_from_micros(100);
    config.retry_count = 255;
    qp = engine.create_qp(config);
  }

  static constexpr std::uint64_t kBase = 0x4000'0000;
  std::vector<std::byte> memory;
  CompletionQueue send_cq;
  CompletionQueue receive_cq;
  ReceiveQueue receives;
  Engine engine;
  std::uint32_t key = 0;
  std::uint32_t qp = 0;
};

// Each message is overwritten as soon as it is completed, and not before; sizes and places drawn.
void overwrite_when_completed(const Impairments& impairments, std::uint32_t packets,
                              std::uint64_t seed) {
  CAPTURE(seed);
  constexpr std::size_t kRoom = 40'000;
  constexpr unsigned kMessages = 400;
  RingPair pair({.packets = packets, .slots = 64});
  ImpairedPort bad[2] = {{*pair.ports[0], impairments, Random(seed, 0)},
                         {*pair.ports[1], impairments, Random(seed, 1)}};
  {
    Writer a(0, bad[0], kRoom);
    Writer b(1, bad[1], kRoom);
    REQUIRE(a.engine.connect({0}, a.qp, b.engine.address_of(b.qp, Psn(7)), Psn(7), 0xC000));
    REQUIRE(b.engine.connect({0}, b.qp, a.engine.address_of(a.qp, Psn(7)), Psn(7), 0xC000));
    Random random(seed, 2);
    Picos now{0};
    for (unsigned m = 0; m < kMessages; ++m) {
      const auto length = static_cast<std::uint32_t>(1 + random.below(m % 4 == 0 ? kRoom : 3000));
      const std::uint64_t from = random.below(kRoom - length + 1);
      const std::uint64_t to = random.below(kRoom - length + 1);
      const auto fill = static_cast<std::byte>(m);
      for (std::size_t i = 0; i < kRoom; ++i) a.memory[i] = fill ^ static_cast<std::byte>(i * 7);
      WorkRequest request;
      request.opcode = WorkOpcode::write;
      request.length = length;
      request.local_address = Writer::kBase + from;
      request.local_key = a.key;
      request.remote_address = Writer::kBase + to;
      request.remote_key = b.key;
      REQUIRE(a.engine.post_send(now, a.qp, request) == PostResult::ok);
      std::array<Completion, 1> completion;
      unsigned turns = 0;
      while (a.send_cq.poll(completion) == 0) {
        now = now + picos_from_micros(1);
        a.engine.poll(now);
        b.engine.poll(now);
        // Some hundred packets and a few timeouts of 100 us.
        REQUIRE(++turns < 1'000'000);
      }
      REQUIRE(completion[0].status == CompletionStatus::success);
      std::fill(a.memory.begin(), a.memory.end(), std::byte{0xDD});
      // What is still on its way, sent twice or held up, must not bring any of that.
      for (unsigned i = 0; i < 5; ++i) {
        now = now + picos_from_micros(1);
        a.engine.poll(now);
        b.engine.poll(now);
      }
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const std::byte right = fill ^ static_cast<std::byte>((from + i) * 7);
        if (b.memory[to + i] != right) ++wrong;
      }
      CAPTURE(m, length, from, to);
      REQUIRE(wrong == 0);
    }
    CHECK(a.engine.counters().tx_lent_bytes > 0);
    CHECK(pair.ports[0]->counters().tx_lent > 0);
    CHECK(pair.ports[1]->counters().rx_lent > 0);
    CHECK(pair.ports[0]->counters().tx_overdue == 0);
    const bool clean = impairments.corrupt == 0;
    CHECK((telemetry::malformed_total(b.engine.counters()) == 0) == clean);
  }
  for (ImpairedPort& port : bad) port.take_back();
  while (Packet* packet = RingPair::receive(*pair.ports[0])) pair.ports[0]->packets().free(packet);
  while (Packet* packet = RingPair::receive(*pair.ports[1])) pair.ports[1]->packets().free(packet);
  CHECK(pair.memory->lent() == 0);
  for (const auto& port : pair.ports) CHECK(port->packets().in_use() == 0);
}

// The memory of a program behind a thread that copies: it answers when the test tells it to.
class LateMemory final : public MemoryProvider {
 public:
  explicit LateMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  MemoryResult read(const MemoryCaller&, std::uint64_t, std::span<std::byte>) override {
    return MemoryResult::fault;
  }
  MemoryResult write(const MemoryCaller&, std::uint64_t offset,
                     std::span<const std::byte> in) override {
    if (!ready) return MemoryResult::pending;
    std::copy(in.begin(), in.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return MemoryResult::done;
  }
  bool ready = false;

 private:
  std::span<std::byte> bytes_;
};

TEST_CASE("dpdk loans: with both ends on one thread, what the receiver parks is given back") {
  constexpr std::uint32_t kBytes = 2500;  // three packets
  RingPair pair;
  {
    Writer a(0, *pair.ports[0], 4096);
    Writer b(1, *pair.ports[1], 4096);
    LateMemory late(b.memory);
    const std::uint32_t key = b.engine.regions().add_provided(
        Writer::kBase, b.memory.size(), late, access::local_write | access::remote_write);
    REQUIRE(a.engine.connect({0}, a.qp, b.engine.address_of(b.qp, Psn(7)), Psn(7), 0xC000));
    REQUIRE(b.engine.connect({0}, b.qp, a.engine.address_of(a.qp, Psn(7)), Psn(7), 0xC000));
    for (std::size_t i = 0; i < kBytes; ++i) a.memory[i] = static_cast<std::byte>(i * 7);
    WorkRequest request;
    request.opcode = WorkOpcode::write;
    request.length = kBytes;
    request.local_address = Writer::kBase;
    request.local_key = a.key;
    request.remote_address = Writer::kBase;
    request.remote_key = key;
    Picos now{0};
    REQUIRE(a.engine.post_send(now, a.qp, request) == PostResult::ok);
    const auto turn = [&] {
      now = now + picos_from_micros(1);
      a.engine.poll(now);
      b.engine.poll(now);
    };
    for (unsigned i = 0; pair.ports[1]->counters().rx_lent != 3; ++i) {
      REQUIRE(i < 20);  // three packets at 10 Gb/s are 3 us
      turn();
    }
    REQUIRE(b.engine.counters().memory_waits >= 1);
    CHECK(pair.memory->lent() == 0);
    // Nobody is there to wait for, and nothing to be waited for.
    REQUIRE(a.engine.regions().change(a.key, 0, 0));
    CHECK(pair.ports[0]->counters().tx_overdue == 0);
    CHECK(pair.ports[0]->counters().tx_recalled == 0);
    std::fill(a.memory.begin(), a.memory.end(), std::byte{0xDD});
    late.ready = true;
    b.engine.memory_ready(now, b.qp);
    std::array<Completion, 1> completion;
    for (unsigned i = 0; a.send_cq.poll(completion) == 0; ++i) {
      REQUIRE(i < 20);  // well before a timeout, 100 us
      turn();
    }
    CHECK(completion[0].status == CompletionStatus::success);
    CHECK(a.engine.counters().retransmitted_packets == 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      if (b.memory[i] != static_cast<std::byte>(i * 7)) ++wrong;
    }
    CHECK(wrong == 0);
  }
  CHECK(pair.memory->lent() == 0);
  for (const auto& port : pair.ports) CHECK(port->packets().in_use() == 0);
}

TEST_CASE("dpdk loans: a completed message may be overwritten", "[rt]") {
  overwrite_when_completed({}, 512, 20261122);
}

TEST_CASE("dpdk loans: a completed message may be overwritten, on a bad cable", "[rt]") {
  // What the cable keeps has its bytes by then. Two threads: ring_engines_test.cc.
  overwrite_when_completed({.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.02}, 512,
                           20261123);
}

TEST_CASE("dpdk loans: with hardly a packet to be had", "[rt]") {
  overwrite_when_completed({}, 96, 20261124);
}

}  // namespace
}  // namespace paceline::test
