// Maps the parts of a region that are shared memory of the program: one reservation of addresses as
// long as the region, with the shared extents in their places and nothing in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/attach/protocol.h"

namespace paceline::service {

class RegionView {
 public:
  RegionView() = default;
  RegionView(const RegionView&) = delete;
  RegionView& operator=(const RegionView&) = delete;
  ~RegionView();

  // 0, or an errno. The extents are as the program sent them. EINVAL unless they cover exactly
  // `length` bytes at `address`, and shared extents lie in `memory` (a descriptor, or -1),
  // congruent to their addresses modulo the page size, as bytes of the same page are. ENODATA if
  // the memory lacks pages in a part of that: none are made here.
  int open(std::uint64_t address, std::uint64_t length, std::span<const attach::Extent> extents,
           int memory);

  // The bytes at `offset` of the region if all of them are shared, else nullptr.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) const;
  bool wholly_shared() const { return ranges_.size() == 1 && ranges_[0].bytes == length_; }
  // For an address of this process.
  bool holds(std::uintptr_t address) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(mapped_);
    return address >= begin && address - begin < mapped_bytes_;
  }
  std::uint64_t length() const { return length_; }
  std::uint64_t shared_bytes() const { return shared_bytes_; }
  std::uint64_t by_copy_bytes() const { return length_ - shared_bytes_; }

 private:
  struct Range {  // of shared bytes; neighbours are merged
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  int check(std::uint64_t address, std::uint64_t length, std::span<const attach::Extent> extents,
            int memory) const;
  int map(std::uint64_t address, std::span<const attach::Extent> extents, int memory);
  static int populate(std::byte* place, std::size_t bytes, int memory, std::uint64_t offset);

  std::uint64_t length_ = 0;
  std::uint64_t shared_bytes_ = 0;
  std::vector<Range> ranges_;
  std::byte* mapped_ = nullptr;  // of the page of the region's first byte
  std::size_t mapped_bytes_ = 0;
  std::byte* first_ = nullptr;  // the region's first byte
};

}  // namespace paceline::service
