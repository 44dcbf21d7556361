// Datagrams of programs.
#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

constexpr std::uint32_t kQkey = 7;

void make_ready(End& end) {
  end.pair = ClientPair();
  REQUIRE(end.pair.create(end.client, end.request(attach::PairType::ud)) == 0);
  attach::QpValues values = to_init();
  values.mask = qp_bit::state | qp_bit::pkey | qp_bit::port | 1U << 6U;
  values.qkey = kQkey;
  REQUIRE(end.modify(values) == 0);
  values = {};
  values.mask = qp_bit::state;
  values.state = 2;
  REQUIRE(end.modify(values) == 0);
  values.mask = qp_bit::state | qp_bit::sq_psn;
  values.state = 3;
  REQUIRE(end.modify(values) == 0);
}

}  // namespace

// As the last acknowledgement of a protocol that is built on datagrams.
TEST_CASE("what was posted to a queue pair before it is destroyed is sent", "[threads]") {
  constexpr std::uint32_t kDatagrams = 12;
  RunningService service;
  End a(service, "h0");
  End b(service, "h1");
  make_ready(b);
  attach::CreateAhRequest way;
  way.pd = a.pd;
  way.path.destination_id = b.client.info().local_id;
  way.path.port = 1;
  const auto handle = a.client.get<attach::HandleBody>(Operation::create_ah, way).handle;
  REQUIRE(handle != 0);
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
      const attach::SharedSegment place[] = {b.piece(256 * i, 256)};
      b.pair.post_receive(i, place);
    }
    make_ready(a);
    attach::SendSlot slot;
    slot.address_handle = handle;
    slot.target_qp = b.pair.reply.qp_number;
    slot.target_qkey = kQkey;
    const attach::SharedSegment piece[] = {a.piece(0, 64)};
    for (std::uint32_t i = 0; i < kDatagrams; ++i) a.pair.post_send(slot, piece);
    REQUIRE(a.client.ask(Operation::destroy_qp, attach::HandleBody{a.pair.reply.handle, 0}).ok());
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
      attach::CompletionEntry entry;
      REQUIRE(b.cq.wait(entry, 2000));
      CHECK(entry.status == attach::EntryStatus::success);
    }
  }
}

TEST_CASE("a memory window is bound by a connected queue pair, and by no other", "[threads]") {
  RunningService service;
  End a(service, "h0");
  End b(service, "h1");
  const auto region = a.client.register_region(
      a.memory.data(), a.memory.size(), a.pd,
      attach::region_access::local_write | attach::region_access::window_bind);
  const auto window = a.client.get<attach::WindowReply>(Operation::allocate_window,
                                                        attach::AllocateWindowRequest{a.pd, 2});
  REQUIRE(window.handle != 0);
  attach::SendSlot bind = signaled_slot(attach::SendOpcode::bind_window, 1);
  bind.remote_key = window.key ^ 1U;
  bind.address_handle = region.local_key;
  bind.remote_address = reinterpret_cast<std::uint64_t>(a.memory.data());
  bind.compare_add = 4096;
  bind.swap = attach::region_access::remote_write;
  const auto status = [&] {
    a.pair.post_send(bind, {});
    attach::CompletionEntry entry;
    REQUIRE(a.cq.wait(entry));
    CHECK(entry.opcode == attach::EntryOpcode::bind_window);
    return entry.status;
  };
  make_ready(a);
  CHECK(status() == attach::EntryStatus::local_qp_operation_error);
  CHECK(status() == attach::EntryStatus::flushed);  // it has failed

  a.pair = ClientPair();
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  REQUIRE(b.pair.create(b.client, b.request()) == 0);
  connect(a, b);
  CHECK(status() == attach::EntryStatus::success);
}
