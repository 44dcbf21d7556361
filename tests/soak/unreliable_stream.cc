#include "tests/soak/unreliable_stream.h"

#include <algorithm>
#include <cstring>

namespace paceline::soak {

using transport::WorkOpcode;

UnreliableStream::UnreliableStream(Stage& stage, const UnreliableSetup& setup, Random random)
    : stage_(stage),
      setup_(setup),
      random_(random),
      ring_(setup.base, setup.bytes),
      next_psn_(setup.first_psn) {}

// The next message, with its bytes in place; false when there is no room yet.
bool UnreliableStream::draw() {
  const std::uint64_t mtu = setup_.mtu;
  Message m;
  m.index = next_index_;
  m.key = random_.next();
  constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send_imm, WorkOpcode::send, WorkOpcode::write_imm,
                                     WorkOpcode::write};
  m.opcode = kOpcodes[random_.below(ud() ? 2 : 4)];
  const std::uint64_t edges[] = {0, 1, 3, 8, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1};
  m.length = random_.below(2) == 0
                 ? edges[random_.below(std::size(edges))]
                 : random_.below(random_.below(8) == 0 ? setup_.largest : 2 * mtu);
  m.length = std::min(m.length, setup_.largest);
  // Without immediate data, the message itself says which it is.
  m.named = m.opcode == WorkOpcode::send;
  if (m.named) m.length = std::max<std::uint64_t>(m.length, 8);
  m.signaled = random_.below(3) != 0;
  m.wrong_key = ud() && random_.below(64) == 0;
  m.packets = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (m.length + mtu - 1) / mtu));
  m.first_psn = next_psn_;
  m.slot_bytes = m.length + 8;
  for (;;) {
    m.slot = ring_.take(m.slot_bytes, !messages_.empty(),
                        messages_.empty() ? 0 : messages_.front().slot);
    if (m.slot != SlotRing::kNone) break;
    require(messages_.size() >= kRemembered / 4, "the soak itself: too little memory for qp {:#x}",
            setup_.qp);
    if (messages_.front().index >= done_) return false;
    forget_oldest();
  }
  m.at = m.slot + random_.below(8);
  for (Host* host : {&initiator(), &target()}) {
    const std::size_t wrong = poison_mismatch(host->bytes(m.slot, m.slot_bytes));
    require(wrong == m.slot_bytes,
            "memory of nobody was written at offset {:#x}, before message {} of qp {:#x}",
            m.slot + wrong, m.index, setup_.qp);
  }
  const std::span<std::byte> source = initiator().bytes(m.at, m.length);
  fill_pattern(source, m.key, 0);
  if (m.named) std::memcpy(source.data(), &m.index, 8);
  next_psn_ = next_psn_ + m.packets;
  ++next_index_;
  payload_ += m.length;
  if (m.opcode != WorkOpcode::write && !m.wrong_key) ++expected_;
  messages_.push_back(m);
  return true;
}

void UnreliableStream::post() {
  while (drawn_ || !closed_) {
    if (!drawn_) {
      if (!stage_.closing && next_index_ - done_ >= depth_) return;
      if (!draw()) return;
      drawn_ = true;
      // The last completes, and all silent ones before it with it.
      if (stage_.closing) closed_ = messages_.back().signaled = true;
    }
    const Message& m = messages_.back();
    transport::WorkRequest r;
    r.wr_id = m.index;
    r.opcode = m.opcode;
    r.signaled = m.signaled;
    r.length = m.length;
    r.immediate = static_cast<std::uint32_t>(m.index);
    r.local_address = Host::kBase + m.at;
    r.local_key = initiator().key;
    r.remote_address = Host::kBase + m.at;
    r.remote_key = target().key;
    r.address_handle = m.index % 3 == 0 ? setup_.other_handle : setup_.handle;
    r.target_qp_number = setup_.peer;
    r.target_qkey = setup_.qkey + (m.wrong_key ? 1 : 0);
    const auto result = initiator().engine.post_send(stage_.now, setup_.qp, r);
    if (result == transport::PostResult::queue_full) return;
    require(result == transport::PostResult::ok, "message {} of qp {:#x}: refused when posted ({})",
            m.index, setup_.qp, static_cast<int>(result));
    drawn_ = false;
    initiator().touched = true;
  }
}

void UnreliableStream::step() {
  if (random_.below(64) == 0) depth_ = 1 + random_.below(24);
  setup_.buffers->give(~0U);
  post();
}

void UnreliableStream::on_sent(const transport::Completion& c) {
  require(c.status == transport::CompletionStatus::success, "message {} of qp {:#x}: {}", c.wr_id,
          setup_.qp, transport::to_string(c.status));
  const std::uint64_t first = messages_.empty() ? 0 : messages_.front().index;
  const std::uint64_t posted = next_index_ - (drawn_ ? 1 : 0);
  for (bool found = false; !found; ++done_) {
    require(done_ < posted, "qp {:#x}: a completion for {} that nothing waits for", setup_.qp,
            c.wr_id);
    const Message& m = messages_[done_ - first];
    // It is on its way: the source is the application's again.
    poison(initiator().bytes(m.at, m.length));
    if (!m.signaled) continue;
    found = true;
    require(c.wr_id == m.index, "qp {:#x}: message {} completes instead of {}", setup_.qp, c.wr_id,
            m.index);
    require(c.bytes == m.length && c.opcode == transport::completion_opcode(m.opcode),
            "message {} of qp {:#x} completes with {} bytes, opcode {}", m.index, setup_.qp,
            c.bytes, static_cast<int>(c.opcode));
  }
  while (messages_.size() > kRemembered && messages_.front().index < done_) forget_oldest();
}

std::string UnreliableStream::state() const {
  return fmt::format("qp {:#x} ({}): {} of {} messages complete", setup_.qp, ud() ? "UD" : "UC",
                     done_, next_index_);
}

void UnreliableStream::check_bytes(std::span<const std::byte> bytes, const Message& m) {
  const std::uint64_t skip = m.named ? 8 : 0;
  const std::size_t wrong = pattern_mismatch(bytes.subspan(skip), m.key, skip);
  require(wrong + skip == bytes.size(), "unreliable message {} of qp {:#x}: byte {} of {} is wrong",
          m.index, setup_.qp, wrong + skip, bytes.size());
}

void UnreliableStream::on_received(const transport::Completion& c) {
  require(c.status == transport::CompletionStatus::success, "qp {:#x}: a receive ends with {}",
          setup_.peer, transport::to_string(c.status));
  const std::uint64_t header = ud() ? transport::kGrhBytes : 0;
  require(c.bytes >= header && c.bytes <= setup_.buffers->bytes(),
          "qp {:#x}: a receive of {} bytes", setup_.peer, c.bytes);
  const bool write = c.opcode == transport::CompletionOpcode::receive_write_imm;
  const std::uint64_t length = c.bytes - header;
  const std::span<std::byte> buffer =
      target().bytes(setup_.buffers->place(c.wr_id), write ? 0 : c.bytes);
  require(!messages_.empty(), "qp {:#x}: a receive completes that nothing was sent for",
          setup_.peer);
  const std::uint64_t oldest = messages_.front().index;
  std::uint64_t index = 0;
  if (c.has_immediate) {
    index = oldest + static_cast<std::uint32_t>(c.immediate - static_cast<std::uint32_t>(oldest));
  } else {
    require(length >= 8, "qp {:#x}: a message of {} bytes that was never sent", setup_.peer,
            length);
    std::memcpy(&index, buffer.data() + header, 8);
  }
  require(
      index >= oldest && index - oldest < messages_.size() && (!drawn_ || index + 1 < next_index_),
      "qp {:#x}: receives message {}, which was not sent lately", setup_.peer, index);
  Message& m = messages_[index - oldest];
  require(!m.wrong_key, "datagram {} was delivered with a wrong Q_Key", index);
  require(length == m.length && write == transport::is_write(m.opcode) &&
              c.has_immediate == transport::has_immediate(m.opcode),
          "unreliable message {} of qp {:#x} arrives with {} bytes, not {}", index, setup_.qp,
          length, m.length);
  check_bytes(write ? target().bytes(m.at, m.length) : buffer.subspan(header), m);
  if (ud()) {
    require(c.has_grh && c.source_qp_number == setup_.qp,
            "datagram {} comes from qp {:#x}, not {:#x}", index, c.source_qp_number, setup_.qp);
    require(std::all_of(buffer.begin(), buffer.begin() + 20,
                        [](std::byte b) { return b == std::byte{0}; }) &&
                buffer[20] == std::byte{0x45},
            "datagram {}: no IPv4 header in front of it", index);
  }
  // Whole repeats only: every packet of it must have come twice.
  ++m.delivered;
  require(m.delivered <= 1 + m.repeated / m.packets,
          "unreliable message {} of qp {:#x} is delivered {} times; of its {} packets the network "
          "repeated {}",
          index, setup_.qp, m.delivered, m.packets, m.repeated);
  if (m.delivered == 1) ++delivered_;
  // UC: a message that lost its end may have left more bytes in the buffer than this one has.
  setup_.buffers->put_back(c.wr_id, ud() ? c.bytes : setup_.buffers->bytes());
  setup_.buffers->give(~0U);
}

void UnreliableStream::on_weather(Psn psn, const ImpairmentVerdict& verdict) {
  ++incidents_;
  if (!verdict.duplicate || verdict.drop) return;
  for (auto m = messages_.rbegin(); m != messages_.rend(); ++m) {
    const std::int32_t packet = distance(psn, m->first_psn);
    if (packet >= 0 && packet < static_cast<std::int32_t>(m->packets)) {
      ++m->repeated;
      return;
    }
  }
}

// Each packet of a WRITE is in the target's memory either whole or not at all.
void UnreliableStream::forget_oldest() {
  const Message& m = messages_.front();
  if (transport::is_write(m.opcode)) {
    for (std::uint64_t at = 0; at < m.length; at += setup_.mtu) {
      const std::uint64_t bytes = std::min<std::uint64_t>(setup_.mtu, m.length - at);
      const std::span<std::byte> part = target().bytes(m.at + at, bytes);
      require(poison_mismatch(part) == bytes || pattern_mismatch(part, m.key, at) == bytes,
              "unreliable WRITE {} of qp {:#x}: the packet at {} is neither there nor missing",
              m.index, setup_.qp, at);
      poison(part);
    }
  }
  messages_.pop_front();
}

void UnreliableStream::check_finished() {
  while (!messages_.empty()) forget_oldest();
  for (Host* host : {&initiator(), &target()}) {
    const std::size_t wrong = poison_mismatch(host->bytes(setup_.base, setup_.bytes));
    require(wrong == setup_.bytes, "memory of nobody was written at offset {:#x}, of qp {:#x}",
            setup_.base + wrong, setup_.qp);
  }
  // A packet lost takes its message with it; one out of place also the message that it falls into.
  require(expected_ - delivered_ <= 2 * incidents_,
          "qp {:#x}: {} of {} messages are lost, but only {} packets did not just pass", setup_.qp,
          expected_ - delivered_, expected_, incidents_);
}

void UnreliableStream::add_to(Totals& totals) const {
  totals.messages += next_index_;
  totals.unreliable_bytes += payload_;
  totals.unreliable_sent += expected_;
  totals.unreliable_delivered += delivered_;
}

}  // namespace paceline::soak
