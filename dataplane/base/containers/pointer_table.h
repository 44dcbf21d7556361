// Pointers by dense index. The first two lie in the table itself: most engines have one queue pair
// and one context, and find them without touching another cache line. Does not own what it points
// to. Growing allocates.
#pragma once

#include <algorithm>
#include <array>
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
  ~PointerTable() {
    if (data_ != inside_.data()) delete[] data_;
  }

  T*& operator[](std::uint32_t index) { return data_[index]; }
  T* operator[](std::uint32_t index) const { return data_[index]; }
  std::uint32_t size() const { return size_; }
  T* const* begin() const { return data_; }
  T* const* end() const { return data_ + size_; }

  void push_back(T* pointer) {
    if (size_ == capacity_) {
      T** const larger = new T*[std::size_t{2} * capacity_];
      std::copy(data_, data_ + size_, larger);
      if (data_ != inside_.data()) delete[] data_;
      data_ = larger;
      capacity_ *= 2;
    }
    data_[size_++] = pointer;
  }

 private:
  static constexpr std::uint32_t kInside = 2;

  std::array<T*, kInside> inside_{};
  T** data_ = inside_.data();
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInside;
};
static_assert(sizeof(PointerTable<int>) == 32);

}  // namespace paceline
