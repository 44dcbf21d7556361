// Datagrams of the captures, both ways: taken as they came, and sent again byte for byte.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/wire/replay.h"

namespace paceline::test {
namespace {

using namespace transport;

constexpr std::uint32_t kKey = 1;
constexpr std::size_t kRoom = 2048;

Conversation captured() {
  auto all = conversations_of("ud_send");
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].packets.size() == 5);
  return all[0];
}

QpConfig datagrams(const Conversation& c) {
  QpConfig qp;
  qp.type = QpType::ud;
  qp.qkey = c.packets.front().parsed.ext.deth.qkey;
  return qp;
}

}  // namespace

TEST_CASE("replay: captured datagrams are received behind their header") {
  const Conversation c = captured();
  ReplayEnd end(c.responder, c.requester, c.qpn, c.first_psn(), Psn(1), datagrams(c));
  std::vector<std::byte> memory(c.packets.size() * kRoom);
  end.add_region(kKey, 0, memory);
  for (std::size_t i = 0; i < c.packets.size(); ++i) {
    REQUIRE(end.receives.post({i, i * kRoom, kRoom, end.key_of(kKey)}));
    end.feed(c.packets[i]);
  }
  CHECK(end.take_sent().empty());
  const auto done = end.completions(end.receipts);
  REQUIRE(done.size() == c.packets.size());
  for (std::size_t i = 0; i < done.size(); ++i) {
    const auto payload = c.packets[i].payload();
    CHECK(done[i].status == CompletionStatus::success);
    CHECK(done[i].bytes == payload.size() + kGrhBytes);
    CHECK(done[i].source_qp_number == c.packets[i].parsed.ext.deth.source_qpn);
    const auto at = memory.begin() + static_cast<std::ptrdiff_t>(i * kRoom + kGrhBytes);
    CHECK(std::equal(payload.begin(), payload.end(), at));
    // The IPv4 header as it came.
    const auto header = c.packets[i].frame.begin() + c.packets[i].parsed.l3_offset;
    CHECK(std::equal(header, header + 20, at - 20));
  }
}

TEST_CASE("replay: captured datagrams are sent alike, from transport header to payload") {
  const Conversation c = captured();
  ReplayEnd end(c.requester, c.responder, c.qpn, Psn(1), c.first_psn(), datagrams(c));
  std::vector<std::byte> memory(c.packets.size() * kRoom);
  end.add_region(kKey, 0, memory);
  const std::uint32_t handle = end.address_handle();
  for (std::size_t i = 0; i < c.packets.size(); ++i) {
    const auto payload = c.packets[i].payload();
    std::copy(payload.begin(), payload.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(i * kRoom));
    WorkRequest request;
    request.wr_id = i;
    request.length = payload.size();
    request.local_address = i * kRoom;
    request.local_key = end.key_of(kKey);
    request.address_handle = handle;
    request.target_qp_number = c.qpn;
    request.target_qkey = c.packets[i].parsed.ext.deth.qkey;
    REQUIRE(end.engine().post_send(end.now(), end.qp(), request) == PostResult::ok);
  }
  end.touch();
  while (end.step()) {
  }
  const auto sent = end.take_sent();
  REQUIRE(sent.size() == c.packets.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const wire::ParsedPacket& ours = sent[i].parsed;
    const wire::ParsedPacket& theirs = c.packets[i].parsed;
    CHECK(ours.bth().opcode == theirs.bth().opcode);
    CHECK(ours.psn == theirs.psn);
    CHECK(ours.dest_qpn == theirs.dest_qpn);
    CHECK(ours.pad == theirs.pad);
    CHECK(ours.ack_request == theirs.ack_request);
    CHECK(ours.ext.deth.qkey == theirs.ext.deth.qkey);
    CHECK(ours.ext.deth.source_qpn == end.qp());  // the one number that is ours to give
    const auto a = sent[i].payload();
    const auto b = c.packets[i].payload();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

}  // namespace paceline::test
