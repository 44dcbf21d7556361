// Every byte right, exactly once, in order: over a good cable and over bad ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

struct Message {
  WorkOpcode opcode;
  std::uint64_t offset;  // the same in the sender's and the receiver's memory
  std::uint64_t length;
  std::uint32_t immediate;
};

// Sizes where packets and pads begin and end.
std::vector<std::uint64_t> edge_sizes(std::uint64_t mtu) {
  return {0,       1,       2,           3,       4,           5,           mtu - 1, mtu,
          mtu + 1, mtu + 3, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu + 2, 7 * mtu, 16 * mtu + 5};
}

constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::send_imm, WorkOpcode::write,
                                   WorkOpcode::write_imm};

// Sends all messages from `from` on one queue pair, keeping the send queue full, and checks all
// that an application can see at both ends.
class Transfer {
 public:
  Transfer(Lab& lab, unsigned from, std::uint32_t qp, std::vector<Message> messages)
      : lab_(lab), from_(from), qp_(qp), messages_(std::move(messages)) {
    Lab::Side& to = lab_.side(1 - from_);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!takes_receive(messages_[i].opcode)) continue;
      expected_.push_back(i);
      REQUIRE(to.post_receive(i, messages_[i].offset, messages_[i].length));
    }
    post();
  }

  void post() {
    while (next_ < messages_.size()) {
      const Message& m = messages_[next_];
      WorkRequest request =
          lab_.request(m.opcode, next_, m.offset, m.offset, m.length, m.immediate);
      request.signaled = next_ % 3 != 1;
      if (lab_.post(from_, qp_, request) != PostResult::ok) return;
      ++next_;
    }
  }

  void take() {
    for (const Completion& c : lab_.side(from_).sent()) {
      CHECK(c.status == CompletionStatus::success);
      while (completed_ % 3 == 1) ++completed_;  // unsignalled: silent
      CHECK(c.wr_id == completed_);
      CHECK(c.bytes == messages_[completed_].length);
      ++completed_;
    }
    for (const Completion& c : lab_.side(1 - from_).received()) {
      REQUIRE(received_ < expected_.size());
      const std::size_t i = expected_[received_++];
      const Message& m = messages_[i];
      CHECK(c.status == CompletionStatus::success);
      CHECK(c.wr_id == i);
      const bool write = m.opcode == WorkOpcode::write_imm;
      CHECK(c.opcode == (write ? CompletionOpcode::receive_write_imm : CompletionOpcode::receive));
      CHECK(c.bytes == m.length);
      CHECK(c.has_immediate == (m.opcode != WorkOpcode::send));
      if (c.has_immediate) CHECK(c.immediate == m.immediate);
      // What is announced is there.
      CHECK(same(m.offset, m.length));
    }
    post();
  }

  bool same(std::uint64_t offset, std::uint64_t length) {
    return std::memcmp(lab_.side(from_).memory.data() + offset,
                       lab_.side(1 - from_).memory.data() + offset, length) == 0;
  }

  bool done() const {
    std::size_t completed = completed_;
    while (completed < messages_.size() && completed % 3 == 1) ++completed;
    return completed >= messages_.size() && received_ == expected_.size();
  }

 private:
  Lab& lab_;
  unsigned from_;
  std::uint32_t qp_;
  std::vector<Message> messages_;
  std::vector<std::size_t> expected_;  // indices of those that take a receive request
  std::size_t next_ = 0;
  std::size_t completed_ = 0;
  std::size_t received_ = 0;
};

std::vector<Message> draw_messages(Random& random, std::size_t count, std::uint64_t mtu) {
  const std::vector<std::uint64_t> sizes = edge_sizes(mtu);
  std::vector<Message> messages;
  std::uint64_t offset = 64;
  for (std::size_t i = 0; i < count; ++i) {
    Message m;
    m.opcode = kOpcodes[random.below(4)];
    m.length = random.below(4) == 0 ? random.below(5 * mtu) : sizes[random.below(sizes.size())];
    m.immediate = static_cast<std::uint32_t>(random.next());
    m.offset = offset;
    offset += m.length + random.below(7) + 1;  // odd places, with bytes between that stay 0
    if (offset + 64 > Lab::kMemoryBytes) break;
    messages.push_back(m);
  }
  messages.back().opcode = WorkOpcode::send;
  return messages;
}

// The receiver's memory holds exactly the messages, and zeros between them.
bool nothing_else_written(Lab& lab, const std::vector<Message>& messages) {
  std::vector<std::byte> expected(Lab::kMemoryBytes);
  for (const Message& m : messages) {
    std::memcpy(expected.data() + m.offset, lab.a().memory.data() + m.offset, m.length);
  }
  return expected == lab.b().memory;
}

void transfer_all(LabOptions options, std::size_t count, std::uint32_t first_psn) {
  options.qp.send_queue_depth = 16;
  Lab lab(options);
  Lab::fill(lab.a().memory, options.seed);
  Random random(options.seed, 5);
  const auto messages = draw_messages(random, count, options.engine.payload_mtu);
  const Lab::Pair pair = lab.connect(first_psn, 7);
  Transfer transfer(lab, 0, pair.a, messages);
  lab.on_poll = [&](unsigned) { transfer.take(); };
  lab.run(picos_from_micros(60'000'000));
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
  CHECK(transfer.done());
  CHECK(nothing_else_written(lab, messages));
  CHECK(lab.leftovers().empty());
  CHECK(lab.b().counters().rx_data_packets == lab.a().counters().tx_data_packets);
  CHECK(lab.b().counters().rx_data_bytes == lab.a().counters().tx_data_bytes);
}

TEST_CASE("every size and opcode arrives over a good cable, without one repetition",
          "[transport]") {
  for (const std::uint32_t mtu : {256U, 1000U, 1024U, 4096U}) {
    LabOptions options;
    options.engine.payload_mtu = mtu;
    Lab lab(options);
    Lab::fill(lab.a().memory, mtu);
    std::vector<Message> messages;
    std::uint64_t offset = 1;
    for (const WorkOpcode opcode : kOpcodes) {
      for (const std::uint64_t size : edge_sizes(mtu)) {
        messages.push_back({opcode, offset, size, static_cast<std::uint32_t>(offset * 3)});
        offset += size + 3;
      }
    }
    const Lab::Pair pair = lab.connect();
    Transfer transfer(lab, 0, pair.a, messages);
    lab.on_poll = [&](unsigned) { transfer.take(); };
    CHECK(lab.run(picos_from_micros(1'000'000)));
    CAPTURE(mtu);
    CHECK(transfer.done());
    CHECK(nothing_else_written(lab, messages));
    CHECK(lab.leftovers().empty());
    CHECK(lab.a().counters().retransmitted_packets == 0);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.b().counters().naks_sent == 0);
    CHECK(telemetry::malformed_total(lab.a().counters()) == 0);
    CHECK(telemetry::malformed_total(lab.b().counters()) == 0);
  }
}

TEST_CASE("loss, repetition, reordering and damage leave every byte right", "[transport]") {
  struct Weather {
    const char* name;
    Impairments impairments;
  };
  const Weather weathers[] = {
      {"drop", {.drop = 0.02}},
      {"corrupt", {.corrupt = 0.02}},
      {"duplicate", {.duplicate = 0.05}},
      {"reorder", {.reorder = 0.02, .max_hold = 6}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.01, .mark = 0.1}},
  };
  for (const Weather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      LabOptions options;
      options.seed = seed;
      options.impairments = weather.impairments;
      options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
      options.engine.ack_every = seed % 3 == 0 ? 16 : 1;
      options.qp.retransmit_timeout = picos_from_micros(100);
      options.qp.retry_count = 100;  // a round without progress is bad luck here, not the end
      CAPTURE(weather.name, seed);
      transfer_all(options, 120, static_cast<std::uint32_t>(seed * 0x12345));
    }
  }
}

TEST_CASE("sequence numbers wrap under loss", "[transport]") {
  for (std::uint64_t seed = 11; seed <= 14; ++seed) {
    LabOptions options;
    options.seed = seed;
    options.impairments = {.drop = 0.02, .duplicate = 0.02, .reorder = 0.02};
    options.engine.payload_mtu = 256;
    options.qp.retransmit_timeout = picos_from_micros(100);
    options.qp.retry_count = 100;
    CAPTURE(seed);
    transfer_all(options, 80, 0xFF'FFFF - 20 * static_cast<std::uint32_t>(seed - 10));
  }
}

TEST_CASE("both directions at once, packets refused by the port now and then", "[transport]") {
  for (std::uint64_t seed = 21; seed <= 23; ++seed) {
    LabOptions options;
    options.seed = seed;
    options.tx_burst = 8;
    options.engine.payload_mtu = 1024;
    options.impairments = {.drop = 0.005};
    options.qp.retransmit_timeout = picos_from_micros(100);
    options.qp.retry_count = 100;
    Lab lab(options);
    Random random(seed, 6);
    auto forth = draw_messages(random, 60, 1024);
    auto back = draw_messages(random, 60, 1024);
    // The two directions use halves of the memories that do not overlap.
    for (Message& m : back) m.offset += Lab::kMemoryBytes / 2;
    Lab::fill(std::span(lab.a().memory).first(Lab::kMemoryBytes / 2), seed);
    Lab::fill(std::span(lab.b().memory).subspan(Lab::kMemoryBytes / 2), seed + 1);
    const Lab::Pair pair = lab.connect();
    Transfer first(lab, 0, pair.a, forth);
    Transfer second(lab, 1, pair.b, back);
    std::uint64_t polls = 0;
    lab.on_poll = [&](unsigned side) {
      first.take();
      second.take();
      if (++polls % 50 == 0) lab.side(side).port.refuse_calls(1);
    };
    lab.run(picos_from_micros(10'000'000));
    CAPTURE(seed);
    CHECK(first.done());
    CHECK(second.done());
    for (const Message& m : forth) CHECK(first.same(m.offset, m.length));
    for (const Message& m : back) CHECK(second.same(m.offset, m.length));
    CHECK(lab.leftovers().empty());
    CHECK(lab.a().counters().tx_stalled + lab.b().counters().tx_stalled > 0);
  }
}

}  // namespace
}  // namespace paceline::transport::test
