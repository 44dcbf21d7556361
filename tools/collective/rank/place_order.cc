#include "tools/collective/rank/place_order.h"

#include <algorithm>
#include <tuple>

namespace paceline::rank {

namespace {

using workload::Piece;
using workload::ScheduleBuffer;
using workload::Transfer;

constexpr std::uint32_t kBits = 64;

}  // namespace

PlaceOrder::PlaceOrder(const workload::Schedule& schedule, std::uint32_t rank)
    : schedule_(schedule),
      rank_(rank),
      unordered_(schedule.transfers.size()),
      is_one_(schedule.transfers.size()),
      is_after_(schedule.transfers.size()) {
  check(pairs(uses()));
}

// All uses, grouped by place.
std::vector<PlaceOrder::Use> PlaceOrder::uses() const {
  std::vector<Use> uses;
  for (std::uint32_t t = 0; t < schedule_.transfers.size(); ++t) {
    const Transfer& transfer = schedule_.transfers[t];
    if (transfer.from != rank_ && transfer.to != rank_) continue;
    for (const Piece& p : schedule_.pieces_of(transfer)) {
      if (transfer.from == rank_) uses.push_back({p.source_buffer, p.source, p.block, t, false});
      if (transfer.to == rank_) uses.push_back({p.target_buffer, p.target, p.block, t, true});
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    return std::tie(a.buffer, a.place, a.transfer, a.writes) <
           std::tie(b.buffer, b.place, b.transfer, b.writes);
  });
  return uses;
}

std::vector<PlaceOrder::Pair> PlaceOrder::pairs(const std::vector<Use>& uses) {
  std::vector<Pair> pairs;
  for (auto begin = uses.begin(); begin != uses.end();) {
    const auto end = std::find_if(begin, uses.end(), [&](const Use& u) {
      return u.buffer != begin->buffer || u.place != begin->place;
    });
    for (auto a = begin; a != end; ++a) {
      for (auto b = a + 1; b != end; ++b) add_pair(*a, *b, pairs);
    }
    begin = end;
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

void PlaceOrder::add_pair(const Use& a, const Use& b, std::vector<Pair>& pairs) {
  if (a.transfer == b.transfer || (!a.writes && !b.writes)) return;
  // Sums are taken one by one, at their arrivals.
  const bool sums = schedule_.transfers[a.transfer].sum && schedule_.transfers[b.transfer].sum;
  if (a.writes && b.writes && sums) return;
  // Blocks of different sizes are cut at different places: then one part of a place overlaps
  // others, and waits order transfers within a part.
  if (a.block != b.block && a.buffer != ScheduleBuffer::scratch) {
    unordered_[a.transfer] = true;
    unordered_[b.transfer] = true;
    return;
  }
  pairs.push_back({a.transfer, b.transfer});
}

void PlaceOrder::check(const std::vector<Pair>& pairs) {
  for (auto begin = pairs.begin(); begin != pairs.end();) {
    std::vector<std::uint32_t> ones;
    std::uint32_t last = 0;
    auto end = begin;
    for (; end != pairs.end(); ++end) {
      if (ones.empty() || ones.back() != end->earlier) {
        if (ones.size() == kBits) break;
        is_one_[end->earlier] = std::uint64_t{1} << ones.size();
        ones.push_back(end->earlier);
      }
      last = std::max(last, end->later);
    }
    follow(ones.front(), last);
    for (; begin != end; ++begin) {
      if ((is_after_[begin->later] & is_one_[begin->earlier]) != 0) continue;
      unordered_[begin->earlier] = true;
      unordered_[begin->later] = true;
    }
    for (const std::uint32_t one : ones) is_one_[one] = 0;
  }
}

// Which of these each transfer begins after. Waits are for earlier transfers.
void PlaceOrder::follow(std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t t = first; t <= last; ++t) {
    const Transfer& transfer = schedule_.transfers[t];
    is_after_[t] = 0;
    for (const std::uint32_t w : schedule_.waits_of(transfer)) {
      if (w < first) continue;
      is_after_[t] |= is_after_[w];
      // A received transfer has been taken only if the rank itself has waited for it.
      if (schedule_.transfers[w].from == rank_ || transfer.from == rank_) {
        is_after_[t] |= is_one_[w];
      }
    }
  }
}

}  // namespace paceline::rank
