#include "dataplane/service/memory/view_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#ifndef UFFD_USER_MODE_ONLY  // Linux 5.11; older headers do not name them
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFDIO_CONTINUE  // Linux 5.14
#define UFFD_FEATURE_MINOR_SHMEM (1U << 10U)
struct uffdio_continue {
  uffdio_range range;
  __u64 mode;
  __s64 mapped;
};
#define UFFDIO_CONTINUE _IOWR(UFFDIO, 0x07, struct uffdio_continue)
#endif

namespace paceline::service::view_guard {

namespace {

struct Guard {
  Guard();
  bool works = false;
  int watch = -1;
  int event = -1;
  std::uintptr_t page_bytes = 0;
  struct sigaction before {};
  std::atomic<std::uint32_t> count{0};
  std::array<std::atomic<std::uintptr_t>, kRemembered> addresses{};
};

// State of the signal handler, which must not initialise a static at its first use.
std::atomic<Guard*> in_force{nullptr};

// On the thread that touched the page, in the middle of anything: system calls and atomics alone.
void on_missing_page(int number, siginfo_t* what, void* /*context*/) {
  const int kept = errno;
  Guard& guard = *in_force.load(std::memory_order_acquire);
  const auto address = reinterpret_cast<std::uintptr_t>(what->si_addr);
  const std::uintptr_t page = address / guard.page_bytes * guard.page_bytes;
  // Maps the page that the file has, if it has one by now. Pages are missing only in guarded views.
  uffdio_continue present{{page, guard.page_bytes}, 0, 0};
  const int mapped = ::ioctl(guard.watch, UFFDIO_CONTINUE, &present);
  bool good = mapped == 0 || errno == EEXIST || errno == EAGAIN;
  if (!good && errno == EFAULT) {
    good = ::mmap(reinterpret_cast<void*>(page), guard.page_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    if (!good) {  // more mappings than a process may have: then the file gets its page
      uffdio_zeropage fresh{{page, guard.page_bytes}, 0, 0};
      good = ::ioctl(guard.watch, UFFDIO_ZEROPAGE, &fresh) == 0 || errno == EEXIST;
    }
    const std::uint32_t at = guard.count.fetch_add(1, std::memory_order_relaxed);
    guard.addresses[at % kRemembered].store(address, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(guard.event, &one, sizeof(one));
  }
  // Any other fault is a bug of the service: it happens again, without this handler.
  if (!good) ::sigaction(number, &guard.before, nullptr);
  errno = kept;
}

Guard::Guard() : page_bytes(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))) {
  constexpr std::uint64_t kNeeded =
      UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM;
  watch =
      static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kNeeded;
  if (watch < 0 || ::ioctl(watch, UFFDIO_API, &api) != 0) return;
  event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return;
  struct sigaction handler {};
  handler.sa_sigaction = on_missing_page;
  handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&handler.sa_mask);
  in_force.store(this, std::memory_order_release);
  works = ::sigaction(SIGBUS, &handler, &before) == 0;
}

// Lives as long as the process: views may outlive everything else.
Guard& the_guard() {
  static Guard& guard = *new Guard;
  return guard;
}

}  // namespace

bool guard(std::byte* view, std::size_t bytes) {
  Guard& guard = the_guard();
  if (!guard.works) return false;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uintptr_t>(view), bytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  return ::ioctl(guard.watch, UFFDIO_REGISTER, &range) == 0;
}

int spoilt_event() { return the_guard().works ? the_guard().event : -1; }

std::size_t take_spoilt(std::span<std::uintptr_t> out) {
  Guard& guard = the_guard();
  if (!guard.works) return 0;
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t n = ::read(guard.event, &times, sizeof(times));
  std::size_t found = 0;
  for (auto& address : guard.addresses) {
    if (found == out.size()) break;
    const std::uintptr_t at = address.exchange(0, std::memory_order_relaxed);
    if (at != 0) out[found++] = at;
  }
  return found;
}

}  // namespace paceline::service::view_guard
