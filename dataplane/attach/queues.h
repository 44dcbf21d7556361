// The memory that a program and the service share for a queue pair, a shared receive queue or a
// completion queue. The service makes, seals and hands out one memory object for each. Both sides
// run on the same machine, so numbers are in its byte order.
//
// Neither side trusts what the other wrote. The service copies a slot, checks the copy, and then
// uses the copy. A program that corrupts an index loses its own requests and harms no other
// program.
//
// Indices only count up (modulo 2^32); a slot is index % slots, and slots is a power of two.
// Each index has one writer and a cache line of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace paceline::attach {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kLine = 64;

struct alignas(kLine) SharedIndex {
  std::atomic<std::uint32_t> value{0};
};
static_assert(sizeof(SharedIndex) == kLine);

// A piece of the program's memory, as in ibv_sge.
struct SharedSegment {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t key = 0;
};
static_assert(sizeof(SharedSegment) == 16);

// --- the send queue: the program writes slots and `tail` ---

enum class SendOpcode : std::uint8_t {
  send,
  send_imm,
  send_invalidate,
  write,
  write_imm,
  read,
  fetch_add,
  compare_swap,
  local_invalidate,  // of a region: done by the service when its turn comes, no packet
  // Likewise. remote_key: the new key of the window, whose upper 24 bits name it; address_handle:
  // the key of the region; remote_address, compare_add: the position in it and the number of bytes;
  // swap: the rights, of region_access.
  bind_window,
};

namespace send_flag {
inline constexpr std::uint8_t signaled = 1U << 0;
inline constexpr std::uint8_t solicited = 1U << 1;
inline constexpr std::uint8_t fence = 1U << 2;
inline constexpr std::uint8_t inlined = 1U << 3;  // the bytes follow the slot's header
}  // namespace send_flag

// Followed by `segments` SharedSegments, or by `inline_bytes` bytes.
struct SendSlot {
  std::uint64_t wr_id = 0;  // comes back in the completion, whatever it is
  SendOpcode opcode = SendOpcode::send;
  std::uint8_t flags = 0;  // of send_flag
  std::uint8_t segments = 0;
  std::uint8_t reserved = 0;
  std::uint32_t inline_bytes = 0;
  std::uint32_t immediate = 0;       // as the program has it (network order); or the key to revoke
  std::uint32_t remote_key = 0;      // write, read, atomics
  std::uint64_t remote_address = 0;  // likewise
  std::uint64_t compare_add = 0;     // compare_swap: what to compare; fetch_add: what to add
  std::uint64_t swap = 0;            // compare_swap
  std::uint32_t address_handle = 0;  // UD: number of an address handle
  std::uint32_t target_qp = 0;       // UD
  std::uint32_t target_qkey = 0;     // UD
  std::uint32_t target_srq = 0;      // XRC: number of a shared receive queue
};
static_assert(sizeof(SendSlot) == 64 && std::is_trivially_copyable_v<SendSlot>);

// --- receive queues: the program writes slots and `tail` ---

// Followed by `segments` SharedSegments.
struct ReceiveSlot {
  std::uint64_t wr_id = 0;
  std::uint32_t segments = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ReceiveSlot) == 16);

// The memory of one work queue: this header, with the slots right behind it. For a queue pair, the
// send queue comes first; the receive queue, if it has one of its own, is at
// CreateQpReply::receive_offset.
struct WorkQueueHeader {
  SharedIndex tail;  // the program's: one past the newest request
  // Written by the service: one past the newest slot that it has copied out. Shared receive queue:
  // one past the newest request that a message has taken; requests between it and the tail are
  // outstanding. It is written before the tail of the completion queue that reports the message.
  SharedIndex taken;
};
static_assert(sizeof(WorkQueueHeader) == 2 * kLine);

struct WorkQueueShape {
  std::uint32_t slots = 0;   // a power of two
  std::uint32_t stride = 0;  // bytes from slot to slot, a multiple of 16

  constexpr std::size_t bytes() const {
    return sizeof(WorkQueueHeader) + std::size_t{slots} * stride;
  }
  constexpr std::size_t offset(std::uint32_t index) const {
    return sizeof(WorkQueueHeader) + std::size_t{index & (slots - 1)} * stride;
  }
};

constexpr std::uint32_t power_of_two_from(std::uint32_t n) {
  std::uint32_t p = 1;
  while (p < n) p <<= 1U;
  return p;
}
constexpr std::uint32_t line_multiple(std::uint32_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Requires `requests` >= 1. `segments` >= 1 and `inline_bytes` are the most of a request.
constexpr WorkQueueShape send_queue_shape(std::uint32_t requests, std::uint32_t segments,
                                          std::uint32_t inline_bytes) {
  const std::uint32_t list = segments * static_cast<std::uint32_t>(sizeof(SharedSegment));
  const std::uint32_t body = list > inline_bytes ? list : inline_bytes;
  return {power_of_two_from(requests),
          line_multiple(static_cast<std::uint32_t>(sizeof(SendSlot)) + body)};
}
constexpr WorkQueueShape receive_queue_shape(std::uint32_t requests, std::uint32_t segments) {
  return {power_of_two_from(requests),
          static_cast<std::uint32_t>(sizeof(ReceiveSlot) + segments * sizeof(SharedSegment))};
}

// --- completion queues: the service writes entries and `tail` ---

enum class EntryOpcode : std::uint8_t {
  send,
  write,
  read,
  fetch_add,
  compare_swap,
  local_invalidate,
  receive,
  receive_write_imm,
  bind_window,
};

namespace entry_flag {
inline constexpr std::uint8_t immediate = 1U << 0;
inline constexpr std::uint8_t invalidated = 1U << 1;  // `immediate` is the key that was revoked
inline constexpr std::uint8_t grh = 1U << 2;
inline constexpr std::uint8_t solicited = 1U << 3;
// The receive came from a shared XRC queue: the queue pair need not be the program's.
inline constexpr std::uint8_t from_domain = 1U << 4;
// The program's, in its own copy of the ring: the queue pair was destroyed, skip it.
inline constexpr std::uint8_t dropped = 1U << 7;
}  // namespace entry_flag

// Numbers of enum ibv_wc_status, which programs print: fixed by their ABI.
enum class EntryStatus : std::uint8_t {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flushed = 5,
  window_bind_error = 6,
  bad_response = 7,
  local_access_error = 8,
  remote_invalid_request = 9,
  remote_access_error = 10,
  remote_operational_error = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  fatal = 18,
  general_error = 21,
};

struct CompletionEntry {
  std::uint64_t wr_id = 0;
  std::uint64_t timestamp_ns = 0;  // of the service's clock
  std::uint32_t qp_number = 0;
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;  // as in SendSlot
  std::uint32_t source_qp = 0;  // UD
  // For a queue pair's own queue (not a shared receive queue): all requests before this index have
  // left the queue, including this one. The next signaled completion counts unsignaled ones.
  std::uint32_t retired = 0;
  EntryStatus status = EntryStatus::success;
  EntryOpcode opcode = EntryOpcode::send;
  std::uint8_t flags = 0;          // of entry_flag
  std::uint8_t service_level = 0;  // with `grh`: 0x9 IPv6, 0xA IPv4
  std::uint64_t reserved[3] = {};
};
static_assert(sizeof(CompletionEntry) == 64 && std::is_trivially_copyable_v<CompletionEntry>);

// How to notify of the next entry: bits of CompletionQueueHeader::wanted. The program sets them,
// then reads the tail once more. After moving the tail, the service takes the bits out (exchange)
// and notifies. Both put a sequentially consistent fence between their write and their read, so
// that at least one of them sees the other's write.
namespace completion_wanted {
inline constexpr std::uint32_t event = 1U << 0;      // any entry: write to the channel
inline constexpr std::uint32_t solicited = 1U << 1;  // a solicited or failed one
inline constexpr std::uint32_t sleeper = 1U << 2;    // any entry: futex wake on `tail`
}  // namespace completion_wanted

// Memory of a completion queue: this header, and the entries right behind it.
struct CompletionQueueHeader {
  SharedIndex tail;    // the service's
  SharedIndex head;    // the program's
  SharedIndex wanted;  // of completion_wanted
};
static_assert(sizeof(CompletionQueueHeader) == 3 * kLine);

struct CompletionQueueShape {
  std::uint32_t slots = 0;  // a power of two
  constexpr std::size_t bytes() const {
    return sizeof(CompletionQueueHeader) + std::size_t{slots} * sizeof(CompletionEntry);
  }
};

// An event in a completion channel: the cookie given with create_cq.
struct ChannelEvent {
  std::uint64_t cookie = 0;
};
// An event in the pipe of asynchronous events.
struct AsyncNotice {
  std::uint32_t event = 0;   // numbers of enum ibv_event_type
  std::uint32_t handle = 0;  // queue pair, completion queue or shared receive queue; port number
};
// Both are written as a whole or not at all (pipes, at most PIPE_BUF bytes). End of file means that
// the service is gone.

}  // namespace paceline::attach
