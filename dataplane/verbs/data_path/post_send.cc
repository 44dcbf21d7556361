// ibv_post_send. Errors that a program can make are refused here with EINVAL; errors that only the
// service can judge (keys, lengths, rights) complete with an error.
#include <cerrno>
#include <mutex>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/data_path/send_slot.h"
#include "dataplane/verbs/data_path/watched_post.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// IBTA table 39: which operations a transport has.
bool offered(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type != IBV_QPT_UD;
    case IBV_WR_BIND_MW:  // to a queue pair whose peer may use it: one of XRC has none such
      return type == IBV_QPT_RC || type == IBV_QPT_UC;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
    case IBV_WR_LOCAL_INV:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

bool may_be_inline(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

attach::SendOpcode slot_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND_WITH_IMM:
      return attach::SendOpcode::send_imm;
    case IBV_WR_SEND_WITH_INV:
      return attach::SendOpcode::send_invalidate;
    case IBV_WR_RDMA_WRITE:
      return attach::SendOpcode::write;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return attach::SendOpcode::write_imm;
    case IBV_WR_RDMA_READ:
      return attach::SendOpcode::read;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return attach::SendOpcode::compare_swap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return attach::SendOpcode::fetch_add;
    case IBV_WR_LOCAL_INV:
      return attach::SendOpcode::local_invalidate;
    case IBV_WR_BIND_MW:
      return attach::SendOpcode::bind_window;
    default:
      return attach::SendOpcode::send;
  }
}

void put_target(const QueuePair& pair, const ibv_send_wr& wr, attach::SendSlot& slot) {
  switch (slot.opcode) {
    case attach::SendOpcode::fetch_add:
    case attach::SendOpcode::compare_swap:
      slot.remote_address = wr.wr.atomic.remote_addr;
      slot.remote_key = wr.wr.atomic.rkey;
      slot.compare_add = wr.wr.atomic.compare_add;
      slot.swap = wr.wr.atomic.swap;
      break;
    case attach::SendOpcode::write:
    case attach::SendOpcode::write_imm:
    case attach::SendOpcode::read:
      slot.remote_address = wr.wr.rdma.remote_addr;
      slot.remote_key = wr.wr.rdma.rkey;
      break;
    default:
      if (pair.qp.qp_base.qp_type == IBV_QPT_UD) {
        slot.address_handle = wr.wr.ud.ah->handle;
        slot.target_qp = wr.wr.ud.remote_qpn;
        slot.target_qkey = wr.wr.ud.remote_qkey;
      }
      break;
  }
}

int put_data(const WorkQueue& queue, const ibv_send_wr& wr, attach::SendSlot& slot) {
  const auto count = static_cast<std::size_t>(wr.num_sge);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) {
    // Invalidation of a region moves no data.
    if (wr.opcode == IBV_WR_LOCAL_INV) return 0;
    return put_segments(slot, queue, wr.sg_list, count);
  }
  if (!may_be_inline(wr.opcode)) return EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const from = reinterpret_cast<const void*>(wr.sg_list[i].addr);
    if (put_inline(slot, queue, from, wr.sg_list[i].length) != 0) return EINVAL;
  }
  slot.flags |= attach::send_flag::inlined;
  return 0;
}

int put_request(QueuePair& pair, const ibv_send_wr& wr, std::uint32_t pending) {
  WorkQueue& queue = pair.send;
  const ibv_qp& qp = pair.base();
  if (!queue.has_room(pending)) return ENOMEM;
  if (!offered(qp.qp_type, wr.opcode) || (wr.send_flags & ~kSendFlags) != 0 || wr.num_sge < 0) {
    return EINVAL;
  }
  if (qp.qp_type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) return EINVAL;
  attach::SendSlot& slot = send_slot(queue, queue.tail + pending);
  slot = {};
  slot.wr_id = wr.wr_id;
  slot.opcode = slot_opcode(wr.opcode);
  slot.flags = slot_flags(wr.send_flags, pair.all_signaled);
  slot.immediate = wr.imm_data;  // or the key to revoke: the same word
  if (wr.opcode == IBV_WR_BIND_MW) {
    const bool moves_data = (wr.send_flags & IBV_SEND_INLINE) != 0;
    if (moves_data || wr.bind_mw.mw == nullptr) return EINVAL;
    return put_bind(slot, qp, *wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
  }
  put_target(pair, wr, slot);
  if (qp.qp_type == IBV_QPT_XRC_SEND) slot.target_srq = wr.qp_type.xrc.remote_srqn;
  return put_data(queue, wr, slot);
}

// `publish(count)` hands requests to the service, under the lock; `ring()` tells it, without.
template <class Publish, class Ring>
int post(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr, Publish publish, Ring ring) noexcept {
  QueuePair& pair = QueuePair::of(qp);
  if (!pair.context->usable() || !takes_sends(*qp)) {
    *bad_wr = wr;
    return result(pair.context->usable() ? EINVAL : EIO);
  }
  std::uint32_t pending = 0;
  int error = 0;
  {
    const std::lock_guard hold(pair.send.lock);
    for (; wr != nullptr; wr = wr->next) {
      error = put_request(pair, *wr, pending);
      if (error != 0) {
        *bad_wr = wr;
        break;
      }
      ++pending;
    }
    if (pending != 0) publish(pending);
  }
  if (pending != 0) ring();
  return result(error);
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  QueuePair& pair = QueuePair::of(qp);
  return post(
      qp, wr, bad_wr, [&](std::uint32_t count) { pair.send.publish(count); },
      [&] { pair.context->ring(pair.send.doorbell); });
}

int post_send_watched(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  WatchedPost watched(QueuePair::of(qp));
  return post(
      qp, wr, bad_wr, [&](std::uint32_t count) { watched.publish(count); },
      [&] { watched.ring(); });
}

}  // namespace paceline::verbs
