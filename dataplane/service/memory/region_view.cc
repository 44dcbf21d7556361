#include "dataplane/service/memory/region_view.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "dataplane/service/memory/view_guard.h"

#ifndef MADV_POPULATE_WRITE  // Linux 5.14; older headers do not name it
#define MADV_POPULATE_WRITE 23
#endif

namespace paceline::service {

namespace {

using attach::Extent;
using attach::ExtentKind;

// Bytes that are populated or unmapped at a time.
constexpr std::size_t kStep = std::size_t{2} << 20U;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

// In steps: while the kernel works on one, no other thread of this process can map anything.
RegionView::~RegionView() {
  for (std::size_t done = 0; done < mapped_bytes_; done += kStep) {
    ::munmap(mapped_ + done, std::min(kStep, mapped_bytes_ - done));
  }
}

// Makes page-table entries for the pages that the file has, so that the worker takes no page
// faults. 0, or an errno: ENODATA when pages are missing.
int RegionView::populate(std::byte* place, std::size_t bytes, int memory, std::uint64_t offset) {
  const bool guarded = view_guard::guard(place, bytes);
  for (std::size_t done = 0; done < bytes; done += kStep) {
    const std::size_t step = std::min(kStep, bytes - done);
    if (!guarded) {
      const auto begin = static_cast<off_t>(offset + done);
      const off_t hole = ::lseek(memory, begin, SEEK_HOLE);
      if (hole >= begin && hole < begin + static_cast<off_t>(step)) return ENODATA;
    }
    int result = 0;
    do {
      result = ::madvise(place + done, step, MADV_POPULATE_WRITE);
    } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result == 0) continue;
    // Kernels without it (Linux 5.14): as pages are touched.
    if (errno == EINVAL) return 0;
    return guarded && errno == EFAULT ? ENODATA : ENOMEM;
  }
  return 0;
}

int RegionView::check(std::uint64_t address, std::uint64_t length, std::span<const Extent> extents,
                      int memory) const {
  // Neither the end of the region nor its pages wrap round, and signed file offsets hold it.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;
  if (length == 0 || length > kMost || address > kMost) return EINVAL;
  std::uint64_t size = 0;
  struct stat status {};
  if (memory >= 0 && ::fstat(memory, &status) == 0)
    size = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    if (extent.length == 0 || extent.length > length - at) return EINVAL;
    if (extent.kind == ExtentKind::shared) {
      if (extent.offset > size || extent.length > size - extent.offset) return EINVAL;
      if ((extent.offset ^ (address + at)) % page_bytes() != 0) return EINVAL;
      // Two pages of the file can not be one page here.
      const bool begins_page = (address + at) % page_bytes() == 0;
      if (i != 0 && extents[i - 1].kind == ExtentKind::shared && !begins_page) return EINVAL;
    } else if (extent.kind != ExtentKind::by_copy) {
      return EINVAL;
    }
    at += extent.length;
  }
  return at == length ? 0 : EINVAL;
}

int RegionView::map(std::uint64_t address, std::span<const Extent> extents, int memory) {
  const std::uint64_t page = page_bytes();
  const std::uint64_t lead = address % page;
  mapped_bytes_ = (lead + length_ + page - 1) / page * page;
  void* const at =
      ::mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return ENOMEM;
  mapped_ = static_cast<std::byte*>(at);
  first_ = mapped_ + lead;
  std::uint64_t offset = 0;
  for (const Extent& extent : extents) {
    if (extent.kind == ExtentKind::shared) {
      const std::uint64_t before = (address + offset) % page;
      std::byte* const place = first_ + offset - before;
      const std::size_t bytes = (before + extent.length + page - 1) / page * page;
      if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory,
                 static_cast<off_t>(extent.offset - before)) == MAP_FAILED) {
        return errno;
      }
      const int error = populate(place, bytes, memory, extent.offset - before);
      if (error != 0) return error;
      if (!ranges_.empty() && ranges_.back().begin + ranges_.back().bytes == offset) {
        ranges_.back().bytes += extent.length;
      } else {
        ranges_.push_back({offset, extent.length});
      }
      shared_bytes_ += extent.length;
    }
    offset += extent.length;
  }
  return 0;
}

int RegionView::open(std::uint64_t address, std::uint64_t length, std::span<const Extent> extents,
                     int memory) {
  if (const int error = check(address, length, extents, memory); error != 0) return error;
  length_ = length;
  const bool any_shared = std::any_of(extents.begin(), extents.end(), [](const Extent& extent) {
    return extent.kind == ExtentKind::shared;
  });
  return any_shared ? map(address, extents, memory) : 0;
}

std::byte* RegionView::at(std::uint64_t offset, std::uint64_t bytes) const {
  if (ranges_.empty()) return nullptr;
  auto range = std::upper_bound(
      ranges_.begin(), ranges_.end(), offset,
      [](std::uint64_t wanted, const Range& candidate) { return wanted < candidate.begin; });
  if (range == ranges_.begin()) return nullptr;
  --range;
  const std::uint64_t into = offset - range->begin;
  return into <= range->bytes && bytes <= range->bytes - into ? first_ + offset : nullptr;
}

}  // namespace paceline::service
