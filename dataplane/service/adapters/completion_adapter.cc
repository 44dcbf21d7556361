#include "dataplane/service/adapters/completion_adapter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "dataplane/service/adapters/entry_values.h"
#include "dataplane/service/adapters/notifier.h"
#include "dataplane/service/adapters/pair_adapter.h"
#include "dataplane/service/adapters/receive_adapter.h"

namespace paceline::service {

namespace {

constexpr std::uint32_t kNumberBits = 18;  // as EngineCore::kQpnIndexBits; the rest is generation

std::size_t place_of(std::uint32_t qp_number) { return qp_number & ((1U << kNumberBits) - 1); }

void wake_sleepers(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
            nullptr, 0);
}

}  // namespace

PairAdapter* PairTable::find(std::uint32_t qp_number) const {
  const std::size_t place = place_of(qp_number);
  if (place >= pairs_.size() || pairs_[place] == nullptr) return nullptr;
  return pairs_[place]->number() == qp_number ? pairs_[place] : nullptr;
}

void PairTable::add(std::uint32_t qp_number, PairAdapter* pair) {
  const std::size_t place = place_of(qp_number);
  if (place >= pairs_.size()) pairs_.resize(std::max(place + 1, pairs_.size() * 2));
  size_ += pairs_[place] == nullptr ? 1 : 0;
  pairs_[place] = pair;
}

void PairTable::remove(std::uint32_t qp_number) {
  if (find(qp_number) == nullptr) return;
  pairs_[place_of(qp_number)] = nullptr;
  --size_;
}

CompletionAdapter::CompletionAdapter(std::uint32_t handle, attach::CompletionQueueShape shape,
                                     std::byte* memory, int channel, std::uint64_t cookie)
    : handle_(handle),
      shape_(shape),
      memory_(memory),
      channel_(channel),
      cookie_(cookie),
      queue_(std::make_unique<transport::CompletionQueue>(shape.slots)) {}

attach::CompletionEntry* CompletionAdapter::entry_at(std::uint32_t index) const {
  auto* const entries =
      reinterpret_cast<attach::CompletionEntry*>(memory_ + sizeof(attach::CompletionQueueHeader));
  return entries + (index & (shape_.slots - 1));
}

std::uint32_t CompletionAdapter::waiting() const {
  return tail_ - header().head.value.load(std::memory_order_acquire);
}

bool CompletionAdapter::report_overrun() {
  if (reported_ || !overrun()) return false;
  overrun_ = reported_ = true;
  return true;
}

bool CompletionAdapter::write(const attach::CompletionEntry& entry) {
  if (overrun_) return false;
  if (waiting() >= shape_.slots) {
    overrun_ = true;
    return false;
  }
  *entry_at(tail_++) = entry;
  solicited_ |= (entry.flags & attach::entry_flag::solicited) != 0 ||
                entry.status != attach::EntryStatus::success;
  return true;
}

bool CompletionAdapter::drain(const PairTable& pairs) {
  if (event_owed_) [[unlikely]]
    tell();
  if (queue_->empty()) return false;
  std::array<transport::Completion, 16> burst;
  bool any = false;
  for (std::size_t n = 0; (n = queue_->poll(burst)) != 0;) {
    for (std::size_t i = 0; i < n; ++i) {
      if (burst[i].srq_number != 0) [[unlikely]] {
        any |= write_from_domain(burst[i]);
        continue;
      }
      PairAdapter* const pair = pairs.find(burst[i].qp_number);
      if (pair == nullptr) continue;  // destroyed since: no program waits for it
      if (!is_receive(burst[i].opcode)) pair->count_end(burst[i]);
      any |= write(pair->entry_of(burst[i]));
    }
  }
  if (any) publish();
  return true;
}

bool CompletionAdapter::write_from_domain(const transport::Completion& completion) {
  const auto at =
      std::find_if(domain_receives_.begin(), domain_receives_.end(),
                   [&](const SharedReceives* r) { return r->number() == completion.srq_number; });
  if (at == domain_receives_.end()) return false;
  attach::CompletionEntry entry = entry_from(completion);
  entry.flags |= attach::entry_flag::from_domain;
  (*at)->tell_taken();
  return write(entry);
}

void CompletionAdapter::push(const PairTable& pairs, const attach::CompletionEntry& entry) {
  drain(pairs);
  if (write(entry)) publish();
}

void CompletionAdapter::publish() {
  attach::CompletionQueueHeader& h = header();
  h.tail.value.store(tail_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool solicited = std::exchange(solicited_, false);
  const std::uint32_t wanted = h.wanted.value.load(std::memory_order_relaxed);
  if (wanted == 0) return;
  std::uint32_t served = attach::completion_wanted::event | attach::completion_wanted::sleeper;
  if (solicited) served |= attach::completion_wanted::solicited;
  if ((wanted & served) == 0) return;
  const std::uint32_t taken = h.wanted.value.fetch_and(~served, std::memory_order_seq_cst) & served;
  if ((taken & attach::completion_wanted::sleeper) != 0) wake_sleepers(h.tail.value);
  if ((taken & ~attach::completion_wanted::sleeper) != 0) {
    // One event serves both kinds of arming.
    h.wanted.value.fetch_and(~attach::completion_wanted::solicited, std::memory_order_seq_cst);
    tell();
  }
}

void CompletionAdapter::tell() {
  if (channel_ < 0) return;
  event_owed_ = !write_event(channel_, {cookie_});
}

bool CompletionAdapter::resize(attach::CompletionQueueShape shape, std::byte* memory) {
  const std::uint32_t count = waiting();
  if (overrun() || count > shape_.slots || count > shape.slots) return false;
  auto& to = *reinterpret_cast<attach::CompletionQueueHeader*>(memory);
  auto* const entries =
      reinterpret_cast<attach::CompletionEntry*>(memory + sizeof(attach::CompletionQueueHeader));
  for (std::uint32_t i = tail_ - count; i != tail_; ++i) {
    entries[i & (shape.slots - 1)] = *entry_at(i);
  }
  to.tail.value.store(tail_, std::memory_order_relaxed);
  to.head.value.store(tail_ - count, std::memory_order_relaxed);
  to.wanted.value.store(header().wanted.value.load(std::memory_order_relaxed),
                        std::memory_order_release);
  shape_ = shape;
  memory_ = memory;
  // Replaced in place: queue pairs know it by its address.
  *queue_ = transport::CompletionQueue(shape.slots);
  return true;
}

}  // namespace paceline::service
