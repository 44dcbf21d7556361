// The transfers among the ranks of a group in one collective operation, the bytes that each moves,
// and the transfers that each waits for. A schedule knows no time, NICs or congestion control. It
// runs in virtual time (job_plans/call_planner.h) and over verbs; check_schedule proves on symbols
// that its result is right.
//
// Buffers. A rank has three, each cut into blocks. Block b of `bytes` in `blocks` parts has the
// bytes floor(b * bytes / blocks) up to floor((b + 1) * bytes / blocks).
//   result    all_reduce, reduce, reduce_scatter: holds the rank's own contribution before the
//             operation. all_gather: holds the rank's own part. broadcast: the root's holds the
//             data. all_to_all: holds what the rank sends to itself.
//   input     all_to_all: block b is for rank b. Others do not use it.
//   scratch   as many places as Schedule::scratch says; holds nothing before the operation. A place
//             has room for the largest block.
//
// Operations, with `bytes` as nccl-tests counts them: the whole buffer of a rank.
//   all_reduce      every rank ends with the sum of all contributions in `result`
//   reduce_scatter  `blocks` is a multiple of the number of ranks n; rank r ends with the sum in
//                   blocks r * blocks / n up to (r + 1) * blocks / n
//   all_gather      the same blocks are its part before; every rank ends with all of them
//   all_to_all      one block a rank; block s of the result of rank r is block r of the input of s
//   broadcast       every rank ends with the data of the root
//   reduce          the root ends with the sum of all contributions
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
};
inline constexpr std::size_t kCollectiveOps = 6;
std::string_view to_string(CollectiveOp op);
std::optional<CollectiveOp> find_collective_op(std::string_view name);

enum class ScheduleBuffer : std::uint8_t { result, input, scratch };

// A block that a transfer moves: from a place of the sender's to a place of the receiver's. In
// `result` and `input` the place is the number of a block, in `scratch` of a place there.
struct Piece {
  std::uint32_t block = 0;  // whose size it has
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  ScheduleBuffer source_buffer = ScheduleBuffer::result;
  ScheduleBuffer target_buffer = ScheduleBuffer::result;
};

// One message from a rank to another, or with from == to a copy within a rank, which has no cost.
// It reads its pieces when it begins, and writes them, all at once, when it has arrived.
struct Transfer {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t first_piece = 0;  // in Schedule::pieces
  std::uint32_t pieces = 0;
  std::uint32_t first_wait = 0;  // in Schedule::waits
  std::uint32_t waits = 0;
  bool sum = false;  // added to what is at the target, else written over it
};

struct Schedule {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint32_t ranks = 0;
  std::uint32_t blocks = 0;   // of the whole buffer
  std::uint32_t scratch = 0;  // places in each rank's scratch buffer
  std::uint32_t root = 0;     // broadcast, reduce
  std::vector<Transfer> transfers;
  std::vector<Piece> pieces;
  // Earlier transfers that a transfer waits for. Those that its sender receives must have arrived;
  // those that its sender sends itself must be complete, that is acknowledged.
  std::vector<std::uint32_t> waits;

  std::span<const Piece> pieces_of(const Transfer& t) const {
    return {pieces.data() + t.first_piece, t.pieces};
  }
  std::span<const std::uint32_t> waits_of(const Transfer& t) const {
    return {waits.data() + t.first_wait, t.waits};
  }
};

// First byte of a block; block == blocks: the end.
std::uint64_t block_begin(std::uint64_t bytes, std::uint32_t blocks, std::uint32_t block);
inline std::uint64_t block_bytes(std::uint64_t bytes, std::uint32_t blocks, std::uint32_t block) {
  return block_begin(bytes, blocks, block + 1) - block_begin(bytes, blocks, block);
}
// Bytes that a transfer moves where the whole buffer has `bytes`.
std::uint64_t transfer_bytes(const Schedule& schedule, const Transfer& transfer,
                             std::uint64_t bytes);
// Bytes that each rank sends to other ranks.
std::vector<std::uint64_t> bytes_sent(const Schedule& schedule, std::uint64_t bytes);

// Which ranks form the group: rank = server * per_server + local. per_server divides ranks.
struct GroupShape {
  std::uint32_t ranks = 0;       // 2 or more
  std::uint32_t per_server = 1;  // GPUs, one NIC each
};

struct ScheduleOptions {
  std::uint32_t root = 0;         // broadcast, reduce
  std::uint32_t aggregation = 0;  // pat: most blocks in one far transfer, a power of two; 0: all
  std::uint32_t window = 0;       // all_to_all by "window": peers in flight; 0: all
  bool in_turn = false;  // rail_rings: a rank sends when its send before in the ring is complete
};

// The names of the algorithms for an operation, the default one first.
std::span<const std::string_view> schedule_names(CollectiveOp op);

// The schedule of an algorithm for an operation. An error says what is not possible (an unknown
// name, halving and doubling in an odd group) and what is allowed.
config::Read<Schedule> make_schedule(CollectiveOp op, std::string_view algorithm,
                                     const GroupShape& group, const ScheduleOptions& options = {});

}  // namespace paceline::workload
