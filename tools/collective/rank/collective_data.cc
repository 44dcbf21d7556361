#include "tools/collective/rank/collective_data.h"

#include <algorithm>

namespace paceline::rank {

namespace {

using workload::CollectiveOp;
using workload::Piece;
using workload::ScheduleBuffer;
using workload::Transfer;

constexpr float kNobodys = -1;

// Sums of this many elements are made at once.
constexpr std::uint64_t kStretch = 1024;

}  // namespace

float contribution(std::uint32_t rank, std::uint64_t element, std::uint32_t iteration) {
  std::uint32_t x = static_cast<std::uint32_t>(element) * 0x9E37'79B1U + rank * 0x85EB'CA6BU +
                    iteration * 0xC2B2'AE35U;
  x ^= x >> 15;
  x *= 0x2C1B'3C6DU;
  x ^= x >> 13;
  return static_cast<float>(x >> 17);
}

bool CollectiveData::is_sum() const {
  return schedule_.op == CollectiveOp::all_reduce || schedule_.op == CollectiveOp::reduce_scatter ||
         schedule_.op == CollectiveOp::reduce;
}

bool CollectiveData::own_before(std::uint32_t place) const {
  const std::uint32_t share = schedule_.blocks / schedule_.ranks;
  switch (schedule_.op) {
    case CollectiveOp::all_gather:
      return place / share == rank_;
    case CollectiveOp::broadcast:
      return rank_ == schedule_.root;
    case CollectiveOp::all_to_all:
      return place == rank_;
    case CollectiveOp::all_reduce:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::reduce:
      break;
  }
  return true;
}

bool CollectiveData::due_after(std::uint32_t place) const {
  if (schedule_.op == CollectiveOp::reduce) return rank_ == schedule_.root;
  if (schedule_.op != CollectiveOp::reduce_scatter) return true;
  return place / (schedule_.blocks / schedule_.ranks) == rank_;
}

CollectiveData::Content CollectiveData::content_after(std::uint32_t place) const {
  switch (schedule_.op) {
    case CollectiveOp::all_gather:
      return {place, place / (schedule_.blocks / schedule_.ranks)};
    case CollectiveOp::broadcast:
      return {place, schedule_.root};
    case CollectiveOp::all_to_all:
      return {rank_, place};
    case CollectiveOp::all_reduce:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::reduce:
      break;
  }
  return {place, std::nullopt};
}

void CollectiveData::fill_place(ScheduleBuffer which, std::uint32_t place,
                                std::uint32_t iteration) {
  const std::uint64_t first = cut_.block_begin(place);
  const std::uint64_t count = cut_.block_elements(place);
  float* const out = place_of(which, place);
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = contribution(rank_, first + i, iteration);
  }
}

void CollectiveData::fill(std::uint32_t iteration) {
  std::fill_n(memory_, layout_.elements(), kNobodys);
  for (std::uint32_t b = 0; b < schedule_.blocks; ++b) {
    if (own_before(b)) fill_place(ScheduleBuffer::result, b, iteration);
    if (schedule_.op == CollectiveOp::all_to_all) fill_place(ScheduleBuffer::input, b, iteration);
  }
}

DataCheck CollectiveData::check(std::uint32_t iteration) const {
  DataCheck check;
  for (std::uint32_t b = 0; b < schedule_.blocks; ++b) {
    if (due_after(b)) check_place(b, iteration, check);
  }
  return check;
}

void CollectiveData::check_place(std::uint32_t place, std::uint32_t iteration,
                                 DataCheck& check) const {
  const Content content = content_after(place);
  const std::uint32_t begin = content.owner.value_or(0);
  const std::uint32_t end = content.owner ? begin + 1 : schedule_.ranks;
  const std::uint64_t first = cut_.block_begin(content.block);
  const std::uint64_t count = cut_.block_elements(content.block);
  float expected[kStretch];
  for (std::uint64_t done = 0; done < count; done += kStretch) {
    const std::uint64_t stretch = std::min(kStretch, count - done);
    std::fill_n(expected, stretch, 0.0F);
    for (std::uint32_t r = begin; r < end; ++r) {
      for (std::uint64_t i = 0; i < stretch; ++i) {
        expected[i] += contribution(r, first + done + i, iteration);
      }
    }
    const float* const got = place_of(ScheduleBuffer::result, place) + done;
    for (std::uint64_t i = 0; i < stretch; ++i) {
      if (got[i] == expected[i]) continue;
      if (check.wrong++ == 0) {
        check.first = {cut_.block_begin(place) + done + i, expected[i], got[i]};
      }
    }
  }
}

std::uint64_t CollectiveData::elements_of(const Transfer& transfer, std::uint64_t part) const {
  std::uint64_t sum = 0;
  for (const Piece& p : schedule_.pieces_of(transfer)) {
    sum += cut_.part_of_block(p.block, part).count;
  }
  return sum;
}

void CollectiveData::read(const Transfer& transfer, std::uint64_t part, float* out) const {
  for (const Piece& p : schedule_.pieces_of(transfer)) {
    const BufferRange from = layout_.source(p, part);
    out = std::copy_n(memory_ + from.begin, from.count, out);
  }
}

void CollectiveData::write(const Transfer& transfer, std::uint64_t part, const float* in) {
  for (const Piece& p : schedule_.pieces_of(transfer)) {
    const BufferRange to = layout_.target(p, part);
    float* const out = memory_ + to.begin;
    if (transfer.sum) {
      for (std::uint64_t i = 0; i < to.count; ++i) out[i] += in[i];
    } else {
      std::copy_n(in, to.count, out);
    }
    in += to.count;
  }
}

}  // namespace paceline::rank
