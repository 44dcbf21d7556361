// Threads that write to the same pages at the same time, each to words of its own beside the
// others', all of them to one atomic word of each page, and one that lets the kernel write there
// (read() from a pipe). Afterwards every addition must have left its trace.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::verbs::test {

inline constexpr std::size_t kPage = 4096;

struct Losses {
  std::uint64_t additions = 0;  // made
  std::uint64_t plain = 0;      // of them lost
  std::uint64_t atomic = 0;
  std::uint64_t wrong_reads = 0;   // pages with other data than read() said it had put there
  std::uint64_t failed_reads = 0;  // EFAULT
  bool none() const { return plain + atomic + wrong_reads + failed_reads == 0; }
};

class Hammer {
 public:
  // `memory` consists of whole pages, all zero.
  Hammer(std::byte* memory, std::size_t pages, unsigned writers = 3);
  Hammer(const Hammer&) = delete;
  Hammer& operator=(const Hammer&) = delete;
  ~Hammer();
  // Returns when every thread has gone over all pages since the call.
  void wait_for_a_pass() const;
  Losses stop();

 private:
  struct alignas(64) Writer {
    std::atomic<std::uint64_t> passes{0};
  };
  void add(unsigned writer);
  void read();

  std::byte* const memory_;
  const std::size_t pages_;
  std::vector<Writer> writers_;
  attach::Descriptor reading_;
  attach::Descriptor writing_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> failed_reads_{0};
  std::atomic<std::uint64_t> wrong_reads_{0};
  std::vector<std::thread> threads_;
};

}  // namespace paceline::verbs::test
