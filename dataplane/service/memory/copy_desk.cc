#include "dataplane/service/memory/copy_desk.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace paceline::service {

using transport::MemoryResult;

CopyDesk::CopyDesk(CopyThread& thread) : thread_(thread) {}

// kJobs: none.
std::uint32_t CopyDesk::free_job() {
  std::uint32_t abandoned = CopyThread::kJobs;
  for (std::uint32_t i = 0; i < CopyThread::kJobs; ++i) {
    const std::uint32_t index = next_++ % CopyThread::kJobs;
    if (states_[index] == State::free) return index;
    if (states_[index] == State::answered && abandoned == CopyThread::kJobs) abandoned = index;
  }
  // An answer that nobody came for: its queue pair may be gone. If it is not, it asks again.
  return abandoned;
}

MemoryResult CopyDesk::call(const CopyCall& call, std::uint64_t address, std::byte* out,
                            const std::byte* in, const transport::AtomicOperation& operation,
                            CopyLedger& ledger) {
  if (call.bytes > CopyThread::kJobBytes) return MemoryResult::fault;
  for (std::uint32_t index = 0; index < CopyThread::kJobs; ++index) {
    if (states_[index] == State::free || calls_[index] != call) continue;
    if (states_[index] == State::copying) return MemoryResult::pending;
    states_[index] = State::free;
    const CopyJob& job = thread_.job(index);
    if (job.result != CopyResult::done) return MemoryResult::fault;
    if (out != nullptr) std::memcpy(out, job.data, call.bytes);
    return MemoryResult::done;
  }
  const std::uint32_t index = free_job();
  if (index == CopyThread::kJobs) {
    if (waiting_.full()) return MemoryResult::fault;
    waiting_.push(call.qp_number);
    return MemoryResult::pending;
  }
  calls_[index] = call;
  states_[index] = State::copying;
  CopyJob& job = thread_.job(index);
  job.kind = call.kind;
  job.bytes = call.bytes;
  job.address = address;
  job.data = thread_.buffer(index);
  job.operation = operation;
  job.ledger = &ledger;
  if (in != nullptr) std::memcpy(job.data, in, call.bytes);
  thread_.submit(index);
  return MemoryResult::pending;
}

std::size_t CopyDesk::take_ready(std::span<std::uint32_t> out) {
  const std::size_t n = thread_.take_done(out);
  for (std::uint32_t& index : out.first(n)) {
    states_[index] = State::answered;
    index = calls_[index].qp_number;
  }
  // Each job done makes room for one that waits.
  std::size_t ready = n;
  for (std::size_t i = 0; i < n && ready < out.size() && !waiting_.empty(); ++i) {
    out[ready++] = waiting_.front();
    waiting_.pop();
  }
  return ready;
}

}  // namespace paceline::service
