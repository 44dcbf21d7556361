// The address space of a program, seen from the service: bytes are copied in and out by
// process_vm_readv and process_vm_writev, which honour the program's own page protection, and ask
// at each call whether whoever calls may trace the process. Whoever calls may have to wait for the
// program's pages, for as long as the program pleases (userfaultfd, files in user space), and no
// signal but a deadly one ends that: only threads that nobody waits for may call.
//
// The program is the process that connected, and is pinned when it is let in: by a handle of the
// process, its user, its start, and what an exec changes. The copy thread opens its address space
// by that handle; neither follows when the process calls exec, or when its number is given away.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/attach/descriptor.h"
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

// What an exec changes, or another process of that number has otherwise: its start, and where code,
// stack, data, arguments and environment lie. All zeros where that may not be seen.
using ProgramImage = std::array<std::uint64_t, 11>;

class ProgramMemory {
 public:
  static constexpr std::size_t kBatch = 16;

  // Pins the process at the other end of a connected Unix socket. Where that fails, error() says
  // so from then on.
  explicit ProgramMemory(int socket);

  // --- the control thread: neither this nor pinning waits for the program ---
  // 0; ESRCH: the process has ended or called exec; EPERM, EACCES: its user may not trace it, or
  // this service may not act for its user; another errno.
  int error() const;
  // Whoever copies has these (run_as).
  const Credentials& credentials() const { return credentials_; }
  pid_t process() const { return pid_; }
  // Bytes that hardware would let it pin now: RLIMIT_MEMLOCK, or all of root's and with
  // CAP_IPC_LOCK. Read anew, since the process may change its limit. 0 where it cannot be read.
  std::uint64_t lockable() const;

  // --- the thread that copies ---
  // First of all; or deny() with an errno, which makes it unreachable for good. error() says so.
  void open();
  void deny(int error) { found_.store(error, std::memory_order_release); }
  // What is asked before each copy. `closely`: whether it ended or called exec also where another
  // process keeps its former address space alive (clone with CLONE_VM); some 3 us. What the kernel
  // asks at each copy is asked of the process as it is then.
  CopyResult reachable(bool closely) const;
  CopyResult read(const ProgramPiece& piece) const;
  CopyResult write(const ProgramPiece& piece) const;
  // At most kBatch pieces by one call. False: some of it went wrong, each has to be tried alone,
  // again (parts of it may have been copied).
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
  // A file of /proc that is bound to the address space. Only asked whether that lives: writing to
  // it would pass over the program's page protection.
  attach::Descriptor space_;
  mutable std::atomic<int> found_{0};  // an errno, by the copy thread
};

}  // namespace paceline::service
