#include "dataplane/service/adapters/pair_adapter.h"

#include <algorithm>
#include <array>
#include <bit>

#include "dataplane/service/adapters/entry_values.h"
#include "dataplane/service/adapters/notifier.h"
#include "dataplane/service/limits/service_limits.h"

namespace paceline::service {

namespace {

constexpr std::uint32_t from_network(std::uint32_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

// All fields except the position of the bytes.
transport::WorkRequest request_from(const attach::SendSlot& slot, transport::WorkOpcode opcode,
                                    std::uint32_t index) {
  transport::WorkRequest request;
  request.opcode = opcode;
  request.wr_id = index;
  request.signaled = (slot.flags & attach::send_flag::signaled) != 0;
  request.solicited = (slot.flags & attach::send_flag::solicited) != 0;
  request.fence = (slot.flags & attach::send_flag::fence) != 0;
  request.remote_address = slot.remote_address;
  request.remote_key = slot.remote_key;
  if (opcode == transport::WorkOpcode::send_invalidate) {
    request.remote_key = slot.immediate;
  } else {
    request.immediate = from_network(slot.immediate);
  }
  if (opcode == transport::WorkOpcode::compare_swap) {
    request.compare = slot.compare_add;
    request.swap_add = slot.swap;
  } else {
    request.swap_add = slot.compare_add;
  }
  request.address_handle = slot.address_handle;
  request.target_qp_number = slot.target_qp;
  request.target_qkey = slot.target_qkey;
  request.target_srq = slot.target_srq;
  return request;
}

}  // namespace

void PairAdapter::notify(std::uint32_t event) const {
  if (!is_target()) write_notice(s_.notices, {event, s_.handle});
  for (const Listener& listener : listeners_)
    write_notice(listener.notices, {event, listener.handle});
}

void PairAdapter::remove_listener(int notices, std::uint32_t handle) {
  std::erase(listeners_, Listener{notices, handle});
}

Pumped PairAdapter::pump(Picos now, std::uint32_t budget) {
  Pumped pumped;
  if (s_.receives != nullptr) {
    const OwnReceives::Result result = s_.receives->pump(now, *s_.engine, s_.number);
    failed_ |= result.broken;
    pumped.any = result.any;
    pumped.more = result.more;
  }
  std::uint32_t waiting = s_.send.waiting();
  if (waiting != 0) {
    failed_ |= s_.send.corrupted(waiting);
    for (; waiting != 0 && !failed_; --waiting) {
      if (pumped.messages == budget || take_send(now) == Step::wait) {
        pumped.more = true;
        break;
      }
      ++pumped.messages;
    }
    if (pumped.messages != 0) {
      pumped.any = true;
      s_.send.tell_taken(s_.send.next());
    }
  }
  if (failed_) {
    fail(now);
    pumped.more = false;
  }
  return pumped;
}

void PairAdapter::forget() {
  count_lost();
  if (is_target()) return;
  s_.send.skip_all();
  if (s_.receives != nullptr) s_.receives->forget();
}

PairAdapter::Step PairAdapter::take_send(Picos now) {
  const std::uint32_t index = s_.send.next();
  const std::byte* const at = s_.send.slot(index);
  attach::SendSlot slot;
  copy_out(&slot, at, sizeof(slot));
  if (slot.opcode == attach::SendOpcode::local_invalidate) return invalidate(now, index, slot);
  if (slot.opcode == attach::SendOpcode::bind_window) return bind_window(now, index, slot);

  const auto opcode = work_opcode(slot.opcode);
  if (!opcode) return refuse(now, index, slot, attach::EntryStatus::local_qp_operation_error);
  transport::WorkRequest request = request_from(slot, *opcode, index);
  SegmentList list;
  std::array<std::byte, kMostInlineBytes> inline_bytes;
  if ((slot.flags & attach::send_flag::inlined) != 0) {
    if (slot.inline_bytes > s_.max_inline) {
      return refuse(now, index, slot, attach::EntryStatus::local_length_error);
    }
    if (slot.inline_bytes != 0) copy_out(inline_bytes.data(), at + sizeof(slot), slot.inline_bytes);
    request.inline_bytes = inline_bytes.data();
    request.length = slot.inline_bytes;
  } else {
    if (slot.segments > s_.max_segments) {
      return refuse(now, index, slot, attach::EntryStatus::local_qp_operation_error);
    }
    list.take(at + sizeof(slot), slot.segments);
    if (list.count == 1) {
      request.local_address = list.segments[0].address;
      request.length = list.segments[0].length;
      request.local_key = list.segments[0].key;
    } else if (list.count > 1) {
      request.segments = list.segments.data();
      request.segment_count = static_cast<std::uint8_t>(list.count);
    }
  }
  const transport::PostResult result = s_.engine->post_send(now, s_.number, request);
  switch (result) {
    case transport::PostResult::ok:
      count_begin(now, index, request);
      s_.send.advance();
      return Step::taken;
    case transport::PostResult::queue_full:
    case transport::PostResult::bad_state:  // it may still come to RTS
      return Step::wait;
    default:
      return refuse(now, index, slot, refused_status(result));
  }
}

// In order: requests posted earlier complete first.
PairAdapter::Step PairAdapter::refuse(Picos now, std::uint32_t index, const attach::SendSlot& slot,
                                      attach::EntryStatus status) {
  const transport::QpState state = s_.engine->view().state_of(s_.number);
  const bool flushed = state == transport::QpState::error || state == transport::QpState::sqe;
  if (!flushed && !transport::can_send(state)) return Step::wait;
  if (!flushed && s_.engine->view().queued_sends(s_.number) != 0) return Step::wait;
  if (s_.send_cq != nullptr) {
    s_.send_cq->push(*s_.pairs,
                     own_entry(now, index, slot, flushed ? attach::EntryStatus::flushed : status));
  }
  s_.send.advance();
  if (!flushed) fail(now);
  return Step::taken;
}

PairAdapter::Step PairAdapter::invalidate(Picos now, std::uint32_t index,
                                          const attach::SendSlot& slot) {
  if (s_.engine->view().state_of(s_.number) != transport::QpState::rts) {
    return refuse(now, index, slot, attach::EntryStatus::local_qp_operation_error);
  }
  if (s_.engine->view().queued_sends(s_.number) != 0) return Step::wait;
  if (!s_.engine->regions().invalidate(slot.immediate, s_.pd, 0, s_.number)) {
    return refuse(now, index, slot, attach::EntryStatus::local_qp_operation_error);
  }
  return done_here(now, index, slot);
}

// Vol. 1, 10.6.7.2: only on a reliable or unreliable connection; a window that may not be bound
// fails the queue pair.
PairAdapter::Step PairAdapter::bind_window(Picos now, std::uint32_t index,
                                           const attach::SendSlot& slot) {
  const bool offered = s_.type == transport::QpType::rc || s_.type == transport::QpType::uc;
  if (!offered || s_.engine->view().state_of(s_.number) != transport::QpState::rts) {
    return refuse(now, index, slot, attach::EntryStatus::local_qp_operation_error);
  }
  if (s_.engine->view().queued_sends(s_.number) != 0) return Step::wait;
  transport::WindowBind bind;
  bind.key = slot.remote_key;
  bind.region = slot.address_handle;
  bind.address = slot.remote_address;
  bind.length = slot.compare_add;
  bind.access = static_cast<std::uint8_t>(slot.swap & transport::access::remote);
  bind.pd = s_.pd;
  bind.qp = s_.number;
  // Local rights do not matter here: a window is never used locally.
  const bool known =
      (slot.swap & ~std::uint64_t{transport::access::remote | transport::access::local_write}) == 0;
  if (!known || !s_.engine->regions().bind(bind)) {
    return refuse(now, index, slot, attach::EntryStatus::window_bind_error);
  }
  return done_here(now, index, slot);
}

PairAdapter::Step PairAdapter::done_here(Picos now, std::uint32_t index,
                                         const attach::SendSlot& slot) {
  if ((slot.flags & attach::send_flag::signaled) != 0) {
    s_.send_cq->push(*s_.pairs, own_entry(now, index, slot, attach::EntryStatus::success));
  }
  s_.send.advance();
  return Step::taken;
}

attach::CompletionEntry PairAdapter::own_entry(Picos now, std::uint32_t index,
                                               const attach::SendSlot& slot,
                                               attach::EntryStatus status) const {
  attach::CompletionEntry entry;
  entry.wr_id = slot.wr_id;
  entry.timestamp_ns = static_cast<std::uint64_t>(to_nanos(now).count);
  entry.qp_number = s_.number;
  entry.retired = index + 1;
  entry.status = status;
  entry.opcode = entry_opcode(slot.opcode);
  return entry;
}

attach::CompletionEntry PairAdapter::entry_of(const transport::Completion& completion) const {
  attach::CompletionEntry entry = entry_from(completion);
  const auto index = static_cast<std::uint32_t>(completion.wr_id);
  if (!is_receive(completion.opcode)) {
    entry.wr_id = s_.send.wr_id(index);
    entry.retired = index + 1;
  } else if (s_.receives != nullptr) {
    entry.wr_id = s_.receives->view().wr_id(index);
    entry.retired = index + 1;
  } else if (s_.shared != nullptr) {
    s_.shared->tell_taken();
  }
  return entry;
}

void PairAdapter::count_begin(Picos now, std::uint32_t index,
                              const transport::WorkRequest& request) {
  if (begun_.empty() || transport::is_atomic(request.opcode)) return;
  const auto now_ns = static_cast<std::uint64_t>(to_nanos(now).count);
  std::uint64_t bytes = request.length;
  for (unsigned i = 0; i < request.segment_count; ++i) bytes += request.segments[i].length;
  telemetry::MessageBegun& slot = begun_[index & (begun_.size() - 1)];
  // Its place is taken again, so the former request has completed silently.
  s_.meter->end(slot, now_ns, telemetry::MessageEnd::completed);
  slot = s_.meter->begin(now_ns, bytes, cluster_of(request));
}

// The cluster that the message's data goes to; for a READ, this NIC's own.
std::uint8_t PairAdapter::cluster_of(const transport::WorkRequest& request) const {
  if (s_.meter->clusters() == 0) [[likely]]
    return telemetry::kNoCluster;
  return transport::expects_response(request.opcode)
             ? s_.meter->own_cluster()
             : s_.engine->view().cluster_of(s_.number, request.address_handle);
}

void PairAdapter::count_end(const transport::Completion& completion) {
  if (begun_.empty()) return;
  const auto now_ns = static_cast<std::uint64_t>(to_nanos(completion.at).count);
  const auto index = static_cast<std::uint32_t>(completion.wr_id);
  const auto slots = static_cast<std::uint32_t>(begun_.size());
  if (index - oldest_ >= slots) oldest_ = index - (slots - 1);
  for (; oldest_ != index; ++oldest_) {
    s_.meter->end(begun_[oldest_ & (slots - 1)], now_ns, telemetry::MessageEnd::completed);
  }
  s_.meter->end(begun_[index & (slots - 1)], now_ns,
                completion.status == transport::CompletionStatus::success
                    ? telemetry::MessageEnd::completed
                    : telemetry::MessageEnd::failed);
  oldest_ = index + 1;
}

void PairAdapter::count_lost() {
  for (telemetry::MessageBegun& slot : begun_) {
    s_.meter->end(slot, slot.at_ns, telemetry::MessageEnd::failed);
  }
}

void PairAdapter::fail(Picos now) {
  transport::QpAttributes attributes;
  attributes.state = transport::QpState::error;
  s_.engine->modify_qp(now, s_.number, attributes, transport::qp_attribute::state);
}

}  // namespace paceline::service
