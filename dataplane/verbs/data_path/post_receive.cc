// ibv_post_recv and ibv_post_srq_recv.
#include <cerrno>
#include <cstring>
#include <mutex>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/queue_pair/queue_pair.h"
#include "dataplane/verbs/queue_pair/shared_receive_queue.h"

namespace paceline::verbs {

namespace {

int put_receive(WorkQueue& queue, const ibv_recv_wr& wr, std::uint32_t pending) {
  if (!queue.has_room(pending)) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > queue.segments) return EINVAL;
  auto& slot = *reinterpret_cast<attach::ReceiveSlot*>(queue.slot(queue.tail + pending));
  const auto count = static_cast<std::uint32_t>(wr.num_sge);
  slot = {wr.wr_id, count, 0};
  if (count != 0) {
    std::memcpy(reinterpret_cast<std::byte*>(&slot) + sizeof(slot), wr.sg_list,
                count * sizeof(ibv_sge));
  }
  return 0;
}

int post_to(Context& context, WorkQueue& queue, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  std::uint32_t pending = 0;
  int error = 0;
  {
    const std::lock_guard hold(queue.lock);
    for (; wr != nullptr; wr = wr->next) {
      error = put_receive(queue, *wr, pending);
      if (error != 0) {
        *bad_wr = wr;
        break;
      }
      ++pending;
    }
    if (pending != 0) queue.publish(pending);
  }
  if (pending != 0) context.ring(queue.doorbell);
  return result(error);
}

}  // namespace

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  QueuePair& pair = QueuePair::of(qp);
  int error = 0;
  if (!pair.context->usable()) error = EIO;
  // A queue pair with a shared receive queue has no receive queue of its own.
  if (error == 0 && (qp->state == IBV_QPS_RESET || pair.receive.memory == nullptr)) error = EINVAL;
  if (error != 0) {
    *bad_wr = wr;
    return result(error);
  }
  return post_to(*pair.context, pair.receive, wr, bad_wr);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  SharedReceiveQueue& queue = SharedReceiveQueue::of(srq);
  if (!queue.context->usable()) {
    *bad_wr = wr;
    return result(EIO);
  }
  return post_to(*queue.context, queue.queue, wr, bad_wr);
}

}  // namespace paceline::verbs
