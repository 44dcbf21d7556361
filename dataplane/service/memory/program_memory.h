// The address space of a program, seen from the service. Bytes are copied in and out by
// process_vm_readv and process_vm_writev, which honour the program's own page protection, and check
// at each call whether the caller may trace the process. The caller may have to wait for the
// program's pages for as long as the program likes (userfaultfd, files in user space), and only a
// fatal signal ends the wait. So only threads that no other thread waits for may call.
//
// The program is the process that connected. It is pinned when it is let in: by a handle of the
// process, its user, its start time, and values that an exec changes. The copy thread opens the
// address space by that handle. After an exec of the process, or reuse of its process id, copies
// are refused.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/service/memory/credentials.h"

namespace paceline::service {

enum class CopyResult : std::uint8_t {
  done,
  fault,    // not mapped, or not with that right
  refused,  // the kernel does not let the tenant: another user's, not dumpable
  gone,     // the program ended, or runs another image now
};

// One contiguous piece of either side.
struct ProgramPiece {
  std::uint64_t address = 0;  // in the program
  std::byte* here = nullptr;
  std::size_t bytes = 0;
};

// Values that change with an exec, or differ in another process with the same id: the start time,
// and the addresses of code, stack, data, arguments and environment. All zeros if they are hidden.
using ProgramImage = std::array<std::uint64_t, 11>;

class ProgramMemory {
 public:
  static constexpr std::size_t kBatch = 16;

  // Pins the process at the other end of a connected Unix socket. If that fails, error() returns
  // the error from then on.
  explicit ProgramMemory(int socket);

  // --- the control thread: neither this nor pinning waits for the program ---
  // 0; ESRCH: the process has ended or called exec; EPERM, EACCES: its user may not trace it, or
  // this service may not act for its user; another errno.
  int error() const;
  // Credentials with which to copy (run_as).
  const Credentials& credentials() const { return credentials_; }
  pid_t process() const { return pid_; }
  // Bytes that hardware would let it pin now: RLIMIT_MEMLOCK, or everything for root and with
  // CAP_IPC_LOCK. Read each time, since the process may change its limit. 0 if it cannot be read.
  std::uint64_t lockable() const;

  // --- the thread that copies ---
  // Call it first; or deny() with an errno, which makes the memory unreachable for good. error()
  // tells.
  void open();
  void deny(int error) { found_.store(error, std::memory_order_release); }
  // The check before each copy. `closely` also detects an end or exec if another process keeps the
  // former address space alive (clone with CLONE_VM); it takes about 3 us. At each copy the kernel
  // itself checks the process as it is then.
  CopyResult reachable(bool closely) const;
  CopyResult read(const ProgramPiece& piece) const;
  CopyResult write(const ProgramPiece& piece) const;
  // Copies at most kBatch pieces by one call. False: at least one failed, and each has to be tried
  // alone, again (parts may have been copied).
  bool read_all(std::span<const ProgramPiece> pieces) const;
  bool write_all(std::span<const ProgramPiece> pieces) const;

 private:
  int pin(int socket);
  int open_space();
  bool ended() const;
  ProgramImage image() const;

  pid_t pid_ = -1;
  Credentials credentials_;
  attach::Descriptor process_;  // a pidfd
  attach::Descriptor folder_;   // /proc/PID
  attach::Descriptor stat_;     // /proc/PID/stat
  ProgramImage image_{};        // when it was pinned
  int error_ = 0;               // of pinning
  // A file of /proc that is bound to the address space. Used only to ask whether that still lives:
  // writing to it would bypass the program's page protection.
  attach::Descriptor space_;
  mutable std::atomic<int> found_{0};  // an errno, by the copy thread
};

}  // namespace paceline::service
