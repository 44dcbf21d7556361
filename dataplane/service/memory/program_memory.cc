#include "dataplane/service/memory/program_memory.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#ifndef SO_PEERPIDFD  // Linux 6.5; older headers do not name it
#define SO_PEERPIDFD 77
#endif

namespace paceline::service {

namespace {

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

// An address of the program as the kernel takes it. It is never dereferenced here.
void* foreign(std::uint64_t address) { return reinterpret_cast<void*>(address); }

CopyResult copy_piece(Call call, pid_t pid, const ProgramPiece& piece) {
  std::size_t done = 0;
  while (done < piece.bytes) {
    const iovec local{piece.here + done, piece.bytes - done};
    const iovec remote{foreign(piece.address + done), piece.bytes - done};
    const ssize_t n = call(pid, &local, 1, &remote, 1, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);  // stopped at a missing page: ask for that page alone
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

// Descriptors of a process, by the system call: the C library's are newer than the kernel's.
int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
int signal_process(int process, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0));
}

// -1: the kernel has it not (before Linux 6.5), or the process has ended.
int process_at(int socket) {
  int process = -1;
  socklen_t length = sizeof process;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length) == 0 ? process : -1;
}

std::string text_at(int folder, const char* name) {
  const attach::Descriptor file(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  std::string text(16'384, '\0');
  const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

// For a process in the service's own user namespace; capabilities in another one mean nothing here.
std::uint64_t capability_line(int folder, std::string_view name) {
  const std::string users = text_at(folder, "uid_map");
  if (users.empty() || users != text_at(AT_FDCWD, "/proc/self/uid_map")) return 0;
  const std::string status = text_at(folder, "status");
  const std::size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::strtoull(&status[at + name.size()], nullptr, 16);
}

// The kernel's rule: a process may trace only programs with no more capabilities than its own. The
// copying process has those of the service's capabilities that the program has, too.
bool may_copy_for(std::uint64_t theirs) {
  constexpr std::uint64_t kTrace = std::uint64_t{1} << CAP_SYS_PTRACE;
  const std::uint64_t ours = capability_sets().permitted;
  return (theirs & ~ours) == 0 || (theirs & ours & kTrace) != 0;
}

}  // namespace

ProgramMemory::ProgramMemory(int socket) { error_ = pin(socket); }

int ProgramMemory::pin(int socket) {
  if (const int error = credentials_at(socket, pid_, credentials_); error != 0) return error;
  if (pid_ <= 0) return ESRCH;  // of a namespace that is not seen from here
  // Without a handle from the peer's credentials, use the process that has its number now: later
  // requests come from that process, or are refused (Message::sender).
  process_.reset(process_at(socket));
  if (!process_) process_.reset(open_process(pid_));
  if (!process_) return errno;
  const bool root = credentials_.user == 0;
  credentials_.capabilities = root ? ~std::uint64_t{0} : 0;
  {
    const FileRights rights(credentials_);
    if (!rights.good()) return EPERM;
    const std::string name = "/proc/" + std::to_string(pid_);
    folder_.reset(::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) return errno == ENOENT ? ESRCH : errno;
    if (root) credentials_.capabilities = capability_line(folder_.get(), "\nCapPrm:\t");
  }
  {
    const FileRights rights(credentials_);
    stat_.reset(::openat(folder_.get(), "stat", O_RDONLY | O_CLOEXEC));
    if (!stat_) return errno == ENOENT ? ESRCH : errno;
    image_ = image();
  }
  if (!may_copy_for(credentials_.capabilities)) return EPERM;
  // The process lives, so its number was its own all the time.
  return ended() ? ESRCH : error();
}

bool ProgramMemory::ended() const {
  return signal_process(process_.get(), 0) != 0 && errno != EPERM;
}

// Reading this takes no lock that the program can hold, as opening its address space does; and it
// allocates nothing.
ProgramImage ProgramMemory::image() const {
  ProgramImage out{};
  std::array<char, 4096> text{};
  const ssize_t n = ::pread(stat_.get(), text.data(), text.size(), 0);
  const std::string_view line(text.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  // The second field is a name in parentheses, which may contain anything.
  std::size_t at = line.rfind(')');
  if (at == std::string_view::npos) return out;
  std::size_t kept = 0;
  for (int field = 3; kept < out.size(); ++field) {
    at = line.find(' ', at + 1);
    if (at == std::string_view::npos) return out;
    if (field == 22 || (field >= 26 && field <= 28) || (field >= 45 && field <= 51)) {
      std::from_chars(line.data() + at + 1, line.data() + line.size(), out[kept++]);
    }
  }
  return out;
}

std::uint64_t ProgramMemory::lockable() const {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if (credentials_.user == 0) return kAll;
  const FileRights rights(credentials_);
  if ((capability_line(folder_.get(), "\nCapEff:\t") >> CAP_IPC_LOCK & 1U) != 0) return kAll;
  const std::string limits = text_at(folder_.get(), "limits");
  constexpr std::string_view kName = "\nMax locked memory";
  const std::size_t at = limits.find(kName);
  if (at == std::string::npos) return 0;
  const std::size_t value = limits.find_first_not_of(' ', at + kName.size());
  if (value == std::string::npos) return 0;
  return limits.compare(value, 9, "unlimited") == 0 ? kAll
                                                    : std::strtoull(&limits[value], nullptr, 10);
}

int ProgramMemory::error() const {
  if (error_ != 0) return error_;
  if (const int found = found_.load(std::memory_order_acquire); found != 0) return found;
  if (ended()) return ESRCH;
  // Files of a process that its user may not trace are root's.
  struct stat facts {};
  const FileRights rights(credentials_);
  if (::fstatat(folder_.get(), "mem", &facts, 0) != 0) return errno == ENOENT ? ESRCH : errno;
  if (facts.st_uid != credentials_.user) return EPERM;
  return image() == image_ ? 0 : ESRCH;
}

int ProgramMemory::open_space() {
  if (error_ != 0) return error_;
  // The first asks for the right to trace, which Yama may refuse although it allows copies later
  // (PR_SET_PTRACER). The second asks for the right to read. Copies ask for the former each time.
  for (const char* const name : {"mem", "pagemap"}) {
    space_.reset(::openat(folder_.get(), name, O_RDONLY | O_CLOEXEC));
    if (space_ || (errno != EACCES && errno != EPERM)) break;
  }
  if (!space_) return errno == ENOENT ? ESRCH : errno;
  return image() == image_ ? 0 : ESRCH;
}

void ProgramMemory::open() { deny(open_space()); }

CopyResult ProgramMemory::reachable(bool closely) const {
  switch (found_.load(std::memory_order_relaxed)) {
    case 0:
      break;
    case ESRCH:
      return CopyResult::gone;
    default:
      return CopyResult::refused;
  }
  // Nothing is mapped at 0: reading there gives an error or an empty entry. For an address space
  // that has ended, it gives the end of the file.
  std::uint64_t word = 0;
  const bool alive = ::pread(space_.get(), &word, sizeof word, 0) != 0;
  if (alive && (!closely || image() == image_)) return CopyResult::done;
  found_.store(ESRCH, std::memory_order_release);
  return CopyResult::gone;
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
