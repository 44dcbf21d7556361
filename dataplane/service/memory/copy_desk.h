// The worker's side of copying: what was asked for and has to wait becomes a job of the copy
// thread; the result is kept until the call is repeated. Only the worker's thread calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/fixed_ring.h"
#include "dataplane/service/memory/copy_thread.h"

namespace paceline::service {

// A call of transport::MemoryProvider.
struct CopyCall {
  CopyKind kind = CopyKind::read;
  std::uint32_t qp_number = 0;
  std::uint64_t region = 0;  // never used again for another one
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  bool operator==(const CopyCall&) const = default;
};

class CopyDesk {
 public:
  explicit CopyDesk(CopyThread& thread);

  // A call for memory at `address` of the program. `data`: of a read what is filled in, of a write
  // what is written, of an atomic where the original value goes.
  transport::MemoryResult call(const CopyCall& call, std::uint64_t address, std::byte* out,
                               const std::byte* in, const transport::AtomicOperation& operation,
                               CopyLedger& ledger);
  // Queue pairs whose calls will get an answer now.
  std::size_t take_ready(std::span<std::uint32_t> out);

 private:
  enum class State : std::uint8_t { free, copying, answered };
  static constexpr std::size_t kWaiting = 16'384;

  std::uint32_t free_job();

  CopyThread& thread_;
  std::array<CopyCall, CopyThread::kJobs> calls_{};
  std::array<State, CopyThread::kJobs> states_{};
  std::uint32_t next_ = 0;
  // Queue pairs that found no job free. Each has at most four calls under way (either side of it
  // reads and writes), and a session has 4096 queue pairs at most.
  FixedRing<std::uint32_t> waiting_{kWaiting};
};

}  // namespace paceline::service
