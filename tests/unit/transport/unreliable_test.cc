// Unreliable connection: whole messages or none, and no word about it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions uc_options() {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.qp.type = QpType::uc;
  return options;
}

TEST_CASE("UC: every size arrives over a good cable, without one answer", "[transport][uc]") {
  Lab lab(uc_options());
  Lab::fill(lab.a().memory, 3);
  const Lab::Pair pair = lab.connect(0xFF'FFFC, 0);
  const std::uint64_t sizes[] = {0, 1, 3, kMtu - 1, kMtu, kMtu + 1, 5 * kMtu, 9 * kMtu + 3};
  constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::send_imm, WorkOpcode::write,
                                     WorkOpcode::write_imm};
  std::uint64_t at = 1;
  std::uint64_t id = 0;
  std::size_t receives = 0;
  for (const WorkOpcode opcode : kOpcodes) {
    for (const std::uint64_t size : sizes) {
      if (opcode != WorkOpcode::write) {
        REQUIRE(lab.b().post_receive(id, at, size));
        ++receives;
      }
      REQUIRE(lab.post(0, pair.a, lab.request(opcode, id++, at, at, size, 77)) == PostResult::ok);
      at += size + 1;
    }
  }
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == id);
  for (std::size_t i = 0; i < sent.size(); ++i) CHECK(sent[i].wr_id == i);
  const auto received = lab.b().received();
  REQUIRE(received.size() == receives);
  for (const Completion& c : received) CHECK(c.status == CompletionStatus::success);
  for (std::uint64_t i = 0, o = 1; i < std::size(kOpcodes); ++i) {
    for (const std::uint64_t size : sizes) {
      CHECK(std::memcmp(lab.a().memory.data() + o, lab.b().memory.data() + o, size) == 0);
      CHECK(lab.b().memory[o + size] == std::byte{0});
      o += size + 1;
    }
  }
  CHECK(lab.a().counters().rx_packets == 0);
  CHECK(lab.b().counters().unreliable_drops == 0);
  CHECK(lab.a().engine.view().inflight_bytes() == 0);
  CHECK(lab.leftovers().empty());
}

// 9.8.2.2: a gap drops what is left of the message; a First or Only packet starts again.
TEST_CASE("UC: a lost packet costs its message and no other", "[transport][uc]") {
  for (const WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::write_imm}) {
    for (std::uint32_t lost = 100; lost < 115; ++lost) {
      Lab lab(uc_options());
      Lab::fill(lab.a().memory, lost);
      const Lab::Pair pair = lab.connect(100, 0);
      lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
        verdict.drop = p.psn.value() == lost;
        return true;
      });
      for (std::uint64_t id = 0; id < 3; ++id) {
        REQUIRE(lab.b().post_receive(id, 0x10'0000, 5 * kMtu));
        lab.post(0, pair.a,
                 lab.request(opcode, id, id * 8192, id * 8192, 5 * kMtu,
                             static_cast<std::uint32_t>(id)));
      }
      CHECK(lab.run(picos_from_micros(1000)));
      CAPTURE(static_cast<int>(opcode), lost);
      CHECK(lab.a().sent().size() == 3);
      const auto received = lab.b().received();
      REQUIRE(received.size() == 2);
      // The receive requests are used in order, whichever message is missing.
      CHECK(received[0].wr_id == 0);
      CHECK(received[1].wr_id == 1);
      if (opcode == WorkOpcode::write_imm) {
        const std::uint32_t missing = (lost - 100) / 5;
        CHECK(received[0].immediate == (missing == 0 ? 1 : 0));
        CHECK(received[1].immediate == (missing == 2 ? 1 : 2));
      }
      // Nobody here can know that the very last packet is missing.
      CHECK((lab.b().counters().unreliable_drops >= 1) == (lost != 114));
      CHECK(lab.a().counters().rx_packets == 0);
      CHECK(lab.b().engine.view().state_of(pair.b) == QpState::rts);
      CHECK(lab.leftovers().empty());
    }
  }
}

TEST_CASE("UC: over bad cables every message is whole or not there", "[transport][uc]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    LabOptions options = uc_options();
    options.seed = seed;
    options.impairments = {.drop = 0.02, .corrupt = 0.02, .reorder = 0.02};
    Lab lab(options);
    const Lab::Pair pair = lab.connect(0xFF'FFF0, 0);
    constexpr std::uint64_t kMessages = 100;
    constexpr std::uint64_t kRoom = 8192;
    for (std::uint64_t id = 0; id < kMessages; ++id) {
      std::memset(lab.a().memory.data() + id * kRoom, static_cast<int>(id + 1), kRoom);
      REQUIRE(lab.b().post_receive(id, id * kRoom, kRoom));
      REQUIRE(lab.post(0, pair.a,
                       lab.request(WorkOpcode::send_imm, id, id * kRoom, 0, kRoom - id,
                                   static_cast<std::uint32_t>(id))) == PostResult::ok);
    }
    lab.run(picos_from_micros(10'000));
    CAPTURE(seed);
    CHECK(lab.a().sent().size() == kMessages);
    const auto received = lab.b().received();
    CHECK(received.size() > 25);
    CHECK(received.size() < kMessages);
    std::uint64_t next_receive = 0;
    std::int64_t last = -1;
    for (const Completion& c : received) {
      CHECK(c.wr_id == next_receive++);
      CHECK(std::int64_t{c.immediate} > last);  // in order
      last = c.immediate;
      CHECK(c.bytes == kRoom - c.immediate);
      const std::byte* begin = lab.b().memory.data() + c.wr_id * kRoom;
      CHECK(std::all_of(begin, begin + c.bytes,
                        [&](std::byte b) { return b == static_cast<std::byte>(c.immediate + 1); }));
    }
    CHECK(lab.leftovers().empty());
  }
}

// 9.9.3, class D: a violation is dropped in silence, and the connection lives.
TEST_CASE("UC: no right, no receive, too long: dropped and counted", "[transport][uc]") {
  for (int fault = 0; fault < 3; ++fault) {
    Lab lab(uc_options());
    Lab::fill(lab.a().memory, 7);
    const Lab::Pair pair = lab.connect();
    WorkRequest request =
        lab.request(fault == 0 ? WorkOpcode::write : WorkOpcode::send, 1, 0, 0, 3 * kMtu);
    if (fault == 0) request.remote_key ^= 0x3300;
    if (fault == 2) lab.b().post_receive(5, 0, 3 * kMtu - 1);
    lab.post(0, pair.a, request);
    CHECK(lab.run(picos_from_micros(1000)));
    CAPTURE(fault);
    CHECK(lab.a().sent().at(0).status == CompletionStatus::success);
    CHECK(lab.b().counters().unreliable_drops >= 1);
    CHECK(lab.b().received().empty());
    CHECK(lab.b().engine.view().state_of(pair.b) == QpState::rts);
    if (fault == 1) lab.b().post_receive(5, 0, 3 * kMtu);
    lab.post(0, pair.a, lab.request(WorkOpcode::send, 2, 0, 0, kMtu));
    if (fault == 0) lab.b().post_receive(5, 0, 3 * kMtu);
    CHECK(lab.run(lab.now() + picos_from_micros(1000)));
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].wr_id == 5);
    CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), kMtu) == 0);
  }
}

TEST_CASE("UC and UD offer no READ, no atomics, no invalidation", "[transport][uc]") {
  for (const QpType type : {QpType::uc, QpType::ud}) {
    LabOptions options = uc_options();
    options.qp.type = type;
    Lab lab(options);
    const std::uint32_t qp = lab.a().engine.create_qp(lab.qp_config(0));
    QpAttributes a;
    a.path = {wire::IpAddress::v4(0x0A00'0002), wire::MacAddress::local(2)};
    a.path_mtu = kMtu;
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      a.state = to;
      const QpState from = lab.a().engine.view().state_of(qp);
      REQUIRE(lab.a()
                  .engine
                  .modify_qp(lab.now(), qp, a,
                             transition_rule(type, from, to).required | qp_attribute::state)
                  .ok());
    }
    for (const WorkOpcode opcode : {WorkOpcode::read, WorkOpcode::fetch_add,
                                    WorkOpcode::compare_swap, WorkOpcode::send_invalidate}) {
      CHECK(lab.post(0, qp, lab.request(opcode, 1, 0, 0, 8)) == PostResult::bad_opcode);
    }
  }
}

// 10.3.1.6: the send queue is in error, receiving continues; RTS again by modify.
TEST_CASE("UC: a local fault leads to SQE, and back", "[transport][uc]") {
  Lab lab(uc_options());
  const Lab::Pair pair = lab.connect();
  std::vector<std::byte> other(64 * kMtu);
  auto& regions = lab.a().engine.regions();
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 40 * kMtu);
  request.local_key = regions.add_plain(Lab::kBase, other, 0);
  lab.post(0, pair.a, request);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0, 0, 8));
  lab.run(picos_from_micros(1));
  regions.remove(request.local_key);
  CHECK(lab.run(picos_from_micros(100)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == CompletionStatus::local_protection_error);
  CHECK(sent[1].status == CompletionStatus::flushed);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::sqe);
  CHECK(lab.post(0, pair.a, lab.request(WorkOpcode::write, 3, 0, 0, 8)) == PostResult::ok);
  CHECK(lab.a().sent().at(0).status == CompletionStatus::flushed);
  // It still receives.
  lab.a().post_receive(4, 0, 100);
  WorkRequest back = lab.request(WorkOpcode::send, 4, 0, 0, 8);
  back.local_key = lab.b().key;
  lab.post(1, pair.b, back);
  CHECK(lab.run(lab.now() + picos_from_micros(100)));
  CHECK(lab.a().received().size() == 1);
  QpAttributes a;
  a.state = QpState::rts;
  CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, qp_attribute::state).ok());
  lab.b().post_receive(5, 0, 100);
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 5, 0, 0, 8));
  CHECK(lab.run(lab.now() + picos_from_micros(100)));
  CHECK(lab.a().sent().at(0).status == CompletionStatus::success);
  CHECK(lab.b().received().size() == 1);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a packet of another service than the queue pair's is not taken", "[transport][uc]") {
  Lab lab(uc_options());
  QpConfig rc = lab.qp_config(1);
  rc.type = QpType::rc;
  const Lab::Pair pair = lab.connect(lab.qp_config(0), rc, 0, 0);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 8));
  CHECK(lab.run(picos_from_micros(100)));
  CHECK(lab.b().counters().unsupported_operations == 1);
  CHECK(lab.b().counters().rx_data_packets == 0);
  CHECK(lab.leftovers().empty());
}

}  // namespace
}  // namespace paceline::transport::test
