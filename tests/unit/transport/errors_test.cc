// Requests that can never succeed: refused once, with the right reason at both ends.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

struct Outcome {
  CompletionStatus sender;
  std::vector<Completion> received;
};

// One request, one flushed behind it; both queue pairs end in error, and b's memory is untouched.
Outcome refused(Lab& lab, WorkRequest request) {
  const Lab::Pair pair = lab.connect();
  REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 99, 0, 0, 8)) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].wr_id == request.wr_id);
  CHECK(sent[1].status == CompletionStatus::flushed);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  CHECK(lab.b().engine.view().state_of(pair.b) == QpState::error);
  // Not a matter of sequence numbers.
  CHECK(lab.a().counters().naks_received == 0);
  CHECK(lab.b().counters().naks_sent == 0);
  CHECK(lab.a().counters().error_naks_received == 1);
  CHECK(lab.b().counters().error_naks_sent == 1);
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(lab.leftovers().empty());
  return {sent[0].status, lab.b().received()};
}

bool untouched(const Lab::Side& side) {
  return std::all_of(side.memory.begin(), side.memory.end(),
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST_CASE("WRITE: unknown key, stale key, out of bounds, no right", "[transport]") {
  for (int fault = 0; fault < 6; ++fault) {
    Lab lab(small_packets());
    Lab::fill(lab.a().memory, 1);
    WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 3 * kMtu);
    auto& regions = lab.b().engine.regions();
    std::vector<std::byte> other(8 * kMtu);
    switch (fault) {
      case 0:
        request.remote_key ^= 0x5500;
        break;
      case 1:  // the key of a region that is gone, its slot in use again
        request.remote_key = regions.add_plain(Lab::kBase, other, access::remote_write);
        regions.remove(request.remote_key);
        regions.add_plain(Lab::kBase, other, access::remote_write);
        break;
      case 2:
        request.remote_address = Lab::kBase - 1;
        break;
      case 3:
        request.remote_address = Lab::kBase + Lab::kMemoryBytes - 3 * kMtu + 1;
        break;
      case 4:  // wraps around the address space
        request.remote_address = ~std::uint64_t{0} - kMtu;
        break;
      case 5:
        request.remote_key = regions.add_plain(Lab::kBase, other, access::local_write);
        break;
    }
    CAPTURE(fault);
    CHECK(refused(lab, request).sender == CompletionStatus::remote_access_error);
    CHECK(untouched(lab.b()));
    CHECK(std::all_of(other.begin(), other.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_CASE("an empty WRITE needs no valid key", "[transport]") {
  Lab lab(small_packets());
  const Lab::Pair pair = lab.connect();
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 0);
  request.remote_key = 0;
  request.remote_address = 0;
  request.local_key = 0;
  REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
}

TEST_CASE("a SEND longer than the receive request is an error at both ends", "[transport]") {
  for (const std::uint64_t length : {std::uint64_t{101}, std::uint64_t{2 * kMtu + 1}}) {
    Lab lab(small_packets());
    REQUIRE(lab.b().post_receive(4, 0, length - 1));
    const Outcome outcome = refused(lab, lab.request(WorkOpcode::send, 1, 0, 0, length));
    CHECK(outcome.sender == CompletionStatus::remote_invalid_request);
    REQUIRE(outcome.received.size() == 1);
    CHECK(outcome.received[0].wr_id == 4);
    CHECK(outcome.received[0].status == CompletionStatus::local_length_error);
  }
}

// The receive request was taken from the queue: it must come back as a completion.
TEST_CASE("a SEND into memory without the right to write", "[transport]") {
  Lab lab(small_packets());
  std::vector<std::byte> readonly(4 * kMtu);
  const std::uint32_t key = lab.b().engine.regions().add_plain(Lab::kBase, readonly, 0);
  REQUIRE(lab.b().receives.post({4, Lab::kBase, 4 * kMtu, key}));
  const Outcome outcome = refused(lab, lab.request(WorkOpcode::send, 1, 0, 0, 3 * kMtu));
  CHECK(outcome.sender == CompletionStatus::remote_operational_error);
  REQUIRE(outcome.received.size() == 1);
  CHECK(outcome.received[0].wr_id == 4);
  CHECK(outcome.received[0].status == CompletionStatus::local_protection_error);
}

TEST_CASE("a receive request taken by a message that never ends is flushed", "[transport]") {
  Lab lab(small_packets());
  const Lab::Pair pair = lab.connect(100, 0);
  REQUIRE(lab.b().post_receive(4, 0, 4 * kMtu));
  lab.b().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = p.psn.value() >= 102;
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 4 * kMtu));
  lab.run(picos_from_micros(20));
  CHECK(lab.b().received().empty());
  lab.b().engine.destroy_qp(lab.now(), pair.b);
  const auto received = lab.b().received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 4);
  CHECK(received[0].status == CompletionStatus::flushed);
}

TEST_CASE("what is wrong from the start is refused at the post", "[transport]") {
  Lab lab(small_packets());
  const Lab::Pair pair = lab.connect();
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, kMaxMessageBytes + 1);
  CHECK(lab.post(0, pair.a, request) == PostResult::bad_length);
  request = lab.request(WorkOpcode::write, 1, 1, 0, Lab::kMemoryBytes);
  CHECK(lab.post(0, pair.a, request) == PostResult::bad_key);
  request = lab.request(WorkOpcode::write, 1, 0, 0, 1);
  request.local_key = 0xABCD00;
  CHECK(lab.post(0, pair.a, request) == PostResult::bad_key);
  const std::uint32_t idle = lab.a().engine.create_qp(lab.qp_config(0));
  request = lab.request(WorkOpcode::write, 1, 0, 0, 1);
  CHECK(lab.post(0, idle, request) == PostResult::bad_state);
  CHECK(lab.post(0, 0xFFFF, request) == PostResult::bad_state);
  CHECK(lab.run(picos_from_micros(100)));
  CHECK(lab.a().counters().tx_data_packets == 0);
  lab.a().engine.destroy_qp(lab.now(), idle);  // never connected
  CHECK(lab.leftovers().empty());
}

TEST_CASE("memory deregistered under way ends the request here", "[transport]") {
  Lab lab(small_packets());
  std::vector<std::byte> source(100 * kMtu);
  const std::uint32_t key = lab.a().engine.regions().add_plain(0, source, 0);
  const Lab::Pair pair = lab.connect();
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, source.size());
  request.local_address = 0;
  request.local_key = key;
  lab.post(0, pair.a, request);
  lab.run(picos_from_micros(3));
  lab.a().engine.regions().remove(key);
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::local_protection_error);
  CHECK(lab.leftovers().empty());
}

}  // namespace
}  // namespace paceline::transport::test
