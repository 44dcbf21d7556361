// Puts a schedule together transfer by transfer, in an order in which each comes after those that
// it depends on. A transfer waits for every earlier one that wrote what it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

class ScheduleBuilder {
 public:
  ScheduleBuilder(CollectiveOp op, std::uint32_t ranks, std::uint32_t blocks,
                  std::uint32_t scratch = 0, std::uint32_t root = 0);

  const Schedule& schedule() const { return schedule_; }
  std::uint32_t ranks() const { return schedule_.ranks; }

  // The next transfer; what is added from here on belongs to it. Returns its number.
  std::uint32_t begin(std::uint32_t from, std::uint32_t to, bool sum = false);

  void add(const Piece& piece);
  // A block of `result`, to the same block of the receiver's.
  void add_block(std::uint32_t block) { add({.block = block, .source = block, .target = block}); }

  // A dependency in addition to those that follow from what is read.
  void wait_for(std::uint32_t transfer) { schedule_.waits.push_back(transfer); }

  Schedule finish();

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // A transfer whose data is at a place; those of a place form a list.
  struct Write {
    std::uint32_t transfer;
    std::uint32_t next;
  };

  std::size_t place(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t number) const;
  void wait_for_writes(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t number);
  void end_transfer();

  Schedule schedule_;
  std::vector<std::uint32_t> last_write_;  // of each rank's places in result, then in scratch
  std::vector<Write> writes_;
};

}  // namespace paceline::workload
