// The address space of a program, seen from the service: bytes are copied in and out by
// process_vm_readv and process_vm_writev, which honour the program's own page protection. Whoever
// calls may have to wait for the program's pages, for as long as the program pleases (userfaultfd,
// files in user space), and no signal but a deadly one ends that: only threads that nobody waits
// for may call.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/attach/descriptor.h"

namespace paceline::service {

enum class CopyResult : std::uint8_t {
  done,
  fault,    // not mapped, or not with that right
  refused,  // the kernel does not let us: another user's, not dumpable
  gone,     // the program ended, or runs another image now
};

// One contiguous piece of either side.
struct ProgramPiece {
  std::uint64_t address = 0;  // in the program
  std::byte* here = nullptr;
  std::size_t bytes = 0;
};

class ProgramMemory {
 public:
  static constexpr std::size_t kBatch = 16;

  // 0, or an errno. Does not wait for the program.
  int open(pid_t pid);
  // What every copy asks first: the number may since be another program's, or the program may have
  // called exec. Both end the address space that was opened.
  bool alive() const;
  CopyResult read(const ProgramPiece& piece) const;
  CopyResult write(const ProgramPiece& piece) const;
  // At most kBatch pieces by one call. False: some of it went wrong, each has to be tried alone,
  // again (parts of it may have been copied).
  bool read_all(std::span<const ProgramPiece> pieces) const;
  bool write_all(std::span<const ProgramPiece> pieces) const;

 private:
  pid_t pid_ = -1;
  // /proc/PID/mem: bound to the address space, not to the number. Only asked whether that lives:
  // writing to it would pass over the program's page protection.
  attach::Descriptor space_;
};

}  // namespace paceline::service
