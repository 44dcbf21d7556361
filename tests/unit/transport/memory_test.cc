// Memory that answers later: the engine never blocks, and loses nothing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/transport/core/engine_core.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

// Answers `pending` to every first call for a place, and succeeds when the place is asked for
// again.
class SlowMemory final : public MemoryProvider {
 public:
  explicit SlowMemory(std::size_t bytes) : bytes_(bytes), asked_(bytes / kMtu + 1) {}

  MemoryResult read(const MemoryCaller& caller, std::uint64_t offset,
                    std::span<std::byte> out) override {
    if (late(caller.qp_number, offset)) return MemoryResult::pending;
    if (fault_at <= offset) return MemoryResult::fault;
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return MemoryResult::done;
  }
  MemoryResult write(const MemoryCaller& caller, std::uint64_t offset,
                     std::span<const std::byte> in) override {
    if (late(caller.qp_number, offset)) return MemoryResult::pending;
    if (fault_at <= offset) return MemoryResult::fault;
    ++writes;
    std::memcpy(bytes_.data() + offset, in.data(), in.size());
    return MemoryResult::done;
  }
  std::vector<std::byte>& bytes() { return bytes_; }

  std::uint32_t waiting = 0;  // queue pair to call memory_ready for
  std::uint64_t fault_at = ~std::uint64_t{0};
  std::uint64_t writes = 0;

 private:
  bool late(std::uint32_t qp, std::uint64_t offset) {
    if (asked_[offset / kMtu]++ % 2 != 0) return false;
    waiting = qp;
    return true;
  }

  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> asked_;
};

// Runs, answering each pending call 5 us later, until both sides are quiet.
void run_answering(Lab& lab, SlowMemory& source, SlowMemory& target) {
  for (int i = 0; i < 10'000; ++i) {
    if (lab.run(lab.now() + picos_from_micros(5)) && source.waiting == 0 && target.waiting == 0) {
      return;
    }
    if (const std::uint32_t qp = std::exchange(source.waiting, 0); qp != 0) {
      lab.a().engine.memory_ready(lab.now(), qp);
      lab.touch(0);
    }
    if (const std::uint32_t qp = std::exchange(target.waiting, 0); qp != 0) {
      lab.b().engine.memory_ready(lab.now(), qp);
      lab.touch(1);
    }
  }
  FAIL("never quiet");
}

struct Slow {
  explicit Slow(const LabOptions& options) : lab(options), source(64 * kMtu), target(64 * kMtu) {
    Lab::fill(source.bytes(), 4);
    source_key = lab.a().engine.regions().add_provided(0, 64 * kMtu, source, 0);
    target_key = lab.b().engine.regions().add_provided(0, 64 * kMtu, target,
                                                       access::local_write | access::remote_write);
    pair = lab.connect();
  }
  WorkRequest request(WorkOpcode opcode, std::uint64_t length) {
    WorkRequest r = lab.request(opcode, 1, 0, 0, length);
    r.local_address = 0;
    r.local_key = source_key;
    r.remote_address = 0;
    r.remote_key = target_key;
    return r;
  }
  Lab lab;
  SlowMemory source;
  SlowMemory target;
  std::uint32_t source_key = 0;
  std::uint32_t target_key = 0;
  Lab::Pair pair;
};

LabOptions options_with(Picos timeout) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.qp.retransmit_timeout = timeout;
  options.qp.retry_count = 200;
  return options;
}

TEST_CASE("both ends answer later, for WRITE and SEND", "[transport]") {
  for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::send, WorkOpcode::write_imm}) {
    // With a timeout that is long, and one that expires while the far memory is being waited for.
    for (const Picos timeout : {picos_from_micros(10'000), picos_from_micros(20)}) {
      Slow slow(options_with(timeout));
      const std::uint64_t length = 9 * kMtu + 77;
      REQUIRE(slow.lab.b().receives.post({3, 0, length, slow.target_key}));
      REQUIRE(slow.lab.post(0, slow.pair.a, slow.request(opcode, length)) == PostResult::ok);
      run_answering(slow.lab, slow.source, slow.target);
      CAPTURE(static_cast<int>(opcode), timeout.count);
      const auto sent = slow.lab.a().sent();
      REQUIRE(sent.size() == 1);
      CHECK(sent[0].status == CompletionStatus::success);
      CHECK(std::memcmp(slow.source.bytes().data(), slow.target.bytes().data(), length) == 0);
      CHECK(slow.target.writes == 10);  // each packet placed once, however often it came
      const auto received = slow.lab.b().received();
      CHECK(received.size() == (opcode == WorkOpcode::write ? 0 : 1));
      CHECK(slow.lab.a().counters().memory_waits >= 10);
      CHECK(slow.lab.b().counters().memory_waits >= 1);
      CHECK(slow.lab.leftovers().empty());
    }
  }
}

// The responder waits for what it is to send, the requester for the place where it goes.
TEST_CASE("both ends answer later, for READ", "[transport]") {
  for (const Picos timeout : {picos_from_micros(10'000), picos_from_micros(20)}) {
    Slow slow(options_with(timeout));
    const std::uint64_t length = 9 * kMtu + 77;
    auto& at_a = slow.lab.a().engine.regions();
    auto& at_b = slow.lab.b().engine.regions();
    const std::uint32_t to = at_a.add_provided(0, 64 * kMtu, slow.source, access::local_write);
    const std::uint32_t from = at_b.add_provided(0, 64 * kMtu, slow.target, access::remote_read);
    Lab::fill(slow.target.bytes(), 12);
    WorkRequest request = slow.request(WorkOpcode::read, length);
    request.local_key = to;
    request.remote_key = from;
    REQUIRE(slow.lab.post(0, slow.pair.a, request) == PostResult::ok);
    // What comes behind it has to wait for it.
    WorkRequest write = slow.lab.request(WorkOpcode::write, 2, 0, 0, 8);
    REQUIRE(slow.lab.post(0, slow.pair.a, write) == PostResult::ok);
    run_answering(slow.lab, slow.source, slow.target);
    CAPTURE(timeout.count);
    const auto sent = slow.lab.a().sent();
    REQUIRE(sent.size() == 2);
    CHECK(sent[0].opcode == CompletionOpcode::read);
    CHECK(sent[0].status == CompletionStatus::success);
    CHECK(sent[1].status == CompletionStatus::success);
    CHECK(std::memcmp(slow.source.bytes().data(), slow.target.bytes().data(), length) == 0);
    CHECK(slow.source.writes == 10);
    CHECK(slow.lab.a().counters().memory_waits == 10);
    CHECK(slow.lab.b().counters().memory_waits >= 10);
    CHECK(slow.lab.leftovers().empty());
  }
}

TEST_CASE("READ: a fault of the far memory is a remote error, of the near one a local",
          "[transport]") {
  for (const bool far : {true, false}) {
    Slow slow(options_with(picos_from_micros(10'000)));
    (far ? slow.target : slow.source).fault_at = 3 * kMtu;
    WorkRequest request = slow.request(WorkOpcode::read, 8 * kMtu);
    request.local_key =
        slow.lab.a().engine.regions().add_provided(0, 64 * kMtu, slow.source, access::local_write);
    request.remote_key =
        slow.lab.b().engine.regions().add_provided(0, 64 * kMtu, slow.target, access::remote_read);
    slow.lab.post(0, slow.pair.a, request);
    run_answering(slow.lab, slow.source, slow.target);
    CAPTURE(far);
    const auto sent = slow.lab.a().sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status ==
          (far ? CompletionStatus::remote_access_error : CompletionStatus::local_protection_error));
    CHECK(slow.lab.a().counters().rx_data_packets == 3);
    slow.lab.b().engine.destroy_qp(slow.lab.now(), slow.pair.b);
    CHECK(slow.lab.leftovers().empty());
  }
}

TEST_CASE("a fault of the source is a local error, of the target a remote one", "[transport]") {
  for (const bool at_source : {true, false}) {
    Slow slow(options_with(picos_from_micros(10'000)));
    (at_source ? slow.source : slow.target).fault_at = 3 * kMtu;
    slow.lab.post(0, slow.pair.a, slow.request(WorkOpcode::write, 8 * kMtu));
    run_answering(slow.lab, slow.source, slow.target);
    CAPTURE(at_source);
    const auto sent = slow.lab.a().sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == (at_source ? CompletionStatus::local_protection_error
                                       : CompletionStatus::remote_access_error));
    // Packets parked behind the one that failed were not answered one by one.
    CHECK(slow.lab.b().counters().error_naks_sent == (at_source ? 0 : 1));
    CHECK(slow.lab.leftovers().empty());
  }
}

TEST_CASE("a queue pair may be destroyed while memory is waited for", "[transport]") {
  Slow slow(options_with(picos_from_micros(10'000)));
  slow.lab.post(0, slow.pair.a, slow.request(WorkOpcode::write, 8 * kMtu));
  for (int i = 0; i < 5; ++i) {
    slow.lab.run(slow.lab.now() + picos_from_micros(5));
    if (slow.source.waiting != 0) {
      slow.source.waiting = 0;
      slow.lab.a().engine.memory_ready(slow.lab.now(), slow.pair.a);
      slow.lab.touch(0);
    }
  }
  REQUIRE(slow.target.waiting == slow.pair.b);
  CHECK(slow.lab.b().port.packets().in_use() > 0);  // parked
  slow.lab.b().engine.destroy_qp(slow.lab.now(), slow.pair.b);
  slow.lab.b().engine.memory_ready(slow.lab.now(), slow.pair.b);  // too late: nobody listens
  CHECK(slow.lab.b().port.packets().in_use() == 0);
  slow.lab.a().engine.destroy_qp(slow.lab.now(), slow.pair.a);
  CHECK(slow.lab.run(picos_from_micros(50'000)));
  CHECK(slow.lab.leftovers().empty());
}

class DeadMemory final : public MemoryProvider {
 public:
  MemoryResult read(const MemoryCaller&, std::uint64_t, std::span<std::byte>) override {
    return MemoryResult::pending;
  }
  MemoryResult write(const MemoryCaller&, std::uint64_t, std::span<const std::byte>) override {
    return MemoryResult::pending;
  }
};

TEST_CASE("packets for memory that never answers are bounded, and leave room for others",
          "[transport]") {
  constexpr std::uint64_t kBytes = 256 * kMtu;
  for (const QpType type : {QpType::uc, QpType::rc}) {
    LabOptions options = options_with(picos_from_micros(100'000));
    options.qp.type = type;
    options.pool_packets = 100'000;
    Lab lab(options);
    DeadMemory dead;
    const auto flood = [&, key = lab.b().engine.regions().add_provided(
                               0, kBytes, dead, access::local_write | access::remote_write)](
                           std::uint32_t qp, unsigned messages) {
      for (unsigned i = 0; i < messages; ++i) {
        WorkRequest request = lab.request(WorkOpcode::write, i, 0, 0, kBytes);
        request.remote_address = 0;
        request.remote_key = key;
        REQUIRE(lab.post(0, qp, request) == PostResult::ok);
        lab.run(lab.now() + picos_from_micros(25));
      }
    };
    const auto held = [&] { return lab.b().port.packets().in_use(); };
    const Lab::Pair first = lab.connect(), second = lab.connect();
    flood(first.a, 60);  // 15,360 packets
    CAPTURE(static_cast<int>(type));
    const std::uint32_t half = EngineCore::kMostParked / 2;
    CHECK((held() >= half && held() <= half + 10));
    const telemetry::EngineCounters& c = lab.b().counters();
    CHECK((type == QpType::uc ? c.dropped_no_receive : c.dropped_gap) > 5000);
    flood(second.a, 20);
    CHECK((held() >= half + half / 2 && held() <= half + half / 2 + 10));
    CHECK(lab.b().engine.view().check_conservation() == "");
    for (const Lab::Pair& pair : {first, second}) {
      lab.b().engine.destroy_qp(lab.now(), pair.b);
      lab.a().engine.destroy_qp(lab.now(), pair.a);
    }
    lab.run(lab.now() + picos_from_micros(100));
    CHECK(held() == 0);
  }
}

}  // namespace
}  // namespace paceline::transport::test
