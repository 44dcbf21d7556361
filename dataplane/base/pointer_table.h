// Pointers by dense index. The first two lie in the table itself: most engines have one queue pair
// and one context, and find them without touching another cache line. Does not own what it points
// to. Growing allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace paceline {

template <class T>
class PointerTable {
 public:
  PointerTable() = default;
  PointerTable(const PointerTable&) = delete;
  PointerTable& operator=(const PointerTable&) = delete;

  T*& operator[](std::uint32_t index) { return data_[index]; }
  T* operator[](std::uint32_t index) const { return data_[index]; }
  std::uint32_t size() const { return size_; }
  T* const* begin() const { return data_; }
  T* const* end() const { return data_ + size_; }

  void push_back(T* pointer) {
    if (size_ == capacity_) {
      auto larger = std::make_unique<T*[]>(std::size_t{2} * capacity_);
      std::copy(data_, data_ + size_, larger.get());
      heap_ = std::move(larger);
      data_ = heap_.get();
      capacity_ *= 2;
    }
    data_[size_++] = pointer;
  }

 private:
  static constexpr std::uint32_t kInside = 2;

  T** data_ = inside_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInside;
  T* inside_[kInside] = {};  // no std::array: Clang warns of data() before its lifetime begins
  std::unique_ptr<T*[]> heap_;
};

}  // namespace paceline
