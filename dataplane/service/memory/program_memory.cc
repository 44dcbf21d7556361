#include "dataplane/service/memory/program_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <string>

namespace paceline::service {

namespace {

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

// What an address of the program looks like to the kernel: never followed here.
void* foreign(std::uint64_t address) { return reinterpret_cast<void*>(address); }

CopyResult copy_piece(Call call, pid_t pid, const ProgramPiece& piece) {
  std::size_t done = 0;
  while (done < piece.bytes) {
    const iovec local{piece.here + done, piece.bytes - done};
    const iovec remote{foreign(piece.address + done), piece.bytes - done};
    const ssize_t n = call(pid, &local, 1, &remote, 1, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);  // stopped at a page that is not there: ask for it alone
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPERM) return CopyResult::refused;
    if (n < 0 && errno == ESRCH) return CopyResult::gone;
    return CopyResult::fault;
  }
  return CopyResult::done;
}

bool copy_all(Call call, pid_t pid, std::span<const ProgramPiece> pieces) {
  assert(pieces.size() <= ProgramMemory::kBatch);
  std::array<iovec, ProgramMemory::kBatch> local;
  std::array<iovec, ProgramMemory::kBatch> remote;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    local[i] = {pieces[i].here, pieces[i].bytes};
    remote[i] = {foreign(pieces[i].address), pieces[i].bytes};
    bytes += pieces[i].bytes;
  }
  return call(pid, local.data(), pieces.size(), remote.data(), pieces.size(), 0) ==
         static_cast<ssize_t>(bytes);
}

}  // namespace

int ProgramMemory::open(pid_t pid) {
  const std::string name = "/proc/" + std::to_string(pid) + "/mem";
  attach::Descriptor space(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return errno;
  space_ = std::move(space);
  pid_ = pid;
  return 0;
}

bool ProgramMemory::alive() const {
  // Nothing is mapped at 0, which is an error; of an address space that has ended, it is the end of
  // the file.
  char byte = 0;
  return space_ && ::pread(space_.get(), &byte, 1, 0) != 0;
}

CopyResult ProgramMemory::read(const ProgramPiece& piece) const {
  return copy_piece(::process_vm_readv, pid_, piece);
}
CopyResult ProgramMemory::write(const ProgramPiece& piece) const {
  return copy_piece(::process_vm_writev, pid_, piece);
}
bool ProgramMemory::read_all(std::span<const ProgramPiece> pieces) const {
  return copy_all(::process_vm_readv, pid_, pieces);
}
bool ProgramMemory::write_all(std::span<const ProgramPiece> pieces) const {
  return copy_all(::process_vm_writev, pid_, pieces);
}

}  // namespace paceline::service
