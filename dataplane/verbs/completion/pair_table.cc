#include "dataplane/verbs/completion/pair_table.h"

#include <utility>

namespace paceline::verbs {

void PairTable::put(std::uint32_t number, QueuePair* pair) noexcept {
  std::size_t i = home(number);
  while (places_[i].pair != nullptr) i = next(i);
  places_[i] = {number, pair};
}

void PairTable::add(std::uint32_t number, QueuePair* pair) {
  if (find(number) != nullptr) return;
  if ((size_ + 1) * 2 > places_.size()) {
    std::vector<Place> old(places_.empty() ? 8 : places_.size() * 2);
    std::swap(old, places_);
    for (const Place& p : old) {
      if (p.pair != nullptr) put(p.number, p.pair);
    }
  }
  put(number, pair);
  ++size_;
}

void PairTable::remove(std::uint32_t number) noexcept {
  if (find(number) == nullptr) return;
  std::size_t i = home(number);
  while (places_[i].number != number || places_[i].pair == nullptr) i = next(i);
  places_[i] = {};
  --size_;
  // Entries that collided with it move up, so that no search ends too early.
  for (i = next(i); places_[i].pair != nullptr; i = next(i)) {
    const Place moved = std::exchange(places_[i], {});
    put(moved.number, moved.pair);
  }
}

}  // namespace paceline::verbs
