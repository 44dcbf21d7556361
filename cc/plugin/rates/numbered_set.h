// Small numbers, each in or out, to be visited in order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::cc::plugin {

class NumberedSet {
 public:
  void grow(std::uint32_t number) {
    if (words_.size() <= number / 64) words_.resize(number / 64 + 1);
  }
  bool has(std::uint32_t number) const { return (words_[number / 64] >> number % 64 & 1) != 0; }
  void put(std::uint32_t number, bool in) {
    if (has(number) == in) return;
    words_[number / 64] ^= std::uint64_t{1} << number % 64;
    size_ += in ? 1 : ~std::uint32_t{0};
  }
  std::uint32_t size() const { return size_; }

  // `visit` may take out the number that it is called with.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t left = words_[i]; left != 0; left &= left - 1) {
        visit(static_cast<std::uint32_t>(64 * i) +
              static_cast<std::uint32_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t size_ = 0;
};

}  // namespace paceline::cc::plugin
