// The worker's side of copying: a call that has to wait becomes a job of the copy thread; the
// result is kept until the call is repeated. Only the worker's thread calls.
//
// A stream is one side of a queue pair in one direction: it has at most one access in progress. The
// calls of an access to several pieces of memory come one after another, and start again from the
// first call after one had to wait (transport::MemoryCaller). So the stream keeps the results of
// earlier calls, and answers repeated calls from there: each piece is copied once. Nothing marks
// the end of an access; the next one is recognized by its position (`at`), which does not grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/service/memory/copy_thread.h"

namespace paceline::service {

// A call of transport::MemoryProvider.
struct CopyCall {
  CopyKind kind = CopyKind::read;
  std::uint32_t at = 0;  // MemoryCaller::at
  std::uint32_t bytes = 0;
  std::uint64_t region = 0;  // never used again for another one
  std::uint64_t offset = 0;
  bool operator==(const CopyCall&) const = default;
};

class CopyScheduler {
 public:
  explicit CopyScheduler(CopyThread& thread);

  // A call for memory at `address` of the program. Either `out` (a read, the original value of an
  // atomic) or `in` (a write) is `call.bytes` long. The ledger lives until it is quiet.
  transport::MemoryResult call(const transport::MemoryCaller& caller, const CopyCall& call,
                               std::uint64_t address, std::byte* out, const std::byte* in,
                               const transport::AtomicOperation& operation, CopyLedger& ledger,
                               const OrderTarget& order);
  // Queue pairs whose calls will get an answer now.
  std::size_t take_ready(std::span<std::uint32_t> out);
  // Requests that the queue pair had in progress are not repeated.
  void forget(std::uint32_t qp_number);

 private:
  // The segments of a work request, and the header of a datagram.
  static constexpr std::uint32_t kPieces = 17;
  // Queue pairs that found no free job. Each has at most four streams, and a session has at most
  // 4096 queue pairs.
  static constexpr std::size_t kWaiting = 16'384;

  enum class State : std::uint8_t {
    free,
    copying,    // its last piece is
    answered,   // the job is done, and its result was not fetched yet
    idle,       // it was
    forgotten,  // its copy is no longer needed
  };
  struct Piece {
    CopyCall call;
    std::uint32_t place = 0;  // in the job's buffer
    CopyResult result = CopyResult::done;
  };
  struct Stream {
    State state = State::free;
    std::uint32_t pieces = 0;
    std::uint32_t filled = 0;  // of the buffer
    std::uint64_t since = 0;   // when its state changed, in calls and answers
    std::array<Piece, kPieces> piece{};
  };

  std::uint32_t find(std::uint32_t key) const;
  std::uint32_t place_for_new();
  transport::MemoryResult answer(std::uint32_t index, const Piece& piece, std::byte* out);
  void begin(std::uint32_t index, const CopyCall& call, std::uint64_t address, const std::byte* in,
             const transport::AtomicOperation& operation, CopyLedger& ledger,
             const OrderTarget& order);
  void free(std::uint32_t index);

  CopyThread& thread_;
  std::array<std::uint32_t, CopyThread::kJobs> keys_;  // of streams, apart: searched often
  std::unique_ptr<Stream[]> streams_;                  // each with the job of its number
  std::uint64_t clock_ = 0;
  FixedRing<std::uint32_t> waiting_{kWaiting};
  std::size_t room_ = 0;  // finished jobs that the waiting queue pairs were not told of
};

}  // namespace paceline::service
