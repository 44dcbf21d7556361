// A completion that a program can see has made room before: each way of publishing one.
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <new>
#include <vector>

#include "dataplane/service/adapters/completion_adapter.h"
#include "dataplane/service/adapters/pair_adapter.h"
#include "dataplane/service/adapters/receive_adapter.h"

using namespace paceline;
using namespace paceline::service;

namespace {

constexpr std::uint32_t kRequests = 4;
constexpr std::uint32_t kNumber = 16;

// A shared receive queue that is full, a completion queue, and a queue pair that uses both.
struct SharedRoom {
  SharedRoom() {
    new (receive_memory.data()) attach::WorkQueueHeader;
    new (queue_memory.data()) attach::CompletionQueueHeader;
    const attach::WorkQueueShape shape = attach::receive_queue_shape(kRequests, 1);
    for (std::uint32_t i = 0; i < kRequests; ++i) {
      attach::ReceiveSlot slot;
      slot.wr_id = i;
      new (receive_memory.data() + shape.offset(i)) attach::ReceiveSlot(slot);
    }
    work().tail.value.store(kRequests);
    REQUIRE(receives.pump());
    PairAdapter::Setup setup;
    setup.receive_cq = &queue;
    setup.shared = &receives;
    pair.emplace_back(setup);
    pair.front().set_number(kNumber);
    pairs.add(kNumber, &pair.front());
  }
  // As the engine when a message has come.
  void complete() {
    transport::ReceiveRequest request;
    std::array<transport::Segment, transport::kMaxSegments> segments;
    REQUIRE(receives.queue().take(request, segments.data()));
    transport::Completion completion;
    completion.wr_id = request.wr_id;
    completion.qp_number = kNumber;
    completion.opcode = transport::CompletionOpcode::receive;
    REQUIRE(queue.queue().push(completion));
  }
  attach::WorkQueueHeader& work() {
    return *reinterpret_cast<attach::WorkQueueHeader*>(receive_memory.data());
  }
  std::uint32_t taken() { return work().taken.value.load(); }

  alignas(64) std::array<std::byte, 1024> receive_memory{};
  alignas(64) std::array<std::byte, 2048> queue_memory{};
  SharedReceives receives{
      1, WorkQueueView(receive_memory.data(), attach::receive_queue_shape(kRequests, 1)), 1};
  CompletionAdapter queue{2, {8}, queue_memory.data(), -1, 0};
  std::vector<PairAdapter> pair;
  PairTable pairs;
};

}  // namespace

TEST_CASE("a completion queue that is drained has told the room of its shared receive queue") {
  SharedRoom room;
  room.complete();
  room.complete();
  CHECK(room.taken() == 0);
  REQUIRE(room.queue.drain(room.pairs));
  CHECK(room.queue.waiting() == 2);
  CHECK(room.taken() == 2);
}

TEST_CASE("an entry of the service's own making brings no completion before its room") {
  SharedRoom room;
  room.complete();
  room.queue.push(room.pairs, {});
  CHECK(room.queue.waiting() == 2);
  CHECK(room.taken() == 1);
}
