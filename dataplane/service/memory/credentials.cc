#include "dataplane/service/memory/credentials.h"

#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::service {

namespace {

using CapabilityWords = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

// The saved user stays the service's. So the tenant cannot trace the process, whose memory is the
// service's, and the service can end it. The other user ids decide which memory a process may
// reach.
bool become_tenant(const Credentials& whose, std::uint64_t capabilities) {
  return ::syscall(SYS_setgroups, whose.groups.size(), whose.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, whose.group, whose.group, whose.group) == 0 &&
         ::syscall(SYS_setresuid, whose.user, whose.user, -1) == 0 &&
         set_capabilities({capabilities, capabilities}) == 0 && ::prctl(PR_SET_DUMPABLE, 0) == 0;
}

struct Begin {
  const Credentials& whose;
  void (*work)(void*);
  void* argument;
  std::uint64_t capabilities;
  pid_t service;
};

constexpr int kCouldNot = 1;

// In the process of run_as().
int begin_process(void* at) {
  const Begin& begin = *static_cast<const Begin*>(at);
  // Changing the user takes the wish for a signal back: so it comes after that.
  if (!become_tenant(begin.whose, begin.capabilities) || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
      ::getppid() != begin.service) {
    return kCouldNot;
  }
  begin.work(begin.argument);
  return 0;
}

constexpr std::uint64_t kChangesUser = std::uint64_t{1} << CAP_SETUID | std::uint64_t{1}
                                                                            << CAP_SETGID;

// Capabilities that are in force only while the thread changes user, so that no other code uses
// them by mistake.
void allow_changes(const CapabilitySets& now) {
  set_capabilities({now.permitted, now.effective | (now.permitted & kChangesUser)});
}

bool run_in_process(Begin& begin, TenantProcess& process) {
  constexpr std::size_t kStack = std::size_t{256} << 10U;
  constexpr std::size_t kGuard = std::size_t{64} << 10U;
  void* const stack = ::mmap(nullptr, kGuard + kStack, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) return false;
  std::byte* const bottom = static_cast<std::byte*>(stack) + kGuard;
  int status = -1;
  if (::mprotect(bottom, kStack, PROT_READ | PROT_WRITE) == 0) {
    // The process uses this thread's thread-local memory. That is safe because this thread is in a
    // system call meanwhile. No signal is sent when the process ends.
    const CapabilitySets before = capability_sets();
    allow_changes(before);
    int handle = -1;
    const pid_t child = ::clone(begin_process, bottom + kStack,
                                CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_PIDFD, &begin, &handle);
    set_capabilities(before);
    if (child > 0) {
      process.began(handle);
      while (::syscall(SYS_wait4, child, &status, __WALL, nullptr) < 0 && errno == EINTR) {
      }
    }
  }
  ::munmap(stack, kGuard + kStack);
  return status >= 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == kCouldNot);
}

}  // namespace

TenantProcess::~TenantProcess() { attach::Descriptor closed(handle_.load()); }

void TenantProcess::began(int handle) {
  handle_.store(handle);
  if (killed_.load()) kill();
}

// Both sides write, then look: one of them sees the other.
void TenantProcess::kill() {
  killed_.store(true);
  if (const int handle = handle_.load(); handle >= 0) {
    ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
  }
}

CapabilitySets capability_sets() {
  __user_cap_header_struct header = this_thread();
  CapabilityWords words{};
  CapabilitySets out;
  if (::syscall(SYS_capget, &header, words.data()) != 0) return out;
  out.permitted = std::uint64_t{words[1].permitted} << 32U | words[0].permitted;
  out.effective = std::uint64_t{words[1].effective} << 32U | words[0].effective;
  return out;
}

int set_capabilities(const CapabilitySets& sets) {
  __user_cap_header_struct header = this_thread();
  CapabilityWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i].permitted = static_cast<std::uint32_t>(sets.permitted >> 32U * i);
    words[i].effective = static_cast<std::uint32_t>(sets.effective >> 32U * i);
  }
  return ::syscall(SYS_capset, &header, words.data()) == 0 ? 0 : errno;
}

Credentials own_credentials() { return {::geteuid(), ::getegid(), {}, 0}; }

int credentials_at(int socket, pid_t& process, Credentials& out) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return errno;
  process = peer.pid;
  out.user = peer.uid;
  out.group = peer.gid;
  out.groups.resize(64);
  for (;;) {
    length = static_cast<socklen_t>(out.groups.size() * sizeof(gid_t));
    const bool got =
        ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, out.groups.data(), &length) == 0;
    out.groups.resize(length / sizeof(gid_t));
    if (got) return 0;
    if (errno != ERANGE) return errno;
  }
}

FileRights::FileRights(const Credentials& whose)
    : before_(capability_sets()), user_(::geteuid()), group_(::getegid()) {
  ::prctl(PR_GET_PDEATHSIG, &with_parent_, 0, 0, 0);
  allow_changes(before_);
  ::setfsgid(whose.group);
  ::setfsuid(whose.user);
  // Each call returns the previous value, so asking for an invalid user reads it.
  const bool ours = static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == whose.user &&
                    static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == whose.group;
  good_ =
      ours && set_capabilities({before_.permitted, before_.permitted & whose.capabilities}) == 0;
}

FileRights::~FileRights() {
  ::setfsuid(user_);
  ::setfsgid(group_);
  set_capabilities(before_);
  if (with_parent_ != 0) ::prctl(PR_SET_PDEATHSIG, with_parent_, 0, 0, 0);
}

bool run_as(const Credentials& whose, void (*work)(void*), void* argument, TenantProcess& process) {
  const std::uint64_t capabilities = capability_sets().permitted & whose.capabilities;
  if (whose.user == ::geteuid() && whose.group == ::getegid()) {
    if (set_capabilities({capabilities, capabilities}) != 0) return false;
    work(argument);
    return true;
  }
  Begin begin{whose, work, argument, capabilities, ::getpid()};
  return run_in_process(begin, process);
}

}  // namespace paceline::service
