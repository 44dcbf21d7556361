#include "tests/soak/reliable_stream.h"

#include <cstring>

namespace paceline::soak {

using transport::WorkOpcode;

namespace {

constexpr WorkOpcode kOpcodes[] = {
    WorkOpcode::send,      WorkOpcode::send_imm,     WorkOpcode::send_invalidate,
    WorkOpcode::write,     WorkOpcode::write_imm,    WorkOpcode::read,
    WorkOpcode::fetch_add, WorkOpcode::compare_swap,
};
constexpr std::size_t kWithoutReads = 5;
constexpr std::uint64_t kMostUnsignaled = 16;

}  // namespace

ReliableStream::ReliableStream(Stage& stage, const ReliableSetup& setup, Random random)
    : stage_(stage),
      setup_(setup),
      random_(random),
      ring_(setup.base + 8 * kWords, setup.bytes - 8 * kWords) {
  const std::span<std::byte> words = target().bytes(setup_.base, 8 * kWords);
  std::fill(words.begin(), words.end(), std::byte{0});
}

std::uint64_t ReliableStream::draw_length() {
  const std::uint64_t mtu = setup_.mtu;
  const std::uint64_t edges[] = {0,       1,           2,       3,           4,
                                 5,       7,           8,       mtu - 1,     mtu,
                                 mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu + 2};
  const std::uint64_t kind = random_.below(1000);
  std::uint64_t length;
  if (kind < 450) {
    length = edges[random_.below(std::size(edges))];
  } else if (kind < 700) {
    length = random_.below(256);
  } else if (kind < 970) {
    length = random_.below(6 * mtu);
  } else if (kind < 997) {
    length = random_.below(20 * mtu);
  } else {
    length = random_.below(setup_.largest + 1);
  }
  return std::min(length, setup_.largest);
}

// Finds room for the job's bytes; false when there is none now.
bool ReliableStream::place(Job& job) {
  const std::uint64_t bytes =
      std::max(job.owns_local ? job.local.end() : 0, job.owns_remote ? job.remote.end() : 0) + 1;
  job.slot = ring_.take(bytes, !jobs_.empty(), jobs_.empty() ? 0 : jobs_.front().slot);
  if (job.slot == SlotRing::kNone) return false;
  if (job.owns_local) job.local.shift(job.slot);
  if (job.owns_remote) job.remote.shift(job.slot);
  for (Host* host : {&initiator(), &target()}) {
    const std::size_t wrong = poison_mismatch(host->bytes(job.slot, bytes));
    require(wrong == bytes,
            "memory of nobody was written at offset {:#x}, before message {} of qp {:#x}",
            job.slot + wrong, job.index, setup_.qp);
  }
  return true;
}

void ReliableStream::draw_atomic(Job& job) {
  transport::WorkRequest& r = job.request;
  r.length = transport::kAtomicBytes;
  job.local = lay_out(random_, r.length, 1);
  job.owns_remote = false;
  SharedCounter& counter = stage_.counters[1 - setup_.from];
  if (r.opcode == WorkOpcode::fetch_add && random_.below(4) == 0) {
    job.shared_counter = true;
    r.swap_add = 1;
    r.remote_address = Host::kBase + counter.offset;
    return;
  }
  const std::uint64_t w = random_.below(kWords);
  r.swap_add = random_.next();
  r.compare = random_.below(2) == 0 ? words_[w] : random_.next();
  r.remote_address = Host::kBase + setup_.base + 8 * w;
  job.original = words_[w];
}

// A READ of what an earlier WRITE puts there, or (fenced) a SEND or WRITE of what an earlier READ
// brings. False when the newest jobs have nothing to offer.
bool ReliableStream::draw_reuse(Job& job) {
  transport::WorkRequest& r = job.request;
  const bool read = r.opcode == WorkOpcode::read;
  for (auto it = jobs_.rbegin(); it != jobs_.rend() && it - jobs_.rbegin() < 6; ++it) {
    const bool written = transport::is_write(it->request.opcode) && it->owns_remote;
    const bool fetched =
        it->request.opcode == WorkOpcode::read && it->owns_local && it->local.count == 1;
    if (!(read ? written : fetched) || it->request.length == 0) continue;
    const std::uint64_t skip = random_.below(it->request.length);
    r.length = random_.below(it->request.length - skip + 1);
    job.key = it->key;
    job.from = it->from + skip;
    Pieces& shared = read ? job.remote : job.local;
    shared = read ? it->remote : it->local;
    shared.list[0] = {shared.list[0].offset + skip, r.length};
    (read ? job.owns_remote : job.owns_local) = false;
    if (!read) r.fence = true;
    job.uses = it->index;
    return true;
  }
  return false;
}

// The next job, with its bytes in place; false when there is no room for it yet.
bool ReliableStream::draw() {
  const Random before = random_;
  Job job;
  job.index = next_index_;
  job.key = random_.next();
  transport::WorkRequest& r = job.request;
  r.wr_id = job.index;
  r.opcode = kOpcodes[random_.below(setup_.reads ? std::size(kOpcodes) : kWithoutReads)];
  r.immediate = static_cast<std::uint32_t>(random_.next());
  r.signaled = unsignaled_ == kMostUnsignaled || random_.below(3) != 0;
  r.solicited = random_.below(8) == 0;
  r.fence = random_.below(16) == 0;
  const bool read = r.opcode == WorkOpcode::read;
  const unsigned segments = random_.below(3) == 0 ? setup_.segments : 1;
  const bool message = r.opcode == WorkOpcode::send || r.opcode == WorkOpcode::send_imm ||
                       r.opcode == WorkOpcode::send_invalidate;
  if (transport::is_atomic(r.opcode)) {
    draw_atomic(job);
  } else if (!((read || transport::is_write(r.opcode)) && random_.below(4) == 0 &&
               draw_reuse(job))) {
    r.length = draw_length();
    job.from = random_.below(64);
  }
  if (message && setup_.shared_receives) {
    r.length = std::min(r.length, stage_.shared[1 - setup_.from]->bytes());
    job.in_shared = true;
    job.owns_remote = false;
  }
  if (!transport::is_atomic(r.opcode)) {
    if (job.owns_local) job.local = lay_out(random_, r.length, segments);
    // A receive request may be longer than what comes.
    const std::uint64_t slack = message && random_.below(2) == 0 ? random_.below(64) : 0;
    if (job.owns_remote) job.remote = lay_out(random_, r.length + slack, message ? segments : 1);
  }
  if (!place(job)) {
    random_ = before;
    return false;
  }
  ++next_index_;
  if (!transport::is_atomic(r.opcode)) payload_ += r.length;
  job.needed_by = job.index;
  if (job.uses != kNobody) this->job(job.uses).needed_by = job.index;
  unsignaled_ = r.signaled ? 0 : unsignaled_ + 1;
  if (transport::is_atomic(r.opcode)) {
    if (!job.shared_counter) {
      std::uint64_t& word = words_[(r.remote_address - Host::kBase - setup_.base) / 8];
      const transport::AtomicOperation operation{r.opcode == WorkOpcode::compare_swap, r.compare,
                                                 r.swap_add};
      word = operation.result(word);
    } else {
      ++stage_.counters[1 - setup_.from].posted;
    }
  } else {
    Host& source = read ? target() : initiator();
    const Pieces& from = read ? job.remote : job.local;
    std::uint64_t at = job.from;
    if (read ? job.owns_remote : job.owns_local) {
      for (const Piece& p : from.all()) {
        fill_pattern(source.bytes(p.offset, p.length), job.key, at);
        at += p.length;
      }
    }
    if (!message) r.remote_address = Host::kBase + job.remote.list[0].offset;
  }
  const bool slow = setup_.slow_memory && random_.below(2) == 0;
  r.local_key = slow ? initiator().slow_key : initiator().key;
  r.remote_key = setup_.slow_memory && random_.below(2) == 0 ? target().slow_key : target().key;
  if (r.opcode == WorkOpcode::send_invalidate) {
    r.remote_key =
        target().engine.regions().add_elided(0, 64, transport::access::remote_invalidate);
  }
  jobs_.push_back(job);
  name_local(jobs_.back());
  if (transport::takes_receive(r.opcode)) {
    awaited_.push_back(job.index);
    if (!setup_.shared_receives) due_.push_back(job.index);
  }
  return true;
}

// An empty WRITE that completes: everything before it does, too.
void ReliableStream::draw_last() {
  Job job;
  job.index = job.needed_by = next_index_;
  job.owns_local = job.owns_remote = false;
  job.request.wr_id = job.index;
  job.request.opcode = WorkOpcode::write;
  if (!place(job)) return;
  ++next_index_;
  jobs_.push_back(job);
  closed_ = drawn_ = true;
}

// How the request names its local bytes: one address, a list, or inline.
void ReliableStream::name_local(Job& job) {
  transport::WorkRequest& r = job.request;
  if (job.local.count == 1) {
    r.local_address = Host::kBase + job.local.list[0].offset;
    const bool may = !transport::expects_response(r.opcode) && r.length <= setup_.max_inline;
    if (may && !r.fence && job.owns_local && random_.below(2) == 0) {
      r.inline_bytes = initiator().memory.data() + job.local.list[0].offset;
    }
    return;
  }
  for (unsigned i = 0; i < job.local.count; ++i) {
    const Piece& p = job.local.list[i];
    job.segments[i] = {Host::kBase + p.offset, p.length, r.local_key};
  }
  r.segment_count = static_cast<std::uint8_t>(job.local.count);
}

void ReliableStream::post() {
  while (drawn_ || !closed_) {
    if (!drawn_) {
      if (stage_.closing) {
        draw_last();
      } else if (jobs_.size() < depth_) {
        drawn_ = draw();
      }
      if (!drawn_) break;
    }
    Job& job = jobs_.back();
    job.request.segments = job.request.segment_count == 0 ? nullptr : job.segments.data();
    const transport::PostResult result =
        initiator().engine.post_send(stage_.now, setup_.qp, job.request);
    if (result == transport::PostResult::queue_full) break;
    require(result == transport::PostResult::ok, "message {} of qp {:#x}: refused when posted ({})",
            job.index, setup_.qp, static_cast<int>(result));
    drawn_ = false;
    initiator().touched = true;
    if (job.request.inline_bytes != nullptr) {
      // Inline: the bytes are the application's again.
      for (const Piece& p : job.local.all()) poison(initiator().bytes(p.offset, p.length));
      job.owns_local = false;
      job.local.count = 0;
    }
  }
  if (!late_receives_) post_receives(~std::uint64_t{0});
}

void ReliableStream::post_receives(std::uint64_t most) {
  for (; most != 0 && !due_.empty(); --most) {
    Job& j = job(due_.front());
    transport::ReceiveRequest receive;
    receive.wr_id = j.index;
    receive.local_key =
        setup_.slow_memory && random_.below(2) == 0 ? target().slow_key : target().key;
    std::array<transport::Segment, Pieces::kMost> segments;
    if (!transport::is_write(j.request.opcode)) {
      for (unsigned i = 0; i < j.remote.count; ++i) {
        const Piece& p = j.remote.list[i];
        segments[i] = {Host::kBase + p.offset, p.length, receive.local_key};
      }
      if (j.remote.count == 1) {
        receive.address = segments[0].address;
        receive.length = segments[0].length;
      } else {
        receive.segments = segments.data();
        receive.segment_count = static_cast<std::uint8_t>(j.remote.count);
      }
    }
    if (!target().engine.post_receive(stage_.now, setup_.peer, receive)) return;
    due_.pop_front();
  }
}

void ReliableStream::step() {
  switch (random_.below(64)) {
    case 0:
      depth_ = 1 + random_.below(4);
      break;
    case 1:
      depth_ = 8 + random_.below(200);
      break;
    case 2:
      late_receives_ = !late_receives_;
      break;
    default:
      break;
  }
  if (late_receives_ && random_.below(4) == 0) post_receives(random_.below(6));
  post();
}

void ReliableStream::check_pieces(Host& host, const Pieces& pieces, const Job& job,
                                  const char* what) {
  std::uint64_t at = 0;
  for (const Piece& p : pieces.all()) {
    const std::uint64_t length = std::min(p.length, job.request.length - at);  // else slack
    const std::size_t wrong =
        pattern_mismatch(host.bytes(p.offset, length), job.key, job.from + at);
    require(wrong == length, "{}: byte {} of {} is wrong, message {} of qp {:#x}, opcode {}", what,
            at + wrong, job.request.length, job.index, setup_.qp,
            static_cast<int>(job.request.opcode));
    at += length;
  }
}

// All SENDs and WRITEs below `end` are in the target's memory.
void ReliableStream::check_arrived(std::uint64_t end) {
  for (; arrived_ < end; ++arrived_) {
    Job& j = job(arrived_);
    if (transport::expects_response(j.request.opcode) || j.in_shared) continue;
    check_pieces(target(), j.remote, j, "at the target");
  }
}

void ReliableStream::on_received(const transport::Completion& c) {
  require(!awaited_.empty(), "qp {:#x}: a receive completes that nothing was sent for",
          setup_.peer);
  Job& j = job(awaited_.front());
  awaited_.pop_front();
  const transport::WorkRequest& r = j.request;
  constexpr const char* want = "receive for message {} of qp {:#x}: {} is {}, not {}";
  require(c.status == transport::CompletionStatus::success, want, j.index, setup_.qp, "status",
          transport::to_string(c.status), "success");
  const bool write = transport::is_write(r.opcode);
  const auto opcode =
      write ? transport::CompletionOpcode::receive_write_imm : transport::CompletionOpcode::receive;
  require(c.opcode == opcode, want, j.index, setup_.qp, "opcode", static_cast<int>(c.opcode),
          static_cast<int>(opcode));
  require(c.bytes == r.length, want, j.index, setup_.qp, "length", c.bytes, r.length);
  require(c.has_immediate == transport::has_immediate(r.opcode), want, j.index, setup_.qp,
          "has_immediate", c.has_immediate, !c.has_immediate);
  require(!c.has_immediate || c.immediate == r.immediate, want, j.index, setup_.qp, "immediate",
          c.immediate, r.immediate);
  const bool invalidates = r.opcode == WorkOpcode::send_invalidate;
  require(c.invalidated == invalidates, want, j.index, setup_.qp, "invalidated", c.invalidated,
          invalidates);
  if (invalidates) {
    require(c.invalidated_key == r.remote_key, want, j.index, setup_.qp, "key", c.invalidated_key,
            r.remote_key);
    const transport::Region* region = target().engine.regions().find(r.remote_key);
    require(region != nullptr && region->revoked, "message {}: its key was not revoked", j.index);
    target().engine.regions().remove(r.remote_key);
  }
  if (setup_.shared_receives) {
    Buffers& shared = *stage_.shared[1 - setup_.from];
    if (!write) {
      Pieces pieces;
      pieces.count = 1;
      pieces.list[0] = {shared.place(c.wr_id), r.length};
      check_pieces(target(), pieces, j, "in a shared buffer");
    }
    shared.put_back(c.wr_id, write ? 0 : r.length);
  } else {
    require(c.wr_id == j.index, want, j.index, setup_.qp, "request", c.wr_id, j.index);
  }
  check_arrived(j.index + 1);  // and all WRITEs before it
}

void ReliableStream::complete(Job& j) {
  const transport::WorkRequest& r = j.request;
  require(awaited_.empty() || awaited_.front() > j.index,
          "message {} of qp {:#x} is complete, but its receive is not", j.index, setup_.qp);
  check_arrived(j.index + 1);
  if (!transport::is_atomic(r.opcode)) {
    // A source keeps what it held; where a READ goes, the bytes are there.
    check_pieces(initiator(), j.local, j, "at the initiator");
    return;
  }
  std::uint64_t found;
  std::memcpy(&found, initiator().memory.data() + j.local.list[0].offset, sizeof found);
  if (j.shared_counter) {
    stage_.counters[1 - setup_.from].record(found);
  } else {
    require(found == j.original, "atomic {} of qp {:#x} found {:#x}, not {:#x}", j.index, setup_.qp,
            found, j.original);
  }
}

void ReliableStream::on_sent(const transport::Completion& c) {
  require(c.status == transport::CompletionStatus::success, "message {} of qp {:#x}: {}", c.wr_id,
          setup_.qp, transport::to_string(c.status));
  const std::uint64_t posted = next_index_ - (drawn_ ? 1 : 0);
  while (done_ < posted && !job(done_).request.signaled) complete(job(done_++));
  require(done_ < posted, "qp {:#x}: a completion for {} that nothing waits for", setup_.qp,
          c.wr_id);
  Job& j = job(done_++);
  require(c.wr_id == j.index, "qp {:#x}: message {} completes instead of {}", setup_.qp, c.wr_id,
          j.index);
  require(c.bytes == j.request.length, "message {} of qp {:#x}: completes with {} bytes, not {}",
          j.index, setup_.qp, c.bytes, j.request.length);
  require(c.opcode == transport::completion_opcode(j.request.opcode),
          "message {} of qp {:#x}: completes as opcode {}", j.index, setup_.qp,
          static_cast<int>(c.opcode));
  complete(j);
  retire();
}

std::string ReliableStream::state() const {
  std::string next;
  if (done_ < next_index_) {
    const Job& j = jobs_[done_ - jobs_.front().index];
    next = fmt::format("; next is opcode {} of {} bytes", static_cast<int>(j.request.opcode),
                       j.request.length);
  }
  return fmt::format(
      "qp {:#x} (RC): {} of {} messages complete, receives of {} awaited, of {} not posted{}",
      setup_.qp, done_, next_index_, awaited_.size(), due_.size(), next);
}

// Gives back the memory of what nobody needs any more.
void ReliableStream::retire() {
  while (!jobs_.empty() && jobs_.front().index < done_ && jobs_.front().needed_by < done_) {
    const Job& j = jobs_.front();
    if (j.owns_local) {
      for (const Piece& p : j.local.all()) poison(initiator().bytes(p.offset, p.length));
    }
    if (j.owns_remote) {
      // Behind the message, a receive buffer must not have been written.
      std::uint64_t left = j.request.length;
      for (const Piece& p : j.remote.all()) {
        const std::uint64_t used = std::min(left, p.length);
        poison(target().bytes(p.offset, used));
        left -= used;
      }
    }
    jobs_.pop_front();
  }
}

void ReliableStream::check_finished() {
  for (std::uint64_t w = 0; w < kWords; ++w) {
    std::uint64_t value;
    std::memcpy(&value, target().memory.data() + setup_.base + 8 * w, sizeof value);
    require(value == words_[w], "word {} of qp {:#x} is {:#x}, not {:#x}", w, setup_.qp, value,
            words_[w]);
  }
  for (Host* host : {&initiator(), &target()}) {
    const std::uint64_t from = host == &target() ? 8 * kWords : 0;
    const std::uint64_t bytes = setup_.bytes - from;
    const std::size_t wrong = poison_mismatch(host->bytes(setup_.base + from, bytes));
    require(wrong == bytes, "memory of nobody was written at offset {:#x}, of qp {:#x}",
            setup_.base + from + wrong, setup_.qp);
  }
}

void ReliableStream::add_to(Totals& totals) const {
  totals.messages += next_index_;
  totals.reliable_bytes += payload_;
}

}  // namespace paceline::soak
