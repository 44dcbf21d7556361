// The functions of an extended completion queue: start_poll takes the lock and a completion,
// next_poll another, end_poll gives the lock back. A queue that its program promised to use from
// one thread takes no lock at all.
#include <cerrno>

#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"

namespace paceline::verbs {

namespace {

bool next_entry(CompletionQueue& queue) {
  if (!take_entry(queue, queue.current)) return false;
  queue.cq.wr_id = queue.current.wr_id;
  queue.cq.status = static_cast<ibv_wc_status>(queue.current.status);
  return true;
}

// ENOENT: the queue is empty, and end_poll is not to be called.
template <bool kLocks>
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  CompletionQueue& queue = CompletionQueue::of(cq);
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  if (queue.empty() && queue.context->usable()) {
    after_empty_poll(queue);
    if (queue.empty()) return ENOENT;
  }
  if (queue.context->presence.forked()) return EIO;
  queue.empty_polls.store(0, std::memory_order_relaxed);
  if (kLocks) queue.lock.lock();
  if (next_entry(queue)) return 0;
  if (kLocks) queue.lock.unlock();
  return ENOENT;
}

int next_poll(ibv_cq_ex* cq) { return next_entry(CompletionQueue::of(cq)) ? 0 : ENOENT; }

template <bool kLocks>
void end_poll(ibv_cq_ex* cq) {
  if (kLocks) CompletionQueue::of(cq).lock.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return opcode_of(CompletionQueue::of(cq).current); }
std::uint32_t read_vendor_err(ibv_cq_ex* /*cq*/) { return 0; }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return CompletionQueue::of(cq).current.bytes; }
__be32 read_imm_data(ibv_cq_ex* cq) { return CompletionQueue::of(cq).current.immediate; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return CompletionQueue::of(cq).current.qp_number; }
std::uint32_t read_src_qp(ibv_cq_ex* cq) { return CompletionQueue::of(cq).current.source_qp; }
unsigned int read_wc_flags(ibv_cq_ex* cq) { return flags_of(CompletionQueue::of(cq).current); }
std::uint32_t read_slid(ibv_cq_ex* /*cq*/) { return 0; }
std::uint8_t read_sl(ibv_cq_ex* cq) { return CompletionQueue::of(cq).current.service_level; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* /*cq*/) { return 0; }
std::uint64_t read_completion_ts(ibv_cq_ex* cq) {
  return CompletionQueue::of(cq).current.timestamp_ns;
}

}  // namespace

void set_poll_functions(ibv_cq_ex& cq, std::uint64_t wc_flags, bool single_threaded) noexcept {
  cq.start_poll = single_threaded ? start_poll<false> : start_poll<true>;
  cq.next_poll = next_poll;
  cq.end_poll = single_threaded ? end_poll<false> : end_poll<true>;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_wc_flags = read_wc_flags;
  // The other fields are filled in only if the program asked for them.
  if ((wc_flags & IBV_WC_EX_WITH_BYTE_LEN) != 0) cq.read_byte_len = read_byte_len;
  if ((wc_flags & IBV_WC_EX_WITH_IMM) != 0) cq.read_imm_data = read_imm_data;
  if ((wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0) cq.read_qp_num = read_qp_num;
  if ((wc_flags & IBV_WC_EX_WITH_SRC_QP) != 0) cq.read_src_qp = read_src_qp;
  if ((wc_flags & IBV_WC_EX_WITH_SLID) != 0) cq.read_slid = read_slid;
  if ((wc_flags & IBV_WC_EX_WITH_SL) != 0) cq.read_sl = read_sl;
  if ((wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0) cq.read_dlid_path_bits = read_dlid_path_bits;
  if ((wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) {
    cq.read_completion_ts = read_completion_ts;
  }
}

}  // namespace paceline::verbs
