// ibv_wr_* and extended completion queues.
#include <cerrno>
#include <cstring>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;

namespace {

constexpr std::uint64_t kEverythingOfRc =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
    IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;

}  // namespace

TEST_CASE("a batch becomes visible as a whole, with what each call set", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp_ex* const qp = device.make_extended(IBV_QPT_RC, kEverythingOfRc);
  REQUIRE(qp != nullptr);
  FakePair& shared = device.shared(&qp->qp_base);
  char text[] = "abcdef";
  ibv_data_buf buffers[2] = {{text, 2}, {text + 2, 4}};
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write_imm(qp, 7, 0x700, 0x0a0b0c0d);
  ibv_wr_set_sge(qp, 3, 0x300, 33);
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_FENCE;
  ibv_wr_atomic_fetch_add(qp, 8, 0x800, 5);
  const ibv_sge list[2] = {{0x10, 4, 1}, {0x20, 4, 2}};
  ibv_wr_set_sge_list(qp, 2, list);
  qp->wr_id = 3;
  qp->wr_flags = 0;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data_list(qp, 2, buffers);
  CHECK(shared.send_tail() == 0);
  REQUIRE(ibv_wr_complete(qp) == 0);
  REQUIRE(shared.send_tail() == 3);

  const attach::SendSlot& write = shared.send_slot(0);
  CHECK(write.wr_id == 1);
  CHECK(write.opcode == attach::SendOpcode::write_imm);
  CHECK(write.flags == attach::send_flag::signaled);
  CHECK(write.remote_key == 7);
  CHECK(write.remote_address == 0x700);
  CHECK(write.immediate == 0x0a0b0c0d);
  const ibv_sge one{0x300, 33, 3};
  REQUIRE(write.segments == 1);
  CHECK(std::memcmp(&write + 1, &one, sizeof(one)) == 0);
  const attach::SendSlot& atomic = shared.send_slot(1);
  CHECK(atomic.opcode == attach::SendOpcode::fetch_add);
  CHECK(atomic.flags == attach::send_flag::fence);
  CHECK(atomic.compare_add == 5);
  REQUIRE(atomic.segments == 2);
  CHECK(std::memcmp(&atomic + 1, list, sizeof(list)) == 0);
  const attach::SendSlot& message = shared.send_slot(2);
  CHECK(message.flags == attach::send_flag::inlined);
  REQUIRE(message.inline_bytes == 6);
  CHECK(std::memcmp(&message + 1, "abcdef", 6) == 0);
}

TEST_CASE("a batch with a mistake, or aborted, posts nothing and leaves the queue usable",
          "[verbs][threads]") {
  OpenDevice device;
  ibv_qp_ex* const qp = device.make_extended(IBV_QPT_RC, kEverythingOfRc);
  REQUIRE(qp != nullptr);
  FakePair& shared = device.shared(&qp->qp_base);
  char data[64] = {};
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, data, 33);  // 32 fit
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, data, 3);
  CHECK(ibv_wr_complete(qp) == EINVAL);
  CHECK(shared.send_tail() == 0);

  ibv_wr_start(qp);
  for (int i = 0; i < 5; ++i) ibv_wr_send(qp);
  CHECK(ibv_wr_complete(qp) == ENOMEM);

  ibv_wr_start(qp);
  ibv_wr_rdma_read(qp, 1, 1);
  ibv_wr_set_inline_data(qp, data, 3);
  CHECK(ibv_wr_complete(qp) == EINVAL);

  ibv_wr_start(qp);
  ibv_wr_set_sge(qp, 1, 1, 1);  // of no request
  CHECK(ibv_wr_complete(qp) == EINVAL);

  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  CHECK(shared.send_tail() == 0);

  ibv_wr_start(qp);
  for (int i = 0; i < 4; ++i) ibv_wr_send(qp);
  CHECK(ibv_wr_complete(qp) == 0);
  CHECK(shared.send_tail() == 4);
}

TEST_CASE("operations that a type has not, or we have not, are refused at creation",
          "[verbs][threads]") {
  OpenDevice device;
  CHECK(device.make_extended(IBV_QPT_RC, kEverythingOfRc | IBV_QP_EX_WITH_TSO) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  CHECK(device.make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_TSO) == nullptr);
  CHECK(device.make_extended(IBV_QPT_RC, std::uint64_t{1} << 40U) == nullptr);
  CHECK(device.make_extended(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ) == nullptr);
  CHECK(device.make_extended(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE) == nullptr);
  ibv_qp_ex* const ud = device.make_extended(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
  REQUIRE(ud != nullptr);
  ibv_ah handle{device.context, device.pd, 44};
  ibv_wr_start(ud);
  ibv_wr_send(ud);
  ibv_wr_set_ud_addr(ud, &handle, 5, 6);
  REQUIRE(ibv_wr_complete(ud) == 0);
  const attach::SendSlot& slot = device.shared(&ud->qp_base).send_slot(0);
  CHECK(slot.address_handle == 44);
  CHECK(slot.target_qp == 5);
  CHECK(slot.target_qkey == 6);
  // One that did not ask has no such functions.
  CHECK(ibv_qp_to_qp_ex(device.make_pair()) == nullptr);
}

TEST_CASE("an extended queue hands out one entry after the other", "[verbs][threads]") {
  OpenDevice device;
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  attr.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  const bool single = GENERATE(false, true);
  if (single) {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  }
  ibv_cq_ex* const cq = ibv_create_cq_ex(device.context, &attr);
  REQUIRE(cq != nullptr);
  ibv_qp_init_attr wants = device.wants();
  wants.send_cq = wants.recv_cq = ibv_cq_ex_to_cq(cq);
  ibv_qp* const qp = device.make_pair(wants);
  ibv_poll_cq_attr poll{};
  CHECK(ibv_start_poll(cq, &poll) == ENOENT);
  attach::CompletionEntry entry;
  entry.qp_number = qp->qp_num;
  entry.opcode = attach::EntryOpcode::receive_write_imm;
  entry.flags = attach::entry_flag::immediate | attach::entry_flag::grh;
  entry.immediate = 0x1234;
  entry.bytes = 77;
  entry.source_qp = 5;
  entry.timestamp_ns = 999;
  entry.wr_id = 1;
  device.service.complete(cq->handle, entry);
  entry.wr_id = 2;
  entry.status = attach::EntryStatus::retry_exceeded;
  device.service.complete(cq->handle, entry);
  REQUIRE(ibv_start_poll(cq, &poll) == 0);
  CHECK(cq->wr_id == 1);
  CHECK(cq->status == IBV_WC_SUCCESS);
  CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(ibv_wc_read_byte_len(cq) == 77);
  CHECK(ibv_wc_read_imm_data(cq) == 0x1234);
  CHECK(ibv_wc_read_wc_flags(cq) == (IBV_WC_WITH_IMM | IBV_WC_GRH));
  CHECK(ibv_wc_read_qp_num(cq) == qp->qp_num);
  CHECK(ibv_wc_read_src_qp(cq) == 5);
  CHECK(ibv_wc_read_completion_ts(cq) == 999);
  REQUIRE(ibv_next_poll(cq) == 0);
  CHECK(cq->wr_id == 2);
  CHECK(cq->status == IBV_WC_RETRY_EXC_ERR);
  CHECK(ibv_next_poll(cq) == ENOENT);
  ibv_end_poll(cq);
  CHECK(ibv_start_poll(cq, &poll) == ENOENT);
  ibv_destroy_qp(qp);
  device.pairs.clear();
  CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);

  attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
  CHECK(ibv_create_cq_ex(device.context, &attr) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}
