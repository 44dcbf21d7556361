// Whether a context may still be used: no after the service went away, and never in a child that a
// fork made, which shares the parent's rings and socket and must touch neither. Both are asked with
// one load, since the marks lie in a page that the kernel clears in a child (MADV_WIPEONFORK, Linux
// 4.14).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace paceline::verbs {

class Presence {
 public:
  Presence() = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  ~Presence() {
    if (marks_ != nullptr) ::munmap(marks_, kBytes);
  }

  // 0 or an errno.
  int make() noexcept;
  bool usable() const noexcept { return marks_->alive.load(std::memory_order_acquire) != 0; }
  bool forked() const noexcept { return marks_->parent.load(std::memory_order_relaxed) == 0; }
  // True for the first caller.
  bool lost() noexcept { return marks_->alive.exchange(0, std::memory_order_acq_rel) != 0; }

 private:
  static constexpr std::size_t kBytes = 4096;
  struct Marks {
    std::atomic<std::uint32_t> alive;
    std::atomic<std::uint32_t> parent;
  };
  Marks* marks_ = nullptr;
};

}  // namespace paceline::verbs
