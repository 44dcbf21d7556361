#include "dataplane/driver/virtual/large_pages.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace paceline {

namespace {
// Chunks double, so that few are needed and little is left over, up to this.
constexpr std::size_t kLargestChunk = std::size_t{1} << 25;
}  // namespace

LargePages::~LargePages() {
  for (void* chunk : chunks_) std::free(chunk);
}

void* LargePages::do_allocate(std::size_t bytes, std::size_t alignment) {
  void* place = next_;
  if (next_ == nullptr || std::align(alignment, bytes, place, left_) == nullptr) {
    const std::size_t wanted = std::clamp(reserved_, kPageBytes, kLargestChunk);
    const std::size_t needed = bytes + alignment;
    const std::size_t chunk_bytes =
        (std::max(wanted, needed) + kPageBytes - 1) / kPageBytes * kPageBytes;
    void* const chunk = std::aligned_alloc(kPageBytes, chunk_bytes);
    if (chunk == nullptr) throw std::bad_alloc();
    chunks_.push_back(chunk);
    reserved_ += chunk_bytes;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // Advice: where it is not taken, everything works, slower.
    static_cast<void>(madvise(chunk, chunk_bytes, MADV_HUGEPAGE));
#endif
    next_ = static_cast<std::byte*>(chunk);
    left_ = chunk_bytes;
    place = chunk;
    std::align(alignment, bytes, place, left_);
  }
  next_ = static_cast<std::byte*>(place) + bytes;
  left_ -= bytes;
  return place;
}

}  // namespace paceline
