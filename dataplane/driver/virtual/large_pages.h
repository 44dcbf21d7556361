// Memory for objects that are made once and then accessed at random while a world runs: hosts,
// links, queues, packets. It asks the system for large pages (2 MiB), so that one TLB entry covers
// 512 times as much; without large pages it is ordinary memory. It frees nothing before its end:
// the old copy of a container that grows stays allocated.
//
// One thread.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace paceline {

class LargePages final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{1} << 21;

  LargePages() = default;
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;
  ~LargePages() override;

  // Bytes taken from the system.
  std::size_t reserved() const { return reserved_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t reserved_ = 0;
  std::vector<void*> chunks_;
};

}  // namespace paceline
