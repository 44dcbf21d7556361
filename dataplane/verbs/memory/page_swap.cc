#include "dataplane/verbs/memory/page_swap.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "dataplane/verbs/memory/raw_syscall.h"

#ifndef MADV_POPULATE_READ  // Linux 5.14
#define MADV_POPULATE_READ 22
#endif

namespace paceline::verbs {

namespace {

constexpr long as_long(std::uint64_t value) { return static_cast<long>(value); }
void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// While this exists, no handler of the program runs on this thread: it might write to held pages.
// Uses the system call, because the library's function leaves signals of its own unblocked.
class SignalsBlocked {
 public:
  SignalsBlocked() { set(~std::uint64_t{0}); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { set(before_); }

 private:
  void set(std::uint64_t mask) {
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, as_long(reinterpret_cast<std::uintptr_t>(&mask)),
                as_long(reinterpret_cast<std::uintptr_t>(&before_)), sizeof mask);
  }
  std::uint64_t before_ = 0;
};

// pread64 or pwrite64 of all the bytes.
long transfer(long call, int file, std::uint64_t memory, std::uint64_t bytes,
              std::uint64_t offset) {
  while (bytes != 0) {
    const long n = raw_syscall(call, file, as_long(memory), as_long(bytes), as_long(offset));
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0 ? -EIO : n;
    const auto moved = static_cast<std::uint64_t>(n);
    memory += moved;
    bytes -= moved;
    offset += moved;
  }
  return 0;
}

bool anything_at(std::uint64_t page) {
  unsigned char there = 0;
  return raw_syscall(SYS_mincore, as_long(page), 1,
                     as_long(reinterpret_cast<std::uintptr_t>(&there))) != -ENOMEM;
}

bool is_error(long result) { return result < 0 && result >= -4095; }

// Maps the file over the pages. When the kernel has taken the old mapping away and then finds no
// memory for the new one, the contents are in the file alone: it has to succeed.
long map_over(std::uint64_t begin, std::uint64_t bytes, int file, std::uint64_t offset,
              int protection) {
  for (;;) {
    const long at = raw_syscall(SYS_mmap, as_long(begin), as_long(bytes), protection,
                                MAP_SHARED | MAP_FIXED, file, as_long(offset));
    if (!is_error(at)) return 0;
    if (anything_at(begin)) return at;
    raw_syscall(SYS_sched_yield);
  }
}

// Moves private pages to where the file is mapped; as above.
long move_over(std::uint64_t begin, std::uint64_t bytes, std::uint64_t staging) {
  for (;;) {
    const long at = raw_syscall(SYS_mremap, as_long(staging), as_long(bytes), as_long(bytes),
                                MREMAP_MAYMOVE | MREMAP_FIXED, as_long(begin));
    if (!is_error(at)) return 0;
    if (anything_at(begin)) return at;
    raw_syscall(SYS_sched_yield);
  }
}

}  // namespace

PageSwap::~PageSwap() {
  if (spare_ != nullptr) ::munmap(spare_, 1);
}

void PageSwap::keep_spare() {
  if (spare_ != nullptr) return;
  void* const at =
      ::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) spare_ = at;
}

long PageSwap::share_stretch(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                             int protection) const {
  if (hold_ != nullptr) {
    if (const long error = hold_->hold(begin, bytes); error < 0) return error;
  }
  long error = transfer(SYS_pwrite64, file_, begin, bytes, offset);
  if (error == 0) error = map_over(begin, bytes, file_, offset, protection);
  if (hold_ == nullptr) return error;
  if (error < 0) {
    hold_->undo(begin, bytes);
  } else {
    hold_->wake(begin, bytes);
  }
  return error;
}

long PageSwap::take_back_stretch(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                                 int protection, std::uint64_t staging) const {
  if (hold_ != nullptr) {
    if (const long error = hold_->hold(begin, bytes); error < 0) return error;
  }
  long error = transfer(SYS_pread64, file_, staging, bytes, offset);
  if (error == 0 && protection != (PROT_READ | PROT_WRITE)) {
    error = raw_syscall(SYS_mprotect, as_long(staging), as_long(bytes), protection);
  }
  if (error == 0) {
    error = move_over(begin, bytes, staging);
  }
  if (hold_ == nullptr) return error;
  if (error < 0) {
    hold_->undo(begin, bytes);
  } else {
    hold_->wake(begin, bytes);
  }
  return error;
}

std::uint64_t PageSwap::share(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                              int protection) {
  keep_spare();
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t n = std::min(kStretch - (begin + done) % kStretch, bytes - done);
    if (hold_ != nullptr && !hold_->holds_untouched() &&
        ::madvise(pointer(begin + done), n, MADV_POPULATE_READ) != 0) {
      return done;
    }
    long error = 0;
    {
      const SignalsBlocked blocked;
      error = share_stretch(begin + done, n, offset + done, protection);
    }
    if (error < 0) return done;
    // Later, each page would cost the program a fault; failing costs just that.
    ::madvise(pointer(begin + done), n, MADV_POPULATE_READ);
    done += n;
  }
  return done;
}

std::uint64_t PageSwap::take_back(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                                  int protection) {
  // One mapping to move from, piece by piece: moved pieces form one mapping again.
  const auto reserve = [&] {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* from = reserve();
  if (from == MAP_FAILED && spare_ != nullptr) {
    ::munmap(spare_, 1);
    spare_ = nullptr;
    from = reserve();
  }
  if (from == MAP_FAILED) return 0;
  const auto staging = reinterpret_cast<std::uintptr_t>(from);
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t n = std::min(kStretch - (begin + done) % kStretch, bytes - done);
    const SignalsBlocked blocked;
    if (take_back_stretch(begin + done, n, offset + done, protection, staging + done) < 0) break;
    done += n;
  }
  if (done < bytes) ::munmap(pointer(staging + done), bytes - done);
  keep_spare();
  return done;
}

}  // namespace paceline::verbs
