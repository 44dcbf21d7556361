// How the service tells a program under `paceline exec --reorder` which placement it currently
// holds back. For a region that is reached by copy, `offset` of the extent says where in the
// program an OrderWindow is, and `reserved` holds a seed, which is not 0. The session's copy thread
// writes the window like everything else that it places in the program's memory, and at no other
// address.
//
// Each write of data that may end a message, and some of the others, is held for a random time. The
// bytes at its end, by which programs detect a message, are or are not in memory during that time:
// a coin decides. A program that relies on completions does the same in both cases.
#pragma once

#include <cstdint>
#include <type_traits>

namespace paceline::attach {

struct OrderWindow {
  // One more when a placement begins to be held, and when it ends: odd while it is held.
  std::uint64_t sequence = 0;
  std::uint64_t address = 0;  // of the first byte
  std::uint32_t bytes = 0;
  std::uint32_t qp_number = 0;
  std::uint32_t end_first = 0;  // 1: its last bytes are in memory already
  std::uint32_t from_peer = 0;  // 1: SEND or WRITE of the peer; 0: response to an own request
  // Placements held so far, including this one, and how many of them had their end placed first.
  std::uint64_t held = 0;
  std::uint64_t held_end_first = 0;
};
static_assert(sizeof(OrderWindow) == 48 && std::is_trivially_copyable_v<OrderWindow>);

}  // namespace paceline::attach
