// How a program tells the service that there is new work, without a lock or a system call, and how
// the service finds it among thousands of queues without looking at each: one bit per work queue, a
// word of bits on top. Each session has one such page, shared by the program's threads.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "dataplane/attach/queues.h"

namespace paceline::attach {

inline constexpr std::uint32_t kDoorbellWords = 64;
inline constexpr std::uint32_t kDoorbells = kDoorbellWords * 64;  // work queues of a session

struct DoorbellPage {
  alignas(kLine) std::atomic<std::uint64_t> summary{0};
  alignas(kLine) std::array<std::atomic<std::uint64_t>, kDoorbellWords> words{};
};

// The program's side, on any thread, after the new tail was stored (release). The first operation
// is sequentially consistent, so a caller that reads WorkerPage::asleep afterwards needs no further
// fence.
inline void ring(DoorbellPage& page, std::uint32_t bell) {
  const std::uint32_t word = bell / 64 % kDoorbellWords;
  const std::uint64_t before =
      page.words[word].fetch_or(std::uint64_t{1} << bell % 64, std::memory_order_seq_cst);
  // The thread that sets the word's first bit also sets the summary. The service clears the summary
  // before the word, so no bit is lost.
  if (before == 0) page.summary.fetch_or(std::uint64_t{1} << word, std::memory_order_seq_cst);
}

// The service's side: calls visit(bell) for each that rang since the last call.
template <class Visit>
bool take_rung(DoorbellPage& page, Visit&& visit) {
  if (page.summary.load(std::memory_order_relaxed) == 0) return false;
  std::uint64_t words = page.summary.exchange(0, std::memory_order_seq_cst);
  for (; words != 0; words &= words - 1) {
    const auto word = static_cast<std::uint32_t>(std::countr_zero(words));
    std::uint64_t bits = page.words[word].exchange(0, std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) {
      visit(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  return true;
}

// State that a worker publishes to all its sessions; sealed so that only the service writes it.
struct WorkerPage {
  // The worker sleeps, or is about to look once more and then sleep: a thread that brings work
  // writes to the session's wake descriptor (an eventfd).
  alignas(kLine) std::atomic<std::uint32_t> asleep{0};
  alignas(kLine) std::atomic<std::uint64_t> turns{0};  // a sign of life
};

}  // namespace paceline::attach
