#include "dataplane/service/memory/copy_scheduler.h"

#include <algorithm>
#include <cstring>

namespace paceline::service {

using transport::MemoryCaller;
using transport::MemoryResult;

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Queue pair numbers have 24 bits.
std::uint32_t key_of(const MemoryCaller& caller, CopyKind kind) {
  return caller.qp_number << 2U | (caller.responder ? 2U : 0U) | (kind == CopyKind::read ? 1U : 0U);
}

}  // namespace

CopyScheduler::CopyScheduler(CopyThread& thread)
    : thread_(thread), streams_(std::make_unique<Stream[]>(CopyThread::kJobs)) {
  keys_.fill(kNone);
}

std::uint32_t CopyScheduler::find(std::uint32_t key) const {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  return found == keys_.end() ? kNone : static_cast<std::uint32_t>(found - keys_.begin());
}

void CopyScheduler::free(std::uint32_t index) {
  keys_[index] = kNone;
  streams_[index].state = State::free;
}

// A free place; or that of the stream whose last request is the oldest; or one with an answer that
// was not fetched (if its queue pair still comes, it asks again).
std::uint32_t CopyScheduler::place_for_new() {
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < CopyThread::kJobs; ++i) {
    const Stream& stream = streams_[i];
    if (stream.state == State::free) return i;
    if (stream.state != State::idle && stream.state != State::answered) continue;
    const bool better =
        best == kNone ||
        (stream.state == streams_[best].state && stream.since < streams_[best].since) ||
        (stream.state == State::idle && streams_[best].state == State::answered);
    if (better) best = i;
  }
  return best;
}

MemoryResult CopyScheduler::answer(std::uint32_t index, const Piece& piece, std::byte* out) {
  if (piece.result != CopyResult::done) return MemoryResult::fault;
  if (out != nullptr) std::memcpy(out, thread_.buffer(index) + piece.place, piece.call.bytes);
  return MemoryResult::done;
}

void CopyScheduler::begin(std::uint32_t index, const CopyCall& call, std::uint64_t address,
                          const std::byte* in, const transport::AtomicOperation& operation,
                          CopyLedger& ledger, const OrderTarget& order) {
  Stream& stream = streams_[index];
  if (stream.pieces == kPieces || stream.filled + call.bytes > CopyThread::kJobBytes) {
    stream.pieces = stream.filled = 0;  // of accesses before: one alone has room
  }
  Piece& piece = stream.piece[stream.pieces++];
  piece.call = call;
  piece.place = stream.filled;
  stream.filled += call.bytes;
  stream.state = State::copying;
  stream.since = ++clock_;
  CopyJob& job = thread_.job(index);
  job.kind = call.kind;
  job.bytes = call.bytes;
  job.address = address;
  job.data = thread_.buffer(index) + piece.place;
  job.operation = operation;
  job.ledger = &ledger;
  job.order = order;
  if (in != nullptr) std::memcpy(job.data, in, call.bytes);
  thread_.submit(index);
}

MemoryResult CopyScheduler::call(const MemoryCaller& caller, const CopyCall& call,
                                 std::uint64_t address, std::byte* out, const std::byte* in,
                                 const transport::AtomicOperation& operation, CopyLedger& ledger,
                                 const OrderTarget& order) {
  if (call.bytes > CopyThread::kJobBytes) return MemoryResult::fault;
  const std::uint32_t key = key_of(caller, call.kind);
  std::uint32_t index = find(key);
  if (index != kNone) {
    Stream& stream = streams_[index];
    const Piece* const last = &stream.piece[stream.pieces - 1];
    if (stream.state != State::idle) {
      // A repeated access, up to the piece that it waits for.
      const auto known =
          std::find_if(stream.piece.cbegin(), stream.piece.cbegin() + (stream.pieces - 1),
                       [&](const Piece& p) { return p.call == call; });
      if (&*known != last) return answer(index, *known, out);
      if (stream.state == State::copying) return MemoryResult::pending;
      if (last->call == call) {
        stream.state = State::idle;
        stream.since = ++clock_;
        return answer(index, *last, out);
      }
      stream.pieces = stream.filled = 0;  // the one that waited was given up
    } else if (call.at <= last->call.at) {
      stream.pieces = stream.filled = 0;  // the next access
    }
  } else {
    index = place_for_new();
    if (index == kNone) {
      if (waiting_.full()) return MemoryResult::fault;
      waiting_.push(caller.qp_number);
      return MemoryResult::pending;
    }
    keys_[index] = key;
    streams_[index].pieces = streams_[index].filled = 0;
  }
  begin(index, call, address, in, operation, ledger, order);
  return MemoryResult::pending;
}

std::size_t CopyScheduler::take_ready(std::span<std::uint32_t> out) {
  std::size_t ready = 0;
  std::uint32_t index = 0;
  while (ready < out.size() && thread_.take_done({&index, 1}) != 0) {
    ++room_;
    Stream& stream = streams_[index];
    if (stream.state == State::forgotten) {
      free(index);
      continue;
    }
    stream.piece[stream.pieces - 1].result = thread_.job(index).result;
    stream.state = State::answered;
    stream.since = ++clock_;
    out[ready++] = keys_[index] >> 2U;
  }
  // Each finished job makes room for one that waits.
  if (waiting_.empty()) room_ = 0;
  for (; room_ != 0 && ready < out.size() && !waiting_.empty(); --room_) {
    out[ready++] = waiting_.front();
    waiting_.pop();
  }
  return ready;
}

void CopyScheduler::forget(std::uint32_t qp_number) {
  for (std::uint32_t index = 0; index < CopyThread::kJobs; ++index) {
    if (keys_[index] == kNone || keys_[index] >> 2U != qp_number) continue;
    if (streams_[index].state == State::copying) {
      streams_[index].state = State::forgotten;
      keys_[index] = kNone;
    } else {
      free(index);
    }
  }
}

}  // namespace paceline::service
