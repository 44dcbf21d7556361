// The queue pairs whose completions come to a completion queue, by number: open addressing with
// linear probing, so that a lookup is one or two cache lines and needs nothing but the queue's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::verbs {

struct QueuePair;

class PairTable {
 public:
  // May throw std::bad_alloc; then nothing has changed. A pair that is there already stays.
  void add(std::uint32_t number, QueuePair* pair);
  void remove(std::uint32_t number) noexcept;
  QueuePair* find(std::uint32_t number) const noexcept {
    if (places_.empty()) return nullptr;
    for (std::size_t i = home(number);; i = next(i)) {
      if (places_[i].pair == nullptr || places_[i].number == number) return places_[i].pair;
    }
  }
  std::size_t size() const { return size_; }
  // Calls visit(QueuePair&) for each until one call returns true; whether one did.
  template <class Visit>
  bool any(Visit&& visit) const {
    for (const Place& p : places_) {
      if (p.pair != nullptr && visit(*p.pair)) return true;
    }
    return false;
  }

 private:
  struct Place {
    std::uint32_t number = 0;
    QueuePair* pair = nullptr;
  };
  std::size_t home(std::uint32_t number) const noexcept {
    return (number * std::size_t{0x9E37'79B9}) >> 7U & (places_.size() - 1);
  }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & (places_.size() - 1); }
  void put(std::uint32_t number, QueuePair* pair) noexcept;

  std::vector<Place> places_;  // a power of two, never more than half full
  std::size_t size_ = 0;
};

}  // namespace paceline::verbs
