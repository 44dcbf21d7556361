// ibv_wr_*: requests built one call at a time between wr_start, which takes the send queue's lock,
// and wr_complete or wr_abort, which release it. A batch is posted completely or not at all; the
// first wrong call decides, and wr_complete reports it.
#include <cerrno>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/data_path/send_slot.h"
#include "dataplane/verbs/data_path/watched_post.h"
#include "dataplane/verbs/device/context.h"

namespace paceline::verbs {

namespace {

constexpr unsigned kBuilderFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;

void spoil(QueuePair& pair, int error) {
  if (pair.batch_error == 0) pair.batch_error = error;
}

// The request that setters act on; null once the batch has failed, or before the first.
attach::SendSlot* open_slot(QueuePair& pair) {
  if (pair.batch_error != 0) return nullptr;
  if (pair.pending == 0) {
    spoil(pair, EINVAL);
    return nullptr;
  }
  return &send_slot(pair.send, pair.send.tail + pair.pending - 1);
}

// Begins the next request; null when the batch has failed, or the queue full.
attach::SendSlot* begin(ibv_qp_ex* qp, attach::SendOpcode opcode) {
  QueuePair& pair = QueuePair::of(qp);
  if (pair.batch_error != 0) return nullptr;
  if (!pair.send.has_room(pair.pending)) {
    spoil(pair, ENOMEM);
    return nullptr;
  }
  if ((qp->wr_flags & ~kBuilderFlags) != 0) {
    spoil(pair, EINVAL);
    return nullptr;
  }
  attach::SendSlot& slot = send_slot(pair.send, pair.send.tail + pair.pending++);
  slot = {};
  slot.wr_id = qp->wr_id;
  slot.opcode = opcode;
  slot.flags = slot_flags(qp->wr_flags, pair.all_signaled);
  return &slot;
}

void begin_remote(ibv_qp_ex* qp, attach::SendOpcode opcode, std::uint32_t key,
                  std::uint64_t address, std::uint32_t immediate = 0, std::uint64_t compare_add = 0,
                  std::uint64_t swap = 0) {
  attach::SendSlot* const slot = begin(qp, opcode);
  if (slot == nullptr) return;
  slot->remote_key = key;
  slot->remote_address = address;
  slot->immediate = immediate;
  slot->compare_add = compare_add;
  slot->swap = swap;
}

void begin_message(ibv_qp_ex* qp, attach::SendOpcode opcode, std::uint32_t immediate) {
  attach::SendSlot* const slot = begin(qp, opcode);
  if (slot != nullptr) slot->immediate = immediate;
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                       std::uint64_t compare, std::uint64_t swap) {
  begin_remote(qp, attach::SendOpcode::compare_swap, rkey, remote_addr, 0, compare, swap);
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                         std::uint64_t add) {
  begin_remote(qp, attach::SendOpcode::fetch_add, rkey, remote_addr, 0, add);
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t key) {
  begin_message(qp, attach::SendOpcode::local_invalidate, key);
}
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  attach::SendSlot* const slot = begin(qp, attach::SendOpcode::bind_window);
  if (slot != nullptr && put_bind(*slot, qp->qp_base, *mw, rkey, *info) != 0) {
    spoil(QueuePair::of(qp), EINVAL);
  }
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr) {
  begin_remote(qp, attach::SendOpcode::read, rkey, remote_addr);
}
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr) {
  begin_remote(qp, attach::SendOpcode::write, rkey, remote_addr);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                       __be32 imm_data) {
  begin_remote(qp, attach::SendOpcode::write_imm, rkey, remote_addr, imm_data);
}
void wr_send(ibv_qp_ex* qp) { begin_message(qp, attach::SendOpcode::send, 0); }
void wr_send_imm(ibv_qp_ex* qp, __be32 imm_data) {
  begin_message(qp, attach::SendOpcode::send_imm, imm_data);
}
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t key) {
  begin_message(qp, attach::SendOpcode::send_invalidate, key);
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn,
                    std::uint32_t remote_qkey) {
  QueuePair& pair = QueuePair::of(qp);
  attach::SendSlot* const slot = open_slot(pair);
  if (slot == nullptr) return;
  if (ah == nullptr) {
    spoil(pair, EINVAL);
    return;
  }
  slot->address_handle = ah->handle;
  slot->target_qp = remote_qpn;
  slot->target_qkey = remote_qkey;
}

void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t remote_srqn) {
  attach::SendSlot* const slot = open_slot(QueuePair::of(qp));
  if (slot != nullptr) slot->target_srq = remote_srqn;
}

bool sends_no_data(attach::SendOpcode opcode) {
  return opcode == attach::SendOpcode::read || opcode == attach::SendOpcode::fetch_add ||
         opcode == attach::SendOpcode::compare_swap ||
         opcode == attach::SendOpcode::local_invalidate ||
         opcode == attach::SendOpcode::bind_window;
}

void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t num_buf, const ibv_data_buf* buf_list) {
  QueuePair& pair = QueuePair::of(qp);
  attach::SendSlot* const slot = open_slot(pair);
  if (slot == nullptr) return;
  if (sends_no_data(slot->opcode)) {
    spoil(pair, EINVAL);
    return;
  }
  slot->inline_bytes = 0;
  slot->flags |= attach::send_flag::inlined;
  for (std::size_t i = 0; i < num_buf; ++i) {
    if (put_inline(*slot, pair.send, buf_list[i].addr, buf_list[i].length) != 0) {
      spoil(pair, EINVAL);
      return;
    }
  }
}
void wr_set_inline_data(ibv_qp_ex* qp, void* addr, std::size_t length) {
  const ibv_data_buf buffer{addr, length};
  wr_set_inline_data_list(qp, 1, &buffer);
}

void wr_set_sge_list(ibv_qp_ex* qp, std::size_t num_sge, const ibv_sge* sg_list) {
  QueuePair& pair = QueuePair::of(qp);
  attach::SendSlot* const slot = open_slot(pair);
  if (slot != nullptr && put_segments(*slot, pair.send, sg_list, num_sge) != 0) spoil(pair, EINVAL);
}
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
  const ibv_sge segment{addr, length, lkey};
  wr_set_sge_list(qp, 1, &segment);
}

void wr_start(ibv_qp_ex* qp) {
  QueuePair& pair = QueuePair::of(qp);
  pair.send.lock.lock();
  pair.pending = 0;
  pair.batch_error = 0;
  if (!pair.context->usable()) {
    spoil(pair, EIO);
  } else if (!takes_sends(qp->qp_base)) {
    spoil(pair, EINVAL);
  }
}

int wr_complete(ibv_qp_ex* qp) {
  QueuePair& pair = QueuePair::of(qp);
  const int error = pair.batch_error;
  const std::uint32_t count = error == 0 ? pair.pending : 0;
  if (count != 0) pair.send.publish(count);
  pair.pending = 0;
  pair.send.lock.unlock();
  if (count != 0) pair.context->ring(pair.send.doorbell);
  return result(error);
}

int wr_complete_watched(ibv_qp_ex* qp) {
  QueuePair& pair = QueuePair::of(qp);
  const int error = pair.batch_error;
  const std::uint32_t count = error == 0 ? pair.pending : 0;
  WatchedPost watched(pair);
  if (count != 0) watched.publish(count);
  pair.pending = 0;
  pair.send.lock.unlock();
  if (count != 0) watched.ring();
  return result(error);
}

void wr_abort(ibv_qp_ex* qp) {
  QueuePair& pair = QueuePair::of(qp);
  pair.pending = 0;
  pair.send.lock.unlock();
}

}  // namespace

std::uint64_t send_operations_of(ibv_qp_type type) noexcept {
  constexpr std::uint64_t kMessages = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr std::uint64_t kReliable = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                      IBV_QP_EX_WITH_SEND_WITH_INV;
  constexpr std::uint64_t kBinds = IBV_QP_EX_WITH_BIND_MW;
  switch (type) {
    case IBV_QPT_RC:
      return kMessages | kWrites | kReliable | kBinds | IBV_QP_EX_WITH_LOCAL_INV;
    case IBV_QPT_XRC_SEND:
      return kMessages | kWrites | kReliable;
    case IBV_QPT_UC:
      return kMessages | kWrites | kBinds;
    case IBV_QPT_UD:
      return kMessages;
    default:
      return 0;
  }
}

void set_post_functions(ibv_qp_ex& qp) noexcept {
  const ibv_qp_type type = qp.qp_base.qp_type;
  qp.wr_send = wr_send;
  qp.wr_send_imm = wr_send_imm;
  if (type != IBV_QPT_UD) {
    qp.wr_rdma_write = wr_rdma_write;
    qp.wr_rdma_write_imm = wr_rdma_write_imm;
  } else {
    qp.wr_set_ud_addr = wr_set_ud_addr;
  }
  if (type == IBV_QPT_RC || type == IBV_QPT_UC) qp.wr_bind_mw = wr_bind_mw;
  if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
    qp.wr_rdma_read = wr_rdma_read;
    qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
    qp.wr_send_inv = wr_send_inv;
  }
  if (type == IBV_QPT_RC) qp.wr_local_inv = wr_local_inv;
  if (type == IBV_QPT_XRC_SEND) qp.wr_set_xrc_srqn = wr_set_xrc_srqn;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_start = wr_start;
  qp.wr_complete = QueuePair::of(&qp).context->watched() ? wr_complete_watched : wr_complete;
  qp.wr_abort = wr_abort;
}

}  // namespace paceline::verbs
