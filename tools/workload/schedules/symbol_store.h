// The buffers of all ranks, with symbols for bytes: each place says which block of data it holds
// and from which ranks. For sums, that is the set of ranks whose contributions are in it, and a
// second contribution of a rank is an error. For moves, it is the one rank that the data comes
// from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

inline bool is_sum(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter ||
         op == CollectiveOp::reduce;
}

// The number of places in a buffer of a rank.
std::uint32_t buffer_places(const Schedule& schedule, ScheduleBuffer buffer);

class SymbolStore {
 public:
  // The content of a transfer: for each piece, what its place held.
  struct Message {
    std::vector<std::uint64_t> words;
  };

  // The state before the operation. Numbers in `schedule` must be in range.
  explicit SymbolStore(const Schedule& schedule);

  // 64-bit words that the data of one place takes.
  static std::uint64_t words_per_place(const Schedule& schedule);

  // Reads the pieces of a transfer, or writes what was read. Returns what is wrong, or "".
  std::string read(const Transfer& transfer, Message& message) const;
  std::string write(const Transfer& transfer, const Message& message);

  // What is wrong with the result, or "".
  std::string result_error() const;

 private:
  static constexpr std::uint32_t kNothing = 0xFFFF'FFFF;

  std::size_t place(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t number) const;
  void put(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t number, std::uint32_t block,
           std::uint32_t origin);
  void fill_rank(std::uint32_t rank);
  std::string add(const Transfer& transfer, const Piece& piece, const std::uint64_t* words);
  std::string sum_error(std::uint32_t rank, std::uint32_t block) const;
  std::string move_error(std::uint32_t rank, std::uint32_t number, std::uint32_t block,
                         std::uint32_t origin) const;
  std::string rank_error(std::uint32_t rank) const;

  const Schedule& schedule_;
  std::size_t words_;
  std::vector<std::uint32_t> blocks_;  // of each place
  std::vector<std::uint64_t> data_;    // words_ of each place: a bit per rank, or a rank
};

}  // namespace paceline::workload
