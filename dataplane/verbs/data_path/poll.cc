// ibv_poll_cq.
#include <cerrno>
#include <mutex>

#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/queue_pair/queue_pair.h"

namespace paceline::verbs {

namespace {

bool is_receive(attach::EntryOpcode opcode) {
  return opcode == attach::EntryOpcode::receive || opcode == attach::EntryOpcode::receive_write_imm;
}

// The oldest unanswered request of `queue`, as the service would have flushed it.
bool flush_one(WorkQueue& queue, attach::EntryOpcode opcode, std::uint32_t qp_number,
               attach::CompletionEntry& out) {
  if (queue.memory == nullptr) return false;
  const std::lock_guard hold(queue.lock);
  const std::uint32_t index = queue.retired.load(std::memory_order_relaxed);
  if (index == queue.tail) return false;
  out = {};
  // A slot of either kind begins with the request's name.
  out.wr_id = *reinterpret_cast<const std::uint64_t*>(queue.slot(index));
  out.qp_number = qp_number;
  out.status = attach::EntryStatus::flushed;
  out.opcode = opcode;
  queue.retired.store(index + 1, std::memory_order_release);
  return true;
}

bool flush_any(CompletionQueue& queue, attach::CompletionEntry& out) {
  return queue.pairs.any([&](QueuePair& pair) {
    const ibv_qp& qp = pair.base();
    return (qp.send_cq == queue.handle() &&
            flush_one(pair.send, attach::EntryOpcode::send, qp.qp_num, out)) ||
           (qp.recv_cq == queue.handle() &&
            flush_one(pair.receive, attach::EntryOpcode::receive, qp.qp_num, out));
  });
}

void describe(const attach::CompletionEntry& entry, ibv_wc& out) {
  out.wr_id = entry.wr_id;
  out.status = static_cast<ibv_wc_status>(entry.status);
  out.opcode = opcode_of(entry);
  out.vendor_err = 0;
  out.byte_len = entry.bytes;
  out.imm_data = entry.immediate;
  out.qp_num = entry.qp_number;
  out.src_qp = entry.source_qp;
  out.wc_flags = flags_of(entry);
  out.pkey_index = 0;
  out.slid = 0;
  out.sl = entry.service_level;
  out.dlid_path_bits = 0;
}

}  // namespace

bool take_entry(CompletionQueue& queue, attach::CompletionEntry& out) noexcept {
  attach::CompletionQueueHeader& ring = *queue.ring();
  std::uint32_t head = queue.head.load(std::memory_order_relaxed);
  const std::uint32_t tail = ring.tail.value.load(std::memory_order_acquire);
  while (head != tail) {
    out = queue.entry(head++);
    QueuePair* const pair = queue.pairs.find(out.qp_number);
    // An XRC queue pair is not among those whose requests retire here, and may be another
    // program's.
    const bool from_domain = (out.flags & attach::entry_flag::from_domain) != 0;
    const bool dropped =
        (out.flags & attach::entry_flag::dropped) != 0 || (pair == nullptr && !from_domain);
    if (!dropped && !from_domain) {
      WorkQueue& work = is_receive(out.opcode) ? pair->receive : pair->send;
      // With a shared receive queue, there is nothing of the queue pair's own to retire.
      if (work.memory != nullptr) work.retired.store(out.retired, std::memory_order_release);
      if (out.status != attach::EntryStatus::success && pair->faults != nullptr &&
          !is_receive(out.opcode)) {
        pair->faults->correct(out);
      }
    }
    queue.head.store(head, std::memory_order_relaxed);
    ring.head.value.store(head, std::memory_order_release);
    if (!dropped) return true;
  }
  return !queue.context->usable() && flush_any(queue, out);
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) noexcept {
  CompletionQueue& queue = CompletionQueue::of(cq);
  if (queue.empty() && queue.context->usable()) {
    after_empty_poll(queue);
    if (queue.empty()) return 0;
  }
  if (queue.context->presence.forked()) return -EIO;
  queue.empty_polls.store(0, std::memory_order_relaxed);
  const std::lock_guard hold(queue.lock);
  attach::CompletionEntry entry;
  int taken = 0;
  while (taken < count && take_entry(queue, entry)) describe(entry, out[taken++]);
  return taken;
}

void drop_pair(CompletionQueue& queue, std::uint32_t qp_number, bool forget) noexcept {
  if (queue.context->presence.forked()) {
    // The ring belongs to the parent, and so did any thread that holds the lock.
    if (forget) queue.pairs.remove(qp_number);
    return;
  }
  const std::lock_guard hold(queue.lock);
  const std::uint32_t tail = queue.ring()->tail.value.load(std::memory_order_acquire);
  for (std::uint32_t i = queue.head.load(std::memory_order_relaxed); i != tail; ++i) {
    attach::CompletionEntry& entry = queue.entry(i);
    if (entry.qp_number == qp_number) entry.flags |= attach::entry_flag::dropped;
  }
  if (forget) queue.pairs.remove(qp_number);
}

void drop_completions(const ibv_qp& qp, bool forget) noexcept {
  if (qp.send_cq != nullptr) drop_pair(CompletionQueue::of(qp.send_cq), qp.qp_num, forget);
  if (qp.recv_cq == nullptr || qp.recv_cq == qp.send_cq) return;
  drop_pair(CompletionQueue::of(qp.recv_cq), qp.qp_num, forget);
}

ibv_wc_opcode opcode_of(const attach::CompletionEntry& entry) noexcept {
  switch (entry.opcode) {
    case attach::EntryOpcode::send:
      return IBV_WC_SEND;
    case attach::EntryOpcode::write:
      return IBV_WC_RDMA_WRITE;
    case attach::EntryOpcode::read:
      return IBV_WC_RDMA_READ;
    case attach::EntryOpcode::fetch_add:
      return IBV_WC_FETCH_ADD;
    case attach::EntryOpcode::compare_swap:
      return IBV_WC_COMP_SWAP;
    case attach::EntryOpcode::local_invalidate:
      return IBV_WC_LOCAL_INV;
    case attach::EntryOpcode::bind_window:
      return IBV_WC_BIND_MW;
    case attach::EntryOpcode::receive:
      return IBV_WC_RECV;
    case attach::EntryOpcode::receive_write_imm:
      return IBV_WC_RECV_RDMA_WITH_IMM;
  }
  return IBV_WC_SEND;
}

unsigned flags_of(const attach::CompletionEntry& entry) noexcept {
  unsigned flags = 0;
  if ((entry.flags & attach::entry_flag::immediate) != 0) flags |= IBV_WC_WITH_IMM;
  if ((entry.flags & attach::entry_flag::invalidated) != 0) flags |= IBV_WC_WITH_INV;
  if ((entry.flags & attach::entry_flag::grh) != 0) flags |= IBV_WC_GRH;
  return flags;
}

}  // namespace paceline::verbs
