// A program whose memory the service reaches: a child process with some pages, that waits to be
// ended. The pages are at the same addresses here, but are not the same memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/service/memory/program_memory.h"
#include "dataplane/service/memory/tenant_memory.h"

namespace paceline::service::test {

inline constexpr std::size_t kPage = 4096;

class Program {
 public:
  // `pages` of private memory, of which those for which shared(page) holds are shared through a
  // sealed file, at a place of the file that is theirs alone. `begin` runs in the child before it
  // waits.
  Program(std::size_t pages, const std::function<bool(std::size_t)>& shared,
          const std::function<void(std::byte*)>& begin = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  // As the service has it: by the connection that the program made before it waited.
  std::shared_ptr<ProgramMemory> pinned() const;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_); }
  std::size_t bytes() const { return pages_ * kPage; }
  attach::Descriptor shared_descriptor() const;
  // Extents of [offset, offset + length), as the program would send them.
  std::vector<attach::Extent> extents(std::uint64_t offset, std::uint64_t length) const;
  // What the program sees, and a way to change it.
  std::vector<std::byte> peek(std::uint64_t offset, std::size_t bytes) const;
  void poke(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void end();

 private:
  std::size_t pages_;
  std::vector<bool> shared_;
  attach::Descriptor file_;
  std::byte* memory_ = nullptr;
  pid_t pid_ = -1;
  attach::Descriptor connection_;
};

// A child that connects to this process as a user and group of that number, then runs `body`. What
// is returned is the accepted end of its connection.
attach::Descriptor connected_child(pid_t& pid, uid_t user, const std::function<void()>& body);

// Repeats a call of a provider as an engine would: once after each time that its queue pair was
// reported ready. False when it is never reported.
bool wait_ready(TenantMemory& tenant, std::uint32_t qp_number);
transport::MemoryResult read_through(TenantMemory& tenant, RegionMemory& region,
                                     std::uint64_t offset, std::span<std::byte> out);
transport::MemoryResult write_through(TenantMemory& tenant, RegionMemory& region,
                                      std::uint64_t offset, std::span<const std::byte> in);
transport::MemoryResult atomic_through(TenantMemory& tenant, RegionMemory& region,
                                       std::uint64_t offset,
                                       const transport::AtomicOperation& operation,
                                       std::uint64_t& original);

}  // namespace paceline::service::test
