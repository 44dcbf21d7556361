// The proof of the idea: transport::Engine, the class that runs in virtual time, unchanged, one
// instance per thread, under the processor's clock, joined by rings in memory. Bounded by counts of
// messages and bytes; how long it takes is nobody's business but ctest's.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/base/random.h"
#include "dataplane/driver/realtime_loop.h"
#include "dataplane/driver/tsc_clock.h"
#include "dataplane/port/impair.h"
#include "dataplane/port/ring_port.h"

namespace paceline {
namespace {

using namespace transport;

constexpr std::uint64_t kBase = 0x4000'0000;
constexpr std::array<std::uint64_t, 8> kSizes = {0, 1, 3, 4095, 4096, 4097, 64 * 1024, 1024 * 1024};
constexpr std::array<WorkOpcode, 4> kOpcodes = {WorkOpcode::write, WorkOpcode::send,
                                                WorkOpcode::write_imm, WorkOpcode::send_imm};
constexpr std::size_t kMessages = kSizes.size() * kOpcodes.size();

struct Message {
  WorkOpcode opcode;
  std::uint64_t length;
  std::uint64_t offset;
};

// Every size with every opcode, each to a place of its own with a gap behind it.
std::vector<Message> all_messages() {
  std::vector<Message> messages;
  std::uint64_t offset = 5;
  for (const std::uint64_t length : kSizes) {
    for (const WorkOpcode opcode : kOpcodes) {
      messages.push_back({opcode, length, offset});
      offset += length + 13;
    }
  }
  return messages;
}

std::uint64_t memory_bytes(const std::vector<Message>& messages) {
  return messages.back().offset + messages.back().length + 64;
}

std::uint32_t immediate_of(std::uint64_t id) { return static_cast<std::uint32_t>(id * 0x9E37 + 1); }

EngineConfig engine_config(unsigned index, cc::AlgorithmId algorithm, const PortInfo& port) {
  EngineConfig config;
  config.address = wire::IpAddress::v4(0x0A00'0001 + index);
  config.mac = wire::MacAddress::local(index + 1);
  config.peers = PeerPolicy::roce;
  cc::PortFacts facts;
  facts.link_rate = port.link_rate;
  facts.mtu_bytes = config.payload_mtu;
  facts.full_packet_bytes = port.wire.wire_bytes(4096 + 62, 4096);
  facts.base_rtt_ns = config.base_rtt_ns;
  config.primary = {algorithm, std::get<std::vector<double>>(
                                   cc::resolve_params(*cc::find(algorithm), "", {}, facts))};
  config.fallback = config.primary;
  return config;
}

// One side: sends all messages, receives all of the other side's, and checks each on arrival. Lives
// on its thread while the loop runs; read by the main thread before and after.
class Side final : public RealtimeApp {
 public:
  Side(unsigned index, cc::AlgorithmId algorithm, Port& port, std::atomic<int>& finished)
      : index_(index),
        finished_(finished),
        messages_(all_messages()),
        source_(memory_bytes(messages_)),
        target_(memory_bytes(messages_)),
        send_cq_(256),
        receive_cq_(256),
        receives_(64),
        engine_(engine_config(index, algorithm, port.info()), port) {
    fill(source_, index);
    source_key_ = engine_.regions().add_plain(kBase, source_, 0);
    target_key_ =
        engine_.regions().add_plain(2 * kBase, target_, access::local_write | access::remote_write);
    QpConfig config;
    config.send_cq = &send_cq_;
    config.receive_cq = &receive_cq_;
    config.receive_queue = &receives_;
    config.send_queue_depth = 8;  // the application has to wait for completions
    // A thread may lose its processor for long: not a loss.
    config.retransmit_timeout = picos_from_micros(200'000);
    config.retry_count = 255;
    qp_ = engine_.create_qp(config);
    for (std::uint64_t id = 0; id < messages_.size(); ++id) {
      const Message& m = messages_[id];
      if (m.opcode == WorkOpcode::write) continue;
      arrivals_.push_back(id);
      receives_.post({id, 2 * kBase + m.offset, m.length, target_key_});
    }
  }

  static void fill(std::vector<std::byte>& memory, unsigned seed) {
    Random random(seed, 3);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random.next() >> 40);
  }

  Engine& engine() { return engine_; }
  std::uint32_t qp() const { return qp_; }
  std::uint32_t target_key() const { return target_key_; }
  void set_remote_key(std::uint32_t key) { remote_key_ = key; }
  const std::vector<std::byte>& source() const { return source_; }
  const std::vector<std::byte>& target() const { return target_; }
  const std::vector<Message>& messages() const { return messages_; }
  const std::string& problem() const { return problem_; }
  std::size_t completed() const { return completed_; }
  std::size_t received() const { return received_; }

  bool step(Picos now) override {
    take_completions();
    const bool posted = post(now);
    if (!counted_ && (done() || !problem_.empty())) {
      counted_ = true;
      finished_.fetch_add(1, std::memory_order_release);
    }
    return posted;
  }

 private:
  bool done() const { return completed_ == messages_.size() && received_ == arrivals_.size(); }

  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  bool post(Picos now) {
    bool any = false;
    for (; next_ < messages_.size(); ++next_, any = true) {
      const Message& m = messages_[next_];
      WorkRequest request;
      request.wr_id = next_;
      request.opcode = m.opcode;
      request.length = m.length;
      request.immediate = immediate_of(next_);
      request.local_address = kBase + m.offset;
      request.local_key = source_key_;
      request.remote_address = 2 * kBase + m.offset;
      request.remote_key = remote_key_;
      const PostResult result = engine_.post_send(now, qp_, request);
      if (result == PostResult::queue_full) break;
      if (result != PostResult::ok) {
        fail("a post was refused");
        break;
      }
    }
    return any;
  }

  void take_completions() {
    std::array<Completion, 16> batch;
    for (std::size_t n; (n = send_cq_.poll(batch)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        const Completion& c = batch[i];
        if (c.status != CompletionStatus::success) fail(to_string(c.status));
        if (c.wr_id != completed_) fail("send completions are out of order");
        ++completed_;
      }
    }
    for (std::size_t n; (n = receive_cq_.poll(batch)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) take_received(batch[i]);
    }
  }

  void take_received(const Completion& c) {
    if (c.status != CompletionStatus::success) return fail(to_string(c.status));
    if (received_ == arrivals_.size()) return fail("more receives than messages");
    const std::uint64_t id = arrivals_[received_++];
    const Message& m = messages_[id];
    if (c.wr_id != id) fail("receives are out of order");
    if (c.bytes != m.length) fail("a receive has a wrong length");
    if (c.has_immediate != (m.opcode != WorkOpcode::send)) fail("immediate");
    if (c.has_immediate && c.immediate != immediate_of(id)) fail("a wrong immediate");
    // The other side sends what its generator says; it is there when it is announced.
    if (expected_.empty()) {
      expected_.resize(source_.size());
      fill(expected_, 1 - index_);
    }
    if (std::memcmp(target_.data() + m.offset, expected_.data() + m.offset, m.length) != 0) {
      fail("wrong bytes in message " + std::to_string(id));
    }
  }

  unsigned index_;
  std::atomic<int>& finished_;
  std::vector<Message> messages_;
  std::vector<std::size_t> arrivals_;
  std::vector<std::byte> source_;
  std::vector<std::byte> target_;
  std::vector<std::byte> expected_;
  CompletionQueue send_cq_;
  CompletionQueue receive_cq_;
  ReceiveQueue receives_;
  Engine engine_;
  std::uint32_t qp_ = 0;
  std::uint32_t source_key_ = 0;
  std::uint32_t target_key_ = 0;
  std::uint32_t remote_key_ = 0;
  std::size_t next_ = 0;
  std::size_t completed_ = 0;
  std::size_t received_ = 0;
  bool counted_ = false;
  std::string problem_;
};

// Everything that `from` sent lies in `to`, and nothing else does.
void check_memories(const Side& from, const Side& to) {
  std::vector<std::byte> expected(to.target().size());
  for (const Message& m : from.messages()) {
    std::memcpy(expected.data() + m.offset, from.source().data() + m.offset, m.length);
  }
  CHECK(expected == to.target());
}

void move_both_ways(cc::AlgorithmId algorithm, const Impairments& impairments) {
  RingCableConfig config;
  config.link_rate = rate_from_gbps(10);
  RingCable cable(config);
  ImpairedPort port0(cable.end(0), impairments, Random(1, 0));
  ImpairedPort port1(cable.end(1), impairments, Random(1, 1));
  std::atomic<int> finished{0};
  std::atomic<bool> stop{false};
  {
    Side side0(0, algorithm, port0, finished);
    Side side1(1, algorithm, port1, finished);
    side0.set_remote_key(side1.target_key());
    side1.set_remote_key(side0.target_key());
    const QpAddress at0 = side0.engine().address_of(side0.qp(), Psn(0xFF'FFF0));
    const QpAddress at1 = side1.engine().address_of(side1.qp(), Psn(5));
    REQUIRE(side0.engine().connect({0}, side0.qp(), at1, at0.first_psn, 0xC123));
    REQUIRE(side1.engine().connect({0}, side1.qp(), at0, at1.first_psn, 0xC321));

    const TscClock clock = TscClock::calibrated();
    const auto run = [&](Side& side, Port& port) {
      realtime_loop(side.engine(), port, clock, stop, side);
    };
    std::thread thread0([&] { run(side0, port0); });
    std::thread thread1([&] { run(side1, port1); });
    while (finished.load(std::memory_order_acquire) != 2) std::this_thread::yield();
    stop.store(true, std::memory_order_release);
    thread0.join();
    thread1.join();

    for (Side* side : {&side0, &side1}) {
      CHECK(side->problem().empty());
      INFO(side->problem());
      CHECK(side->completed() == kMessages);
      CHECK(side->engine().check_conservation().empty());
      CHECK(side->engine().inflight_bytes() == 0);
    }
    check_memories(side0, side1);
    check_memories(side1, side0);
    std::uint64_t bytes = 0;
    for (const Message& m : side0.messages()) bytes += m.length;
    CHECK(side0.engine().counters().rx_data_bytes == bytes);
    CHECK(side1.engine().counters().rx_data_bytes == bytes);
    if (impairments.corrupt > 0) {
      CHECK(telemetry::malformed_total(side0.engine().counters()) +
                telemetry::malformed_total(side1.engine().counters()) >
            0);
    } else {
      CHECK(telemetry::malformed_total(side0.engine().counters()) == 0);
      CHECK(telemetry::malformed_total(side1.engine().counters()) == 0);
    }
    if (impairments.mark > 0 && algorithm == cc::AlgorithmId::dcqcn) {
      CHECK(side0.engine().counters().cnps_received > 0);
      CHECK(side1.engine().counters().cnps_received > 0);
    }
  }
  // Engines are gone; every packet is home.
  port0.take_back();
  port1.take_back();
  cable.drain();
  CHECK(cable.end(0).packets().in_use() == 0);
  CHECK(cable.end(1).packets().in_use() == 0);
}

TEST_CASE("one engine class, two threads, a real clock: fixed", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::fixed, {});
}

TEST_CASE("one engine class, two threads, a real clock: dcqcn with marks", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::dcqcn, {.mark = 0.02});
}

TEST_CASE("one engine class, two threads, a real clock: a bad cable", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::dcqcn,
                 {.drop = 0.002, .corrupt = 0.002, .duplicate = 0.005, .reorder = 0.002});
}

}  // namespace
}  // namespace paceline
