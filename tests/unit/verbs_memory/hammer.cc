#include "tests/unit/verbs_memory/hammer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace paceline::verbs::test {

namespace {

// Offsets in a page: a word for each writer, the word of all, and where read() puts its bytes.
constexpr std::size_t kCommon = 1024;
constexpr std::size_t kRead = 2048;
constexpr std::size_t kReadBytes = 64;

volatile std::uint64_t& word(std::byte* page, std::size_t offset) {
  return *reinterpret_cast<std::uint64_t*>(page + offset);
}
std::atomic_ref<std::uint64_t> common(std::byte* page) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page + kCommon));
}

}  // namespace

Hammer::Hammer(std::byte* memory, std::size_t pages, unsigned writers)
    : memory_(memory), pages_(pages), writers_(writers) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  reading_.reset(ends[0]);
  writing_.reset(ends[1]);
  for (unsigned i = 0; i < writers; ++i) threads_.emplace_back([this, i] { add(i); });
  threads_.emplace_back([this] { read(); });
  wait_for_a_pass();
}

Hammer::~Hammer() { stop(); }

void Hammer::add(unsigned writer) {
  std::uint64_t passes = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    for (std::size_t page = 0; page < pages_; ++page) {
      std::byte* const at = memory_ + page * kPage;
      for (int i = 0; i < 8; ++i) {
        volatile std::uint64_t& own = word(at, writer * sizeof(std::uint64_t));
        own = own + 1;
      }
      common(at).fetch_add(1, std::memory_order_relaxed);
    }
    writers_[writer].passes.store(++passes, std::memory_order_relaxed);
  }
}

void Hammer::read() {
  std::uint64_t round = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    std::byte* const at = memory_ + (round * 7 % pages_) * kPage + kRead;
    std::array<std::byte, kReadBytes> sent;
    sent.fill(static_cast<std::byte>(++round));
    if (::write(writing_.get(), sent.data(), sent.size()) != kReadBytes) return;
    if (::read(reading_.get(), at, kReadBytes) != kReadBytes) {
      failed_reads_.fetch_add(1);
      std::array<std::byte, kReadBytes> drained;
      if (::read(reading_.get(), drained.data(), drained.size()) < 0) return;
    } else if (std::memcmp(at, sent.data(), kReadBytes) != 0) {
      wrong_reads_.fetch_add(1);
    }
    reads_.store(round, std::memory_order_relaxed);
  }
}

void Hammer::wait_for_a_pass() const {
  std::vector<std::uint64_t> before;
  for (const Writer& writer : writers_) before.push_back(writer.passes.load());
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    while (writers_[i].passes.load() < before[i] + 2) std::this_thread::yield();
  }
  const std::uint64_t reads = reads_.load();
  while (reads_.load() == reads) std::this_thread::yield();
}

Losses Hammer::stop() {
  Losses out;
  if (threads_.empty()) return out;
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  std::uint64_t together = 0;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const std::uint64_t passes = writers_[i].passes.load();
    together += passes;
    for (std::size_t page = 0; page < pages_; ++page) {
      out.plain += passes * 8 - word(memory_ + page * kPage, i * sizeof(std::uint64_t));
    }
    out.additions += passes * 9 * pages_;
  }
  for (std::size_t page = 0; page < pages_; ++page) {
    out.atomic += together - common(memory_ + page * kPage).load();
  }
  out.wrong_reads = wrong_reads_.load();
  out.failed_reads = failed_reads_.load();
  return out;
}

}  // namespace paceline::verbs::test
