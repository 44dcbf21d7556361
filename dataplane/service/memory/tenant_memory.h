// How the service reaches the memory that a program has registered. A region is a list of extents.
// Extents in the program's sealed shared memory are mapped and reached at once. All others stay in
// the program's address space: a thread of the tenant's own copies them (process_vm_readv,
// process_vm_writev). A program may make that thread wait; the worker never waits.
//
// Three kinds of threads. The session's own turn registers and removes regions: on the control
// thread or on a side thread, never on two at a time. The worker reads and writes through
// transport::MemoryProvider. The copy thread copies.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/transport/memory/region.h"

namespace paceline::service {

class ProgramMemory;

// Bytes by the way they are reached, and what the copy thread did.
struct TenantMemoryCounters {
  std::uint64_t shared_bytes = 0;   // registered now
  std::uint64_t by_copy_bytes = 0;  // registered now
  std::uint64_t copies = 0;         // jobs of the copy thread
  std::uint64_t copied_bytes = 0;
  std::uint64_t faults = 0;   // of these jobs: the program's memory was not there
  std::uint64_t refused = 0;  // of these faults: the kernel denies the tenant access
};

// One registered region as the engine sees it. If it is wholly shared and contiguous, plain() is
// its memory, and the engine itself copies. Otherwise it is a provider.
class RegionMemory {
 public:
  RegionMemory() = default;
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  virtual ~RegionMemory() = default;
  virtual std::span<std::byte> plain() = 0;  // empty: use provider()
  // Whether this address of the service's process is in the region's mapping.
  virtual bool holds(std::uintptr_t address) const = 0;
  virtual transport::MemoryProvider& provider() = 0;
};

class TenantMemory {
 public:
  // As many shared bytes are mapped or unmapped at once, without a side thread.
  static constexpr std::uint64_t kQuickBytes = std::uint64_t{64} << 10U;

  // `wake` is called by the copy thread when take_ready() has something new: it must wake the
  // worker, and not block, lock or allocate.
  static std::unique_ptr<TenantMemory> make(std::shared_ptr<ProgramMemory> program,
                                            std::function<void()> wake);
  TenantMemory() = default;
  TenantMemory(const TenantMemory&) = delete;
  TenantMemory& operator=(const TenantMemory&) = delete;
  // Ends the copy thread, also when a copy hangs in the program's memory. Requires that no region
  // is left.
  virtual ~TenantMemory() = default;

  // --- the session's turn; all but counters() may take long ---
  // The program's shared memory, once. 0, or an errno: EPERM when it is not sealed as it must be.
  virtual int share(attach::Descriptor memory) = 0;
  // Maps what is shared. nullptr with `error` an errno: EINVAL if the extents do not add up to
  // `length` or lie outside of the shared memory; ENODATA if a part of the shared memory has no
  // pages (the service makes none for a program); ENOMEM; for extents that are copied, the result
  // of ProgramMemory::error().
  virtual std::unique_ptr<RegionMemory> add(std::uint64_t address, std::uint64_t length,
                                            std::span<const attach::Extent> extents,
                                            int& error) = 0;
  // The engine no longer knows the region, and the worker has turned since, so that no call is in
  // progress. Waits for copies in progress (bounded), then unmaps.
  virtual void remove(std::unique_ptr<RegionMemory> region) = 0;
  // Whether remove() would return at once.
  virtual bool quick_to_remove(const RegionMemory& region) const = 0;

  // --- the end, in this order ---
  // On the control thread, once the worker no longer knows this memory. `wake` is not called any
  // more. `held` is released together with the last remains of this memory, which a hanging copy
  // keeps.
  virtual void leave(std::shared_ptr<const void> held) = 0;
  // As remove(), but does not wait for copies.
  virtual void abandon(std::unique_ptr<RegionMemory> region) = 0;

  // --- any thread ---
  virtual TenantMemoryCounters counters() const = 0;

  // --- the worker's thread ---
  // Queue pairs whose memory is ready (Engine::memory_ready), as many as fit in `out`.
  virtual std::size_t take_ready(std::span<std::uint32_t> out) = 0;
  // The queue pair is gone, or its work was flushed: its outstanding accesses are not asked for
  // again, and a later queue pair with that number does not get their answers.
  virtual void forget(std::uint32_t qp_number) = 0;
};

}  // namespace paceline::service
