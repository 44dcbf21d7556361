#include "dataplane/verbs/injection/pair_faults.h"

#include <algorithm>
#include <cstring>

namespace paceline::verbs {

namespace {

using attach::EntryStatus;
using attach::FaultKind;
using attach::SendOpcode;

constexpr auto kUnknownOpcode = static_cast<SendOpcode>(0xFF);
constexpr std::uint32_t kOtherKey = 0xFFFF'FF00;  // the bits by which keys are found

bool has_remote_key(SendOpcode opcode) {
  return opcode == SendOpcode::write || opcode == SendOpcode::write_imm ||
         opcode == SendOpcode::read || opcode == SendOpcode::fetch_add ||
         opcode == SendOpcode::compare_swap;
}

bool takes_receive(SendOpcode opcode) {
  return opcode == SendOpcode::send || opcode == SendOpcode::send_imm ||
         opcode == SendOpcode::send_invalidate || opcode == SendOpcode::write_imm;
}

EntryStatus status_of(FaultKind kind) {
  if (kind == FaultKind::rnr) return EntryStatus::rnr_retry_exceeded;
  return kind == FaultKind::retry_exceeded ? EntryStatus::retry_exceeded
                                           : EntryStatus::remote_operational_error;
}

}  // namespace

bool PairFaults::can_befall(FaultKind kind, const attach::SendSlot& slot) const {
  const SendOpcode opcode = slot.opcode;
  if (opcode == SendOpcode::local_invalidate || opcode == SendOpcode::bind_window) return false;
  switch (kind) {
    case FaultKind::local_protection:
      return slot.segments != 0;
    case FaultKind::remote_access:
      return reliable_ && has_remote_key(opcode);
    case FaultKind::rnr:
      return reliable_ && takes_receive(opcode);
    case FaultKind::remote_operational:
    case FaultKind::retry_exceeded:
      return reliable_;
    case FaultKind::slow:
    case FaultKind::port_down:
    case FaultKind::gid_change:
      return true;
  }
  return false;
}

void PairFaults::break_request(const attach::FaultRule& rule, attach::SendSlot& slot,
                               std::uint32_t index) {
  const std::lock_guard hold(mutex_);
  switch (rule.kind) {
    case FaultKind::local_protection: {
      attach::SharedSegment segment;
      auto* const first = reinterpret_cast<std::byte*>(&slot) + sizeof(slot);
      std::memcpy(&segment, first, sizeof(segment));
      segment.key ^= kOtherKey;
      std::memcpy(first, &segment, sizeof(segment));
      break;
    }
    case FaultKind::remote_access:
      slot.remote_key ^= kOtherKey;
      break;
    case FaultKind::slow:
      held_.push_back({index, rule.for_us});
      break;
    case FaultKind::port_down:
    case FaultKind::gid_change:
      break;
    default:
      slot.opcode = kUnknownOpcode;
      failing_.push_back({index, status_of(rule.kind)});
      break;
  }
}

void PairFaults::inject(attach::SendSlot& slot, std::uint32_t index, std::vector<Injected>& out) {
  ++requests_;
  bool broken = false;
  const attach::SendSlot asked = slot;
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    const attach::FaultRule& rule = rules_[i];
    if (!can_befall(rule.kind, asked) || !rule.hits(seed_, i, place_, ++counts_[i])) continue;
    const bool fails = rule.kind < FaultKind::slow;
    if (fails && broken) continue;  // a request fails in one way
    broken |= fails;
    break_request(rule, slot, index);
    out.push_back({rule, requests_, slot.wr_id});
  }
}

std::uint64_t PairFaults::publish(std::uint32_t tail, attach::SharedIndex& seen) {
  const std::lock_guard hold(mutex_);
  tail_ = tail;
  if (waiting_) return 0;
  seen.value.store(held_.empty() ? tail : held_.front().index, std::memory_order_release);
  waiting_ = !held_.empty();
  return waiting_ ? held_.front().micros : 0;
}

std::uint64_t PairFaults::release(attach::SharedIndex& seen) {
  const std::lock_guard hold(mutex_);
  if (!waiting_) return 0;
  held_.pop_front();
  waiting_ = !held_.empty();
  seen.value.store(waiting_ ? held_.front().index : tail_, std::memory_order_release);
  return waiting_ ? held_.front().micros : 0;
}

void PairFaults::release_all(attach::SharedIndex& seen) {
  const std::lock_guard hold(mutex_);
  if (!waiting_) return;
  held_.clear();
  waiting_ = false;
  seen.value.store(tail_, std::memory_order_release);
}

void PairFaults::correct(attach::CompletionEntry& entry) {
  const std::lock_guard hold(mutex_);
  const std::uint32_t index = entry.retired - 1;
  const auto found = std::find_if(failing_.begin(), failing_.end(),
                                  [&](const Failing& f) { return f.index == index; });
  if (found == failing_.end()) return;
  if (entry.status == EntryStatus::local_qp_operation_error) entry.status = found->status;
  failing_.erase(found);
}

}  // namespace paceline::verbs
