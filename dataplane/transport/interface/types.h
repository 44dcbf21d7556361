// The vocabulary between an application (or the verbs library) and the transport engine: work
// requests in, completions out. Names follow the InfiniBand Architecture Specification vol. 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

// XRC (vol. 1, annex A14) has a type for each end: initiators send, and targets receive into the
// shared receive queues of their domain.
enum class QpType : std::uint8_t { rc, uc, ud, xrc_initiator, xrc_target };

constexpr bool is_reliable(QpType type) { return type != QpType::uc && type != QpType::ud; }
constexpr bool is_xrc(QpType type) {
  return type == QpType::xrc_initiator || type == QpType::xrc_target;
}

// Queue-pair states (vol. 1, 10.3.1).
enum class QpState : std::uint8_t {
  reset,
  init,  // receives may be posted
  rtr,   // ready to receive
  rts,   // ready to send
  sqd,   // send queue drained: begun requests are completed, none is begun
  sqe,   // send queue in error, receiving continues (UC and UD)
  error,
};

// Requests of peers are taken and answered.
constexpr bool can_receive(QpState state) {
  return state >= QpState::rtr && state < QpState::error;
}
// The queue pair's own requests are in progress.
constexpr bool can_send(QpState state) { return state == QpState::rts || state == QpState::sqd; }

enum class WorkOpcode : std::uint8_t {
  send,
  send_imm,
  write,
  write_imm,
  send_invalidate,  // revokes remote_key's region at the receiver (vol. 1, 9.4.1.1.3)
  read,
  fetch_add,
  compare_swap,
};

constexpr bool is_write(WorkOpcode opcode) {
  return opcode == WorkOpcode::write || opcode == WorkOpcode::write_imm;
}
constexpr bool is_atomic(WorkOpcode opcode) {
  return opcode == WorkOpcode::fetch_add || opcode == WorkOpcode::compare_swap;
}
// Answered by more than an acknowledgement.
constexpr bool expects_response(WorkOpcode opcode) {
  return opcode == WorkOpcode::read || is_atomic(opcode);
}
// Uses up a receive request of the peer.
constexpr bool takes_receive(WorkOpcode opcode) {
  return opcode != WorkOpcode::write && !expects_response(opcode);
}
constexpr bool has_immediate(WorkOpcode opcode) {
  return opcode == WorkOpcode::send_imm || opcode == WorkOpcode::write_imm;
}

// Advice from the application about what the message belongs to. REQUEST carries it to the
// receiver's allocator. 16 bytes with the queue pair's class.
struct MessageHint {
  std::uint32_t job = 0;
  std::uint32_t collective = 0;
  std::uint16_t degree = 0;  // senders towards one port at the same time: 1 for a ring
  std::uint16_t kind = 0;    // RequestMessage::hint_kind
  std::uint32_t reserved = 0;
};

// A piece of local memory.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t key = 0;
};
inline constexpr unsigned kMaxSegments = 16;

// The part of a work request that is kept for as long as it is queued.
struct QueuedRequest {
  std::uint64_t length = 0;  // 0 .. 2^31 bytes (vol. 1, 9.7.7); 8 for an atomic operation
  std::uint64_t local_address = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;  // write, read, atomics; send_invalidate: the key to revoke
  WorkOpcode opcode = WorkOpcode::send;
  bool signaled = true;  // false: completes silently unless it fails
  bool solicited = false;
  bool fence = false;              // begins when all READs and atomics before it are complete
                                   // (10.8.3.3)
  std::uint8_t segment_count = 0;  // of WorkRequest::segments
  bool inlined = false;            // set when posted: from WorkRequest::inline_bytes
  std::uint64_t wr_id = 0;
  // From here on: fields that most packets of a message do not need.
  std::uint64_t compare = 0;   // compare_swap: swapped only where this is found
  std::uint64_t swap_add = 0;  // compare_swap: the new value; fetch_add: the addend
  std::uint32_t immediate = 0;
  // UD only: where this datagram goes. Handles are made by Engine::create_address_handle.
  std::uint32_t address_handle = 0;
  std::uint32_t target_qp_number = 0;
  std::uint32_t target_qkey = 0;
  std::uint32_t target_srq = 0;  // XRC: number of a shared receive queue of the peer
};

struct WorkRequest : QueuedRequest {
  // In place of local_address and local_key: a list, copied when posted; `length` is then its sum.
  const Segment* segments = nullptr;
  // In place of both, for SEND and WRITE: `length` bytes, copied when posted.
  const std::byte* inline_bytes = nullptr;
  MessageHint hint{};
};
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 31;
inline constexpr std::uint32_t kAtomicBytes = 8;
// The header in front of every received datagram (vol. 1, 11.4.2.2; annex A17.4.5.1: an IPv4 header
// takes the last 20 of these bytes).
inline constexpr std::uint32_t kGrhBytes = 40;

struct ReceiveRequest {
  std::uint64_t wr_id = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t local_key = 0;
  // In place of a single segment: a list, copied when posted; `length` is then its sum.
  const Segment* segments = nullptr;
  std::uint8_t segment_count = 0;
};

enum class CompletionStatus : std::uint8_t {
  success,
  local_length_error,
  local_protection_error,
  bad_response,  // an answer that does not fit the request (vol. 1, 9.9.2.4.2)
  remote_invalid_request,
  remote_access_error,
  remote_operational_error,
  retry_exceeded,
  rnr_retry_exceeded,
  flushed,
};

enum class CompletionOpcode : std::uint8_t {
  send,
  write,
  read,
  fetch_add,
  compare_swap,
  receive,
  receive_write_imm,
};

struct Completion {
  std::uint64_t wr_id = 0;
  std::uint64_t bytes = 0;
  Picos at{0};  // time of the poll that completed it
  std::uint32_t qp_number = 0;
  std::uint32_t immediate = 0;
  CompletionStatus status = CompletionStatus::success;
  CompletionOpcode opcode = CompletionOpcode::send;
  bool has_immediate = false;
  bool invalidated = false;  // a SEND with invalidate revoked `invalidated_key`
  std::uint32_t invalidated_key = 0;
  std::uint32_t source_qp_number = 0;  // UD
  std::uint32_t srq_number = 0;  // XRC, receives: of the queue that the request was taken from
  bool solicited = false;        // receives: the sender wants an event
  bool has_grh = false;          // UD: the buffer begins with 40 bytes that hold the IP header
  bool ipv6 = false;             // ...which is that of IPv6
};

enum class PostResult : std::uint8_t {
  ok,
  queue_full,
  bad_state,
  bad_length,
  bad_key,
  too_many_segments,
  bad_target,  // UD: no such address handle, or of another protection domain; XRC: no such number
  bad_opcode,  // not offered by this service, or no READs and atomics were agreed on
};

constexpr CompletionOpcode completion_opcode(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::write:
    case WorkOpcode::write_imm:
      return CompletionOpcode::write;
    case WorkOpcode::read:
      return CompletionOpcode::read;
    case WorkOpcode::fetch_add:
      return CompletionOpcode::fetch_add;
    case WorkOpcode::compare_swap:
      return CompletionOpcode::compare_swap;
    case WorkOpcode::send:
    case WorkOpcode::send_imm:
    case WorkOpcode::send_invalidate:
      break;
  }
  return CompletionOpcode::send;
}

constexpr const char* to_string(CompletionStatus s) {
  switch (s) {
    case CompletionStatus::success:
      return "success";
    case CompletionStatus::local_length_error:
      return "local length error";
    case CompletionStatus::local_protection_error:
      return "local protection error";
    case CompletionStatus::bad_response:
      return "bad response";
    case CompletionStatus::remote_invalid_request:
      return "remote invalid request";
    case CompletionStatus::remote_access_error:
      return "remote access error";
    case CompletionStatus::remote_operational_error:
      return "remote operational error";
    case CompletionStatus::retry_exceeded:
      return "transport retry limit exceeded";
    case CompletionStatus::rnr_retry_exceeded:
      return "receiver-not-ready retry limit exceeded";
    case CompletionStatus::flushed:
      return "flushed";
  }
  return "unknown";
}

}  // namespace paceline::transport
