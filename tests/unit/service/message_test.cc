// Messages from program to program through a running service: bytes, names and counts.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;

namespace {

void fill(std::vector<std::byte>& memory, unsigned seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::byte>(i * 31 + seed + i / 251);
  }
}

}  // namespace

TEST_CASE("a message goes from the memory of one program to that of another", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  fill(a.memory, 1);
  fill(b.memory, 2);

  const attach::SharedSegment into[] = {b.piece(5, 1000), b.piece(4000, 40'000)};
  b.pair.post_receive(77, into);
  const attach::SharedSegment from[] = {a.piece(3, 20'000), a.piece(30'001, 10'000)};
  attach::SendSlot slot = signaled_slot(attach::SendOpcode::send_imm, 55);
  slot.immediate = 0x1234'5678;
  a.pair.post_send(slot, from);

  attach::CompletionEntry sent;
  REQUIRE(a.cq.wait(sent));
  CHECK(sent.status == attach::EntryStatus::success);
  CHECK(sent.wr_id == 55);
  CHECK(sent.retired == 1);
  CHECK(sent.opcode == attach::EntryOpcode::send);
  CHECK(sent.qp_number == a.pair.reply.qp_number);
  attach::CompletionEntry received;
  REQUIRE(b.cq.wait(received));
  CHECK(received.status == attach::EntryStatus::success);
  CHECK(received.wr_id == 77);
  CHECK(received.retired == 1);
  CHECK(received.bytes == 30'000);
  CHECK((received.flags & attach::entry_flag::immediate) != 0);
  CHECK(received.immediate == 0x1234'5678);
  CHECK(received.opcode == attach::EntryOpcode::receive);

  std::vector<std::byte> expected(b.memory.size());
  fill(expected, 2);
  std::vector<std::byte> message(a.memory.begin() + 3, a.memory.begin() + 20'003);
  message.insert(message.end(), a.memory.begin() + 30'001, a.memory.begin() + 40'001);
  std::memcpy(expected.data() + 5, message.data(), 1000);
  std::memcpy(expected.data() + 4000, message.data() + 1000, 29'000);
  CHECK(b.memory == expected);
}
