// Places arrived data for a program under `paceline exec --reorder`: in any order that the
// specification allows, and late (dataplane/attach/injection/order_window.h). Vol. 1, 9.5 promises
// nothing about the data of a message before its completion.
//
// Only for the copy thread.
#pragma once

#include <cstdint>

#include "dataplane/attach/injection/order_window.h"
#include "dataplane/service/memory/program_memory.h"

namespace paceline::service {

// Where the window is and what is drawn; `seed` 0: the region is not checked.
struct OrderTarget {
  std::uint64_t window = 0;
  std::uint32_t seed = 0;
  std::uint32_t qp_number = 0;
  bool from_peer = false;
};

class OrderShuffler {
 public:
  // Returns when all of the piece is in the program's memory.
  CopyResult place(const ProgramMemory& program, const ProgramPiece& piece,
                   const OrderTarget& target);

 private:
  CopyResult tell(const ProgramMemory& program, const OrderTarget& target);
  CopyResult place_shuffled(const ProgramMemory& program, const ProgramPiece& piece,
                            std::uint64_t seed);

  attach::OrderWindow window_;
};

}  // namespace paceline::service
