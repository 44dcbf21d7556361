// ibv_post_send, ibv_post_recv, ibv_post_srq_recv: what reaches the rings, what is refused.
#include <cerrno>
#include <cstring>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;

TEST_CASE("a send request arrives in its slot as it was posted", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_sge list[2] = {{0x1000, 10, 5}, {0x2000, 20, 6}};
  ibv_send_wr wr = send_request(0xfeed, list, 2);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
  wr.imm_data = 0x01020304;
  wr.wr.rdma.remote_addr = 0x7000;
  wr.wr.rdma.rkey = 99;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  FakePair& shared = device.shared(qp);
  REQUIRE(shared.send_tail() == 1);
  const attach::SendSlot& slot = shared.send_slot(0);
  CHECK(slot.wr_id == 0xfeed);
  CHECK(slot.opcode == attach::SendOpcode::write_imm);
  CHECK(slot.flags ==
        (attach::send_flag::signaled | attach::send_flag::solicited | attach::send_flag::fence));
  CHECK(slot.immediate == 0x01020304);
  CHECK(slot.remote_address == 0x7000);
  CHECK(slot.remote_key == 99);
  REQUIRE(slot.segments == 2);
  CHECK(std::memcmp(&slot + 1, list, sizeof(list)) == 0);
}

TEST_CASE("atomics carry their operands", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_sge list{0x1000, 8, 5};
  ibv_send_wr wr = send_request(1, &list, 1);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.remote_addr = 0x88;
  wr.wr.atomic.rkey = 3;
  wr.wr.atomic.compare_add = 11;
  wr.wr.atomic.swap = 12;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  const attach::SendSlot& slot = device.shared(qp).send_slot(0);
  CHECK(slot.opcode == attach::SendOpcode::compare_swap);
  CHECK(slot.remote_address == 0x88);
  CHECK(slot.remote_key == 3);
  CHECK(slot.compare_add == 11);
  CHECK(slot.swap == 12);
}

TEST_CASE("a full send queue takes what fits and names the first that does not",
          "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_send_wr wrs[6];
  for (std::size_t i = 0; i < 6; ++i) {
    wrs[i] = send_request(i);
    wrs[i].next = i + 1 < 6 ? &wrs[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  CHECK(ibv_post_send(qp, &wrs[0], &bad) == ENOMEM);
  CHECK(bad == &wrs[4]);
  CHECK(device.shared(qp).send_tail() == 4);

  // One signaled completion retires what went before it in silence.
  device.complete(qp, attach::EntryOpcode::send, 2, 3);
  const auto done = device.poll();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 2);
  CHECK(done[0].opcode == IBV_WC_SEND);
  ibv_send_wr* const rest = &wrs[2];
  wrs[4].next = nullptr;
  CHECK(ibv_post_send(qp, rest, &bad) == 0);
  CHECK(device.shared(qp).send_tail() == 7);
  CHECK(ibv_post_send(qp, &wrs[5], &bad) == ENOMEM);
  CHECK(bad == &wrs[5]);
}

TEST_CASE("requests that make no sense are refused at the post", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const rc = device.make_pair();
  ibv_qp* const uc = device.make_pair(device.wants(IBV_QPT_UC));
  ibv_qp* const ud = device.make_pair(device.wants(IBV_QPT_UD));
  char data[64] = {};
  ibv_sge list[3] = {{reinterpret_cast<std::uintptr_t>(data), 33, 5}, {0, 1, 1}, {0, 1, 1}};
  ibv_send_wr* bad = nullptr;
  const auto refused = [&](ibv_qp* qp, const ibv_send_wr& wr) {
    ibv_send_wr copy = wr;
    bad = nullptr;
    const std::uint32_t before = device.shared(qp).send_tail();
    const int error = ibv_post_send(qp, &copy, &bad);
    CHECK(bad == &copy);
    CHECK(device.shared(qp).send_tail() == before);
    return error;
  };
  CHECK(refused(rc, send_request(1, list, 3)) == EINVAL);
  CHECK(refused(rc, send_request(1, list, -1)) == EINVAL);
  ibv_send_wr wr = send_request(1, list, 1);
  wr.send_flags |= IBV_SEND_INLINE;  // 33 bytes, 32 fit
  CHECK(refused(rc, wr) == EINVAL);
  list[0].length = 8;
  wr.opcode = IBV_WR_RDMA_READ;
  CHECK(refused(rc, wr) == EINVAL);  // inline
  wr.send_flags = IBV_SEND_SIGNALED;
  CHECK(refused(uc, wr) == EINVAL);
  CHECK(refused(ud, wr) == EINVAL);
  wr.opcode = IBV_WR_TSO;
  CHECK(refused(rc, wr) == EINVAL);
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_IP_CSUM;
  CHECK(refused(rc, wr) == EINVAL);
  CHECK(refused(ud, send_request(1, list, 1)) == EINVAL);  // no address handle
  OpenDevice::to_state(rc, IBV_QPS_RESET);
  CHECK(refused(rc, send_request(1, list, 1)) == EINVAL);
  OpenDevice::to_state(rc, IBV_QPS_INIT);
  CHECK(refused(rc, send_request(1, list, 1)) == EINVAL);
  OpenDevice::to_state(rc, IBV_QPS_ERR);
  wr = send_request(1, list, 1);
  CHECK(ibv_post_send(rc, &wr, &bad) == 0);  // to be flushed
}

TEST_CASE("inline data is copied out of every segment", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  char text[] = "congestion control";
  ibv_sge list[2] = {{reinterpret_cast<std::uintptr_t>(text), 10, 0},
                     {reinterpret_cast<std::uintptr_t>(text) + 10, 8, 0}};
  ibv_send_wr wr = send_request(1, list, 2);
  wr.send_flags = IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  std::memset(text, 'x', 18);
  const attach::SendSlot& slot = device.shared(qp).send_slot(0);
  CHECK(slot.flags == attach::send_flag::inlined);
  REQUIRE(slot.inline_bytes == 18);
  CHECK(std::memcmp(&slot + 1, "congestion control", 18) == 0);
}

TEST_CASE("sq_sig_all signals everything", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp_init_attr attr = device.wants();
  attr.sq_sig_all = 1;
  ibv_qp* const qp = device.make_pair(attr);
  ibv_send_wr wr = send_request(1);
  wr.send_flags = 0;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  CHECK(device.shared(qp).send_slot(0).flags == attach::send_flag::signaled);
}

TEST_CASE("a post rings the bell of its queue, and wakes a worker that sleeps",
          "[verbs][threads]") {
  OpenDevice device;
  device.make_pair();
  ibv_qp* const qp = device.make_pair();
  ibv_send_wr wr = send_request(1);
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  std::vector<std::uint32_t> rung;
  const auto note = [&](std::uint32_t bell) { rung.push_back(bell); };
  REQUIRE(attach::take_rung(device.service.bells(), note));
  CHECK(rung == std::vector<std::uint32_t>{device.shared(qp).doorbell});
  CHECK(device.service.wakes() == 0);
  device.service.worker().asleep.store(1);
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  CHECK(device.service.wakes() == 1);
}

TEST_CASE("receives are posted, retired and refused like sends", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_sge list[3] = {{0x1000, 10, 5}, {0x2000, 20, 6}, {0, 0, 0}};
  ibv_recv_wr* bad = nullptr;
  ibv_recv_wr three = receive_request(7, list, 3);
  CHECK(ibv_post_recv(qp, &three, &bad) == EINVAL);
  CHECK(bad == &three);
  ibv_recv_wr wr = receive_request(8, list, 2);
  for (int i = 0; i < 4; ++i) REQUIRE(ibv_post_recv(qp, &wr, &bad) == 0);
  CHECK(ibv_post_recv(qp, &wr, &bad) == ENOMEM);
  FakePair& shared = device.shared(qp);
  CHECK(shared.receive_tail() == 4);
  CHECK(shared.receive_slot(3).wr_id == 8);
  CHECK(shared.receive_slot(3).segments == 2);
  CHECK(std::memcmp(&shared.receive_slot(3) + 1, list, 2 * sizeof(ibv_sge)) == 0);
  device.complete(qp, attach::EntryOpcode::receive, 8, 1);
  REQUIRE(device.poll().size() == 1);
  CHECK(ibv_post_recv(qp, &wr, &bad) == 0);
  CHECK(ibv_post_recv(qp, &wr, &bad) == ENOMEM);
  OpenDevice::to_state(qp, IBV_QPS_RESET);
  CHECK(ibv_post_recv(qp, &wr, &bad) == EINVAL);
}

TEST_CASE("a reset gives all slots back and drops what was not polled", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_qp* const other = device.make_pair();
  ibv_send_wr wr = send_request(1);
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < 4; ++i) REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  REQUIRE(ibv_post_send(other, &wr, &bad) == 0);
  device.complete(qp, attach::EntryOpcode::send, 1, 1);
  device.complete(other, attach::EntryOpcode::send, 1, 1);
  OpenDevice::to_state(qp, IBV_QPS_RESET);
  const auto done = device.poll();
  REQUIRE(done.size() == 1);
  CHECK(done[0].qp_num == other->qp_num);
  OpenDevice::to_state(qp, IBV_QPS_RTS);
  for (int i = 0; i < 4; ++i) CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

TEST_CASE("what messages have taken of a shared receive queue is free again", "[verbs][threads]") {
  OpenDevice device;
  ibv_srq_init_attr attr{nullptr, {2, 1, 0}};
  ibv_srq* const srq = ibv_create_srq(device.pd, &attr);
  REQUIRE(srq != nullptr);
  ibv_recv_wr wr = receive_request(9);
  ibv_recv_wr* bad = nullptr;
  REQUIRE(ibv_post_srq_recv(srq, &wr, &bad) == 0);
  REQUIRE(ibv_post_srq_recv(srq, &wr, &bad) == 0);
  CHECK(ibv_post_srq_recv(srq, &wr, &bad) == ENOMEM);
  CHECK(bad == &wr);
  attach::WorkQueueHeader& header = device.service.shared_receives(srq->handle);
  CHECK(header.tail.value.load() == 2);
  header.taken.value.store(1);
  CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);

  // Its queue pairs have no receive queue to post to.
  ibv_qp_init_attr with = device.wants();
  with.srq = srq;
  ibv_qp* const qp = device.make_pair(with);
  CHECK(ibv_post_recv(qp, &wr, &bad) == EINVAL);
  std::uint32_t number = 0;
  CHECK(ibv_get_srq_num(srq, &number) == 0);
  CHECK(number == 77);
  ibv_destroy_qp(qp);
  device.pairs.clear();
  CHECK(ibv_destroy_srq(srq) == 0);
}
