// Queues and lives of queue pairs: shared receive queue, full queues, destruction while in use,
// reuse.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <set>
#include <vector>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

TEST_CASE("several queue pairs share one receive queue", "[transport]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 1);
  constexpr std::uint64_t kEach = 3 * kMtu + 1;
  std::vector<Lab::Pair> pairs;
  for (unsigned i = 0; i < 4; ++i) pairs.push_back(lab.connect(i * 1000, 0));
  for (std::uint64_t i = 0; i < 12; ++i) lab.b().post_receive(i, i * 4 * kMtu, 4 * kMtu);
  for (std::uint64_t i = 0; i < 12; ++i) {
    lab.post(0, pairs[i % 4].a,
             lab.request(WorkOpcode::send_imm, i, i * 4 * kMtu, 0, kEach,
                         static_cast<std::uint32_t>(i)));
  }
  CHECK(lab.run(picos_from_micros(5000)));
  const auto received = lab.b().received();
  REQUIRE(received.size() == 12);
  std::set<std::uint64_t> used;
  for (const Completion& c : received) {
    CHECK(used.insert(c.wr_id).second);  // each receive request serves one message
    CHECK(c.bytes == kEach);
    CHECK(c.qp_number == pairs[c.immediate % 4].b);
    CHECK(std::memcmp(lab.b().memory.data() + c.wr_id * 4 * kMtu,
                      lab.a().memory.data() + std::size_t{c.immediate} * 4 * kMtu, kEach) == 0);
  }
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a full send queue says so and takes more once requests complete", "[transport]") {
  LabOptions options = small_packets();
  options.qp.send_queue_depth = 4;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  const WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 10);
  for (int i = 0; i < 4; ++i) CHECK(lab.post(0, pair.a, request) == PostResult::ok);
  CHECK(lab.post(0, pair.a, request) == PostResult::queue_full);
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(lab.a().sent().size() == 4);
  CHECK(lab.post(0, pair.a, request) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(9000)));
  CHECK(lab.a().sent().size() == 1);
}

TEST_CASE("a completion queue that overflows is in error and keeps what it has", "[transport]") {
  Lab lab(small_packets());
  CompletionQueue small(2);
  QpConfig config = lab.qp_config(0);
  config.send_cq = &small;
  const Lab::Pair pair = lab.connect(config, lab.qp_config(1), 1, 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, i, 0, 0, 1));
  }
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(small.overflowed());
  CHECK(lab.a().counters().cq_overflows == 1);
  std::array<Completion, 4> out;
  REQUIRE(small.poll(out) == 2);
  CHECK(out[0].wr_id == 0);
  CHECK(out[1].wr_id == 1);
}

TEST_CASE("PSNs in flight stay comparable: a queue of 2^23 packets is full", "[transport]") {
  LabOptions options = small_packets();
  options.engine.payload_mtu = 256;
  Lab lab(options);
  const std::uint32_t key = lab.a().engine.regions().add_elided(0, kMaxMessageBytes, 0);
  const Lab::Pair pair = lab.connect();
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, kMaxMessageBytes - 512);
  request.local_address = 0;
  request.local_key = key;
  CHECK(lab.post(0, pair.a, request) == PostResult::ok);  // 2^23 - 2 packets
  request.length = 512;
  CHECK(lab.post(0, pair.a, request) == PostResult::queue_full);
}

// Destroys either end, or both, at many moments of a transfer; uses the slots again at once.
TEST_CASE("destruction with packets in flight, and reuse of the number", "[transport]") {
  for (int moment = 0; moment < 60; ++moment) {
    LabOptions options = small_packets();
    options.qp.retransmit_timeout = picos_from_micros(30);
    options.qp.retry_count = 1;
    Lab lab(options);
    Lab::fill(lab.a().memory, 9);
    const Lab::Pair old = lab.connect(100, 0);
    lab.b().post_receive(7, 0, 64 * kMtu);
    lab.post(0, old.a, lab.request(WorkOpcode::send, 1, 0, 0, 60 * kMtu));
    lab.post(0, old.a, lab.request(WorkOpcode::write, 2, 0, 0, kMtu));
    lab.run(picos_from_nanos(200 * moment));
    CAPTURE(moment);
    if (moment % 3 != 1) lab.a().engine.destroy_qp(lab.now(), old.a);
    if (moment % 3 != 0) lab.b().engine.destroy_qp(lab.now(), old.b);
    lab.touch(0);
    lab.touch(1);
    if (moment % 3 == 2) {
      // Both are gone, but not their packets. The new connection has their place, and begins where
      // their sequence numbers would be right; the generation in its number keeps them out.
      const Lab::Pair fresh = lab.connect(100 + static_cast<std::uint32_t>(moment) % 60, 0);
      CHECK(fresh.a != old.a);
      CHECK((fresh.a & 0x3'FFFF) == (old.a & 0x3'FFFF));
      lab.post(0, fresh.a, lab.request(WorkOpcode::write_imm, 3, 0, 2 << 20, 5 * kMtu, 1));
      lab.b().post_receive(8, 0, 0);
      lab.b().post_receive(9, 0, 0);
      CHECK(lab.run(picos_from_micros(5000)));
      CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data() + (2 << 20), 5 * kMtu) == 0);
      CHECK(lab.b().engine.view().state_of(fresh.b) == QpState::rts);
    } else {
      CHECK(lab.run(picos_from_micros(5000)));
    }
    // Two requests, or three: each completed once, one way or the other.
    CHECK(lab.a().sent().size() == (moment % 3 == 2 ? 3U : 2U));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("many queue pairs come and go without a trace", "[transport]") {
  Lab lab(small_packets());
  for (int round = 0; round < 70; ++round) {  // generations wrap
    std::vector<Lab::Pair> pairs;
    for (unsigned i = 0; i < 5; ++i) pairs.push_back(lab.connect(i, i));
    for (const auto& pair : pairs) {
      CHECK((pair.a & 0x3'FFFF) < 16 + 5);  // the slots are used again
      CHECK(pair.a < 0xFF'FFFD);            // not one of the reserved numbers
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 2 * kMtu));
    }
    CHECK(lab.run(lab.now() + picos_from_micros(5000)));
    CHECK(lab.a().sent().size() == 5);
    for (const auto& pair : pairs) {
      lab.a().engine.destroy_qp(lab.now(), pair.a);
      lab.b().engine.destroy_qp(lab.now(), pair.b);
      CHECK(lab.a().engine.view().state_of(pair.a) == QpState::reset);
    }
    CHECK(lab.leftovers().empty());
  }
  CHECK(lab.a().engine.next_deadline() == kNever);
}

TEST_CASE("a number that was just freed comes again after all other free ones", "[transport]") {
  LabOptions options = small_packets();
  options.engine.spare_queue_pairs = GENERATE(0U, 6U);
  Lab lab(options);
  Engine& engine = lab.a().engine;
  const auto make = [&] { return engine.create_qp(lab.qp_config(0)); };
  const auto slot = [](std::uint32_t number) { return EngineCore::qp_slot(number); };
  std::vector<std::uint32_t> lasting;  // what others hold does not matter
  for (unsigned i = 0; i < 3; ++i) lasting.push_back(make());
  std::deque<std::uint32_t> freed;
  for (unsigned i = 0; i < 4; ++i) freed.push_back(make());
  for (const std::uint32_t number : freed) engine.destroy_qp(lab.now(), number);
  // Fresh places until enough are spare, then the one that has been free for longest.
  std::set<std::uint32_t> seen;
  const std::size_t spare = std::max<std::size_t>(options.engine.spare_queue_pairs, 3);
  while (seen.size() < 63 * (spare + 1)) {
    const std::uint32_t number = make();
    CHECK(seen.insert(number).second);  // none comes twice before all of them have come
    const auto same = std::find_if(freed.begin(), freed.end(), [&](std::uint32_t other) {
      return slot(other) == slot(number);
    });
    if (same != freed.end()) {
      CHECK(freed.size() > spare);
      CHECK(same == freed.begin());
      CHECK(*same != number);
      freed.erase(same);
    } else {
      CHECK(freed.size() <= spare);
    }
    engine.destroy_qp(lab.now(), number);
    freed.push_back(number);
  }
  CHECK(freed.size() == spare + 1);  // and the table stays as small as that
  for (const std::uint32_t number : lasting) {
    CHECK(engine.query_qp(number).has_value());
    CHECK(!seen.contains(number));
  }
}

}  // namespace
}  // namespace paceline::transport::test
