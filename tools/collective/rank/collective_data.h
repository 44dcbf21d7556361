// The buffers of a rank, in the caller's memory, their contents before an operation, and the
// contents that they must have after it. Contributions are whole numbers of 15 bits: float32 adds
// those of 256 ranks exactly, in any order.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/collective/rank/buffer_layout.h"
#include "tools/collective/rank/part_cut.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

inline constexpr std::uint32_t kMostRanks = 256;

// The contribution of rank `rank` to element `element` of the buffer.
float contribution(std::uint32_t rank, std::uint64_t element, std::uint32_t iteration);

struct WrongElement {
  std::uint64_t element = 0;  // of the result
  float expected = 0;
  float got = 0;
};

struct DataCheck {
  std::uint64_t wrong = 0;
  WrongElement first;  // where there is one
};

class CollectiveData {
 public:
  // memory: has room for the elements of the layout.
  CollectiveData(const workload::Schedule& schedule, const PartCut& cut, const BufferLayout& layout,
                 std::uint32_t rank, float* memory)
      : schedule_(schedule), cut_(cut), layout_(layout), rank_(rank), memory_(memory) {}

  // Fills the buffers before an operation. Places that the operation must write hold a number that
  // no rank contributes.
  void fill(std::uint32_t iteration);
  // After it.
  DataCheck check(std::uint32_t iteration) const;

  // Part `part` of the elements that a transfer moves, one piece after another.
  std::uint64_t elements_of(const workload::Transfer& transfer, std::uint64_t part) const;
  void read(const workload::Transfer& transfer, std::uint64_t part, float* out) const;
  void write(const workload::Transfer& transfer, std::uint64_t part, const float* in);

 private:
  // The elements of a place of `result`: those of block `block` of rank `owner`, or their sum.
  struct Content {
    std::uint32_t block = 0;
    std::optional<std::uint32_t> owner;
  };
  bool is_sum() const;
  bool own_before(std::uint32_t place) const;
  bool due_after(std::uint32_t place) const;
  Content content_after(std::uint32_t place) const;
  void fill_place(workload::ScheduleBuffer which, std::uint32_t place, std::uint32_t iteration);
  void check_place(std::uint32_t place, std::uint32_t iteration, DataCheck& check) const;
  float* place_of(workload::ScheduleBuffer which, std::uint32_t place) const {
    return memory_ + layout_.buffer(which).begin + place * cut_.place_room();
  }

  const workload::Schedule& schedule_;
  const PartCut& cut_;
  const BufferLayout& layout_;
  std::uint32_t rank_;
  float* memory_;
};

}  // namespace paceline::rank
