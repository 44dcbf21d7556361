// The thread that copies between the service and one tenant's address space, with the tenant's
// credentials (run_as: for another user that is a process). The tenant may make it wait for ever,
// or stop or kill it between any two instructions. So nothing ever waits for it: the worker passes
// jobs to it and takes results back through rings. If it hangs at its end, its process is killed
// and the thread is left behind (it owns the memory that it uses; without a process it ends as soon
// as the tenant's pages arrive).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "dataplane/service/memory/order_shuffler.h"
#include "dataplane/service/memory/program_memory.h"
#include "dataplane/transport/memory/region.h"

namespace paceline::service {

enum class CopyKind : std::uint8_t { read, write, atomic };

// Jobs begun (by the worker) and ended (by the copy thread) for one region.
struct CopyLedger {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> ended{0};
  bool quiet() const {
    return ended.load(std::memory_order_acquire) == begun.load(std::memory_order_acquire);
  }
};

// Belongs to the worker; between submit() and take_done() to the copy thread.
struct CopyJob {
  CopyKind kind = CopyKind::read;
  CopyResult result = CopyResult::done;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;  // in the program
  std::byte* data = nullptr;  // where it comes from or goes to; atomic: the original value
  transport::AtomicOperation operation{};
  CopyLedger* ledger = nullptr;
  OrderTarget order;  // of a write
};

struct CopyCounters {
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> faults{0};
  std::atomic<std::uint64_t> refused{0};
};

class CopyThread {
 public:
  static constexpr std::uint32_t kJobs = 256;
  static constexpr std::uint32_t kJobBytes = 4096 + 64;  // a full packet's payload and a GRH

  // `wake`: called on the copy thread after jobs were done; must not block, lock or allocate.
  CopyThread(std::shared_ptr<ProgramMemory> program, std::function<void()> wake);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  // As leave(). Waits at most a tenth of a second for a copy in progress; then kills the copying
  // process.
  ~CopyThread();

  // --- the worker's thread ---
  CopyJob& job(std::uint32_t index);
  std::byte* buffer(std::uint32_t index);  // kJobBytes of the job's own
  // A job may be submitted again only after it was taken back. Jobs are carried out in the order
  // given.
  void submit(std::uint32_t index);
  std::size_t take_done(std::span<std::uint32_t> out);

  // --- any thread ---
  // `wake` is not called any more.
  void leave();
  // Lives as long as the thread may touch it: what belongs to a region that goes although a copy of
  // it hangs.
  void keep(std::shared_ptr<const void> what);
  const CopyCounters& counters() const;

 private:
  struct State;
  static void run(void* of);
  std::shared_ptr<State> state_;
};

}  // namespace paceline::service
