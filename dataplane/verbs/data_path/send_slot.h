// Writing a request into a slot of a send queue: shared by ibv_post_send and ibv_wr_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/attach/queues.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/queue_pair/queue_pair.h"

namespace paceline::verbs {

inline attach::SendSlot& send_slot(WorkQueue& queue, std::uint32_t index) {
  return *reinterpret_cast<attach::SendSlot*>(queue.slot(index));
}
inline std::byte* body_of(attach::SendSlot& slot) {
  return reinterpret_cast<std::byte*>(&slot) + sizeof(slot);
}

// `flags`: enum ibv_send_flags, without IBV_SEND_INLINE, which says how the bytes are handed over.
inline std::uint8_t slot_flags(unsigned flags, bool all_signaled) {
  unsigned out = 0;
  if (all_signaled || (flags & IBV_SEND_SIGNALED) != 0) out |= attach::send_flag::signaled;
  if ((flags & IBV_SEND_SOLICITED) != 0) out |= attach::send_flag::solicited;
  if ((flags & IBV_SEND_FENCE) != 0) out |= attach::send_flag::fence;
  return static_cast<std::uint8_t>(out);
}

// 0 or EINVAL.
inline int put_segments(attach::SendSlot& slot, const WorkQueue& queue, const ibv_sge* list,
                        std::size_t count) {
  if (count > queue.segments) return EINVAL;
  static_assert(sizeof(ibv_sge) == sizeof(attach::SharedSegment));
  static_assert(offsetof(ibv_sge, lkey) == offsetof(attach::SharedSegment, key));
  if (count != 0) std::memcpy(body_of(slot), list, count * sizeof(ibv_sge));
  slot.segments = static_cast<std::uint8_t>(count);
  return 0;
}

// Fills in the window to bind, and how. Returns 0 or EINVAL.
inline int put_bind(attach::SendSlot& slot, const ibv_qp& qp, ibv_mw& window, std::uint32_t key,
                    const ibv_mw_bind_info& info) {
  if (window.context != qp.context || (info.mr == nullptr && info.length != 0)) return EINVAL;
  slot.remote_key = key;
  slot.address_handle = info.mr == nullptr ? 0 : info.mr->lkey;
  slot.remote_address = info.addr;
  slot.compare_add = info.length;
  slot.swap = info.mw_access_flags;
  window.rkey = key;
  return 0;
}

// Adds bytes to the inline data. 0 or EINVAL.
inline int put_inline(attach::SendSlot& slot, const WorkQueue& queue, const void* from,
                      std::size_t length) {
  if (length > queue.inline_bytes - slot.inline_bytes) return EINVAL;
  if (length != 0) std::memcpy(body_of(slot) + slot.inline_bytes, from, length);
  slot.inline_bytes += static_cast<std::uint32_t>(length);
  slot.flags |= attach::send_flag::inlined;
  return 0;
}

// States in which a send queue takes requests; in an error state they are flushed.
inline bool takes_sends(const ibv_qp& qp) {
  return qp.state >= IBV_QPS_RTS && qp.state <= IBV_QPS_ERR && qp.qp_type != IBV_QPT_XRC_RECV;
}

}  // namespace paceline::verbs
