// FETCH_ADD and CMP_SWAP: executed once, whatever the cable does.
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint64_t kWord = 0x1000;  // offset in b's memory

std::uint64_t word_at(const std::vector<std::byte>& memory, std::uint64_t offset) {
  std::uint64_t value;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}
void set_word(std::vector<std::byte>& memory, std::uint64_t offset, std::uint64_t value) {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

WorkRequest add(Lab& lab, std::uint64_t id, std::uint64_t result_at, std::uint64_t what) {
  WorkRequest r = lab.request(WorkOpcode::fetch_add, id, result_at, kWord, kAtomicBytes);
  r.swap_add = what;
  return r;
}
WorkRequest swap(Lab& lab, std::uint64_t id, std::uint64_t result_at, std::uint64_t expected,
                 std::uint64_t desired) {
  WorkRequest r = lab.request(WorkOpcode::compare_swap, id, result_at, kWord, kAtomicBytes);
  r.compare = expected;
  r.swap_add = desired;
  return r;
}

TEST_CASE("atomics change the word and return what it was", "[transport][atomic]") {
  Lab lab;
  const Lab::Pair pair = lab.connect();
  set_word(lab.b().memory, kWord, 5);
  lab.post(0, pair.a, add(lab, 1, 0, 10));
  lab.post(0, pair.a, swap(lab, 2, 8, 15, 1000));
  lab.post(0, pair.a, swap(lab, 3, 16, 15, 2000));          // does not find 15 any more
  lab.post(0, pair.a, add(lab, 4, 24, ~std::uint64_t{0}));  // wraps: minus 1
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 4);
  CHECK(sent[0].opcode == CompletionOpcode::fetch_add);
  CHECK(sent[1].opcode == CompletionOpcode::compare_swap);
  CHECK(sent[0].bytes == 8);
  CHECK(word_at(lab.a().memory, 0) == 5);
  CHECK(word_at(lab.a().memory, 8) == 15);
  CHECK(word_at(lab.a().memory, 16) == 1000);
  CHECK(word_at(lab.a().memory, 24) == 1000);
  CHECK(word_at(lab.b().memory, kWord) == 999);
  CHECK(lab.leftovers().empty());
}

// 9.7.5.1.3: a repeated atomic is answered from the saved result.
TEST_CASE("an atomic whose answer is lost is not run again", "[transport][atomic]") {
  LabOptions options;
  options.qp.retransmit_timeout = picos_from_micros(50);
  options.qp.retry_count = 100;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    options.seed = seed;
    options.impairments = {.drop = 0.15, .corrupt = 0.02, .duplicate = 0.1, .reorder = 0.05};
    options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic = static_cast<std::uint8_t>(seed);
    Lab lab(options);
    const Lab::Pair pair = lab.connect(0xFF'FFE0, 0);
    constexpr std::uint64_t kCount = 100;
    for (std::uint64_t id = 0; id < kCount; ++id) {
      REQUIRE(lab.post(0, pair.a, add(lab, id, 8 * id, 1)) == PostResult::ok);
    }
    lab.run(picos_from_micros(1'000'000));
    CAPTURE(seed);
    CHECK(lab.a().sent().size() == kCount);
    CHECK(word_at(lab.b().memory, kWord) == kCount);
    for (std::uint64_t id = 0; id < kCount; ++id) CHECK(word_at(lab.a().memory, 8 * id) == id);
    CHECK(lab.a().counters().retransmitted_packets > 0);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("atomics: alignment, key, right, bounds, domain", "[transport][atomic]") {
  for (int fault = 0; fault < 7; ++fault) {
    Lab lab;
    set_word(lab.b().memory, kWord, 7);
    QpConfig b = lab.qp_config(1);
    std::vector<std::byte> other(4096);
    auto& regions = lab.b().engine.regions();
    WorkRequest request = add(lab, 1, 0, 1);
    CompletionStatus expected = CompletionStatus::remote_access_error;
    switch (fault) {
      case 0:  // 9.4.5: the address is a multiple of 8
        request.remote_address += 4;
        expected = CompletionStatus::remote_invalid_request;
        break;
      case 1:
        request.remote_key ^= 0x7700;
        break;
      case 2:
        request.remote_address = Lab::kBase + Lab::kMemoryBytes;
        break;
      case 3:
        request.remote_key = regions.add_plain(Lab::kBase, other, access::remote_write);
        break;
      case 4:
        request.remote_key = regions.add_plain(Lab::kBase, other, access::remote_atomic, 3);
        break;
      case 5:
        b.access = access::remote_read | access::remote_write;
        break;
      case 6:  // elided memory holds no values
        request.remote_key = regions.add_elided(Lab::kBase, 1 << 20, access::remote_atomic);
        break;
    }
    const Lab::Pair pair = lab.connect(lab.qp_config(0), b, 0, 0);
    lab.post(0, pair.a, request);
    CHECK(lab.run(picos_from_micros(10'000)));
    CAPTURE(fault);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == expected);
    CHECK(word_at(lab.b().memory, kWord) == 7);
    CHECK(lab.b().engine.view().state_of(pair.b) == QpState::error);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("an atomic takes 8 bytes, and an agreed depth", "[transport][atomic]") {
  Lab lab;
  QpConfig a = lab.qp_config(0);
  const Lab::Pair pair = lab.connect();
  WorkRequest request = add(lab, 1, 0, 1);
  request.length = 4;
  CHECK(lab.post(0, pair.a, request) == PostResult::bad_length);
  a.max_rd_atomic = 0;
  const Lab::Pair other = lab.connect(a, lab.qp_config(1), 0, 0);
  CHECK(lab.post(0, other.a, add(lab, 1, 0, 1)) == PostResult::bad_opcode);
  CHECK(lab.post(0, other.a, lab.request(WorkOpcode::read, 1, 0, 0, 1)) == PostResult::bad_opcode);
}

// A request from long ago, out of some corner of the network.
TEST_CASE("a ghost of an atomic or READ that nothing is kept of is dropped",
          "[transport][atomic]") {
  LabOptions options;
  options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic = 2;
  Lab lab(options);
  const Lab::Pair pair = lab.connect(100, 0);
  for (std::uint64_t id = 0; id < 6; ++id) lab.post(0, pair.a, add(lab, id, 8 * id, 1));
  CHECK(lab.run(picos_from_micros(1000)));
  REQUIRE(lab.a().sent().size() == 6);
  wire::FlowAddressing flow;
  flow.source_mac = wire::MacAddress::local(1);
  flow.destination_mac = wire::MacAddress::local(2);
  flow.source = wire::IpAddress::v4(0x0A00'0001);
  flow.destination = wire::IpAddress::v4(0x0A00'0002);
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  const std::uint64_t answers = lab.b().counters().acks_sent;
  const auto arrive = [&](auto build) {
    Packet packet;
    packet.header_bytes = static_cast<std::uint16_t>(build(wire::HeaderBuffer{packet.header}));
    packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
    lab.b().port.inject(lab.now(), packet, {});
    lab.run(lab.now() + picos_from_micros(10));
  };
  const wire::AtomicEth atomic{Lab::kBase + kWord, lab.b().key, 1, 0};
  for (const std::uint32_t psn : {100U, 103U}) {
    arrive([&](wire::HeaderBuffer out) {
      return wire::build_atomic(header, out, wire::Opcode::rc_fetch_add, pair.b, Psn(psn), atomic);
    });
  }
  // A READ in place of an atomic.
  arrive([&](wire::HeaderBuffer out) {
    return wire::build_read_request(header, out, pair.b, Psn(105), {Lab::kBase, lab.b().key, 100});
  });
  CHECK(lab.b().counters().ghost_requests == 3);
  CHECK(lab.b().counters().acks_sent == answers);
  CHECK(word_at(lab.b().memory, kWord) == 6);
  // One of the last two is answered once more, from the saved result.
  arrive([&](wire::HeaderBuffer out) {
    return wire::build_atomic(header, out, wire::Opcode::rc_fetch_add, pair.b, Psn(104), atomic);
  });
  CHECK(lab.b().counters().acks_sent == answers + 1);
  CHECK(word_at(lab.b().memory, kWord) == 6);
  CHECK(lab.leftovers().empty());
}

// Answers later; counts what it was made to do.
class LateWord final : public MemoryProvider {
 public:
  MemoryResult read(const MemoryCaller&, std::uint64_t, std::span<std::byte>) override {
    return MemoryResult::fault;
  }
  MemoryResult write(const MemoryCaller&, std::uint64_t, std::span<const std::byte>) override {
    return MemoryResult::fault;
  }
  MemoryResult atomic(const MemoryCaller& caller, std::uint64_t offset,
                      const AtomicOperation& operation, std::uint64_t& original) override {
    if (offset != 8) return MemoryResult::fault;
    if (!ready) {
      waiting = caller.qp_number;
      return MemoryResult::pending;
    }
    ready = false;
    ++runs;
    original = value;
    value = operation.result(value);
    return MemoryResult::done;
  }
  std::uint64_t value = 40;
  int runs = 0;
  bool ready = false;
  std::uint32_t waiting = 0;
};

TEST_CASE("atomics on memory that answers later", "[transport][atomic]") {
  LabOptions options;
  options.qp.retransmit_timeout = picos_from_micros(20);  // expires while it is waited for
  options.qp.retry_count = 200;
  Lab lab(options);
  LateWord word;
  const std::uint32_t key =
      lab.b().engine.regions().add_provided(0, 16, word, access::remote_atomic);
  const Lab::Pair pair = lab.connect();
  for (std::uint64_t id = 0; id < 5; ++id) {
    WorkRequest request = add(lab, id, 8 * id, 1);
    request.remote_key = key;
    request.remote_address = 8;
    REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
  }
  for (int i = 0; i < 20; ++i) {
    lab.run(lab.now() + picos_from_micros(50));
    if (word.waiting == 0) continue;
    word.waiting = 0;
    word.ready = true;
    lab.b().engine.memory_ready(lab.now(), pair.b);
    lab.touch(1);
  }
  CHECK(lab.a().sent().size() == 5);
  CHECK(word.runs == 5);
  CHECK(word.value == 45);
  for (std::uint64_t id = 0; id < 5; ++id) CHECK(word_at(lab.a().memory, 8 * id) == 40 + id);
  CHECK(lab.leftovers().empty());
}

}  // namespace
}  // namespace paceline::transport::test
