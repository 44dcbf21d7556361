// The rights with which the service touches a program: the tenant's own, so that the kernel's
// checks decide what may be reached, not ours. Everything here concerns only the calling thread or
// process, by system calls, since the C library's functions change every thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace paceline::service {

struct Credentials {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;
  // Bits by number of the capability. Only for root's programs: a program of another user that has
  // any is not reached.
  std::uint64_t capabilities = 0;
};

// Only this process's effective user and group: no further groups, no capabilities.
Credentials own_credentials();

// Credentials of the calling thread.
struct CapabilitySets {
  std::uint64_t permitted = 0;
  std::uint64_t effective = 0;
};
CapabilitySets capability_sets();
// 0, or an errno. Nothing is inheritable.
int set_capabilities(const CapabilitySets& sets);

// Credentials of the peer of a connected Unix socket, as of its connect(). Returns 0 or an errno.
int credentials_at(int socket, pid_t& process, Credentials& out);

// While it lives, this thread opens files with these rights and no others.
class FileRights {
 public:
  explicit FileRights(const Credentials& whose);
  ~FileRights();
  FileRights(const FileRights&) = delete;
  FileRights& operator=(const FileRights&) = delete;
  // False: this process may not act for others (it has no CAP_SETUID and CAP_SETGID).
  bool good() const { return good_; }

 private:
  CapabilitySets before_;
  uid_t user_;
  gid_t group_;
  int with_parent_ = 0;  // the signal of the parent's end, which a change of user takes back
  bool good_ = false;
};

// The process in which run_as() runs as another user. That user may stop it (SIGSTOP), so that it
// does not end by itself.
class TenantProcess {
 public:
  TenantProcess() = default;
  TenantProcess(const TenantProcess&) = delete;
  TenantProcess& operator=(const TenantProcess&) = delete;
  ~TenantProcess();
  void began(int handle);  // a pidfd, which becomes its own
  // Any thread; also before it has begun.
  void kill();

 private:
  std::atomic<int> handle_{-1};
  std::atomic<bool> killed_{false};
};

// Runs work(argument) with these credentials until it returns. False: that is not possible here.
//
// For the service's own user it runs on this thread, which keeps only the capabilities that the
// tenant has, too. For another user it runs in a process that shares memory and descriptors with
// this one, while this thread waits. A thread would not do: the tenant could kill it with a signal,
// which would end the whole service. `work` may be killed between any two instructions, so it must
// take no lock and allocate nothing. The process ends with this thread. `process` must outlive the
// call, and serves one call.
bool run_as(const Credentials& whose, void (*work)(void*), void* argument, TenantProcess& process);

}  // namespace paceline::service
