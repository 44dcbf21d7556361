#include "tests/rt/support/verified_side.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "tests/support/roce_engine.h"

namespace paceline::test {

namespace {

using namespace transport;

constexpr std::uint64_t kBase = 0x4000'0000;  // of the source; target and fetched follow
constexpr std::array<std::uint64_t, 8> kSizes = {0, 1, 3, 4095, 4096, 4097, 64 * 1024, 1024 * 1024};
constexpr std::array<WorkOpcode, 5> kOpcodes = {WorkOpcode::write, WorkOpcode::send,
                                                WorkOpcode::read, WorkOpcode::write_imm,
                                                WorkOpcode::send_imm};

std::uint64_t memory_bytes(const std::vector<Message>& messages) {
  return messages.back().offset + messages.back().length + 64;
}

std::uint32_t immediate_of(std::uint64_t id) { return static_cast<std::uint32_t>(id * 0x9E37 + 1); }

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> memory(bytes);
  Random random(seed, 3);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t value = random.next();
    std::memcpy(memory.data() + at, &value, std::min<std::size_t>(8, bytes - at));
  }
  return memory;
}

wire::IpAddress address_of(unsigned index, bool ipv6) {
  if (!ipv6) return wire::IpAddress::v4(0x0A00'0001 + index);
  wire::IpAddress address;
  address.bytes[0] = std::byte{0xFD};
  address.bytes[15] = static_cast<std::byte>(1 + index);
  return address;
}

Psn first_psn(unsigned index) { return index == 0 ? Psn(0xFF'FFF0) : Psn(5); }

}  // namespace

EngineConfig engine_config(const SideConfig& side, const PortInfo& port) {
  EngineConfig config =
      roce_engine_config(address_of(side.index, side.ipv6), side.mac, port, side.algorithm);
  config.peers = side.peers;
  if (cc::find(side.algorithm)->proactive) {
    config.fallback =
        roce_engine_config(config.address, config.mac, port, cc::AlgorithmId::dcqcn).primary;
  }
  return config;
}

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

VerifiedSide::VerifiedSide(const SideConfig& config, Port& port, std::atomic<int>& finished)
    : VerifiedSide(config, std::make_unique<Engine>(engine_config(config, port.info()), port),
                   nullptr, finished) {}

VerifiedSide::VerifiedSide(const SideConfig& config, Engine& engine, std::atomic<int>& finished)
    : VerifiedSide(config, nullptr, &engine, finished) {}

VerifiedSide::VerifiedSide(const SideConfig& config, std::unique_ptr<Engine> own, Engine* engine,
                           std::atomic<int>& finished)
    : config_(config),
      finished_(finished),
      messages_(all_messages()),
      source_(pattern(memory_bytes(messages_), config.index)),
      target_(memory_bytes(messages_)),
      fetched_(memory_bytes(messages_)),
      theirs_(pattern(memory_bytes(messages_), 1 - config.index)),
      send_cq_(256),
      receive_cq_(256),
      receives_(64),
      own_engine_(std::move(own)),
      engine_(engine == nullptr ? *own_engine_ : *engine) {
  source_key_ = engine_.regions().add_plain(kBase, source_, access::remote_read);
  target_key_ =
      engine_.regions().add_plain(2 * kBase, target_, access::local_write | access::remote_write);
  fetched_key_ = engine_.regions().add_plain(3 * kBase, fetched_, access::local_write);
  QpConfig qp;
  qp.send_cq = &send_cq_;
  qp.receive_cq = &receive_cq_;
  qp.receive_queue = &receives_;
  qp.send_queue_depth = 8;  // the application has to wait for completions
  // A thread may lose its processor for long: not a loss.
  qp.retransmit_timeout = picos_from_micros(200'000);
  qp.retry_count = 255;
  qp_ = engine_.create_qp(qp);
  for (std::uint64_t id = 0; id < messages_.size(); ++id) {
    const Message& m = messages_[id];
    if (!takes_receive(m.opcode)) continue;
    arrivals_.push_back(id);
    receives_.post({id, 2 * kBase + m.offset, m.length, target_key_});
  }
}

SideFacts VerifiedSide::facts() {
  return {engine_.address_of(qp_, first_psn(config_.index)), target_key_, source_key_};
}

SideFacts VerifiedSide::expected_peer(wire::MacAddress mac) {
  SideFacts other = facts();
  other.address.ip = address_of(1 - config_.index, config_.ipv6);
  other.address.mac = mac;
  other.address.first_psn = first_psn(1 - config_.index);
  return other;
}

bool VerifiedSide::connect(const SideFacts& peer) {
  peer_ = peer;
  return engine_.connect({0}, qp_, peer.address, first_psn(config_.index),
                         config_.index == 0 ? 0xC123 : 0xC321);
}

bool VerifiedSide::step(Picos now) {
  take_completions();
  progress_.store(completed_, std::memory_order_relaxed);
  const bool posted = post(now);
  if (!counted_ && (done() || !problem_.empty())) {
    counted_ = true;
    finished_.fetch_add(1, std::memory_order_release);
  }
  return posted;
}

void VerifiedSide::fail(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

bool VerifiedSide::post(Picos now) {
  bool any = false;
  for (; next_ < messages_.size(); ++next_, any = true) {
    const Message& m = messages_[next_];
    WorkRequest request;
    request.wr_id = next_;
    request.opcode = m.opcode;
    request.length = m.length;
    request.immediate = immediate_of(next_);
    if (m.opcode == WorkOpcode::read) {
      request.local_address = 3 * kBase + m.offset;
      request.local_key = fetched_key_;
      request.remote_address = kBase + m.offset;
      request.remote_key = peer_.source_key;
    } else {
      request.local_address = kBase + m.offset;
      request.local_key = source_key_;
      request.remote_address = 2 * kBase + m.offset;
      request.remote_key = peer_.target_key;
    }
    const PostResult result = engine_.post_send(now, qp_, request);
    if (result == PostResult::queue_full) break;
    if (result != PostResult::ok) {
      fail("a post was refused");
      break;
    }
  }
  return any;
}

void VerifiedSide::take_completions() {
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

void VerifiedSide::take_received(const Completion& c) {
  if (c.status != CompletionStatus::success) return fail(to_string(c.status));
  if (received_ == arrivals_.size()) return fail("more receives than messages");
  const std::uint64_t id = arrivals_[received_++];
  const Message& m = messages_[id];
  if (c.wr_id != id) fail("receives are out of order");
  if (c.bytes != m.length) fail("a receive has a wrong length");
  if (c.has_immediate != has_immediate(m.opcode)) fail("immediate");
  if (c.has_immediate && c.immediate != immediate_of(id)) fail("a wrong immediate");
  // It is there when it is announced.
  if (std::memcmp(target_.data() + m.offset, theirs_.data() + m.offset, m.length) != 0) {
    fail("wrong bytes in message " + std::to_string(id));
  }
}

// What the messages put there lies in `memory`, and nothing else does.
std::string VerifiedSide::compare(const std::vector<std::byte>& memory, bool of_reads) const {
  std::vector<std::byte> expected(memory.size());
  for (const Message& m : messages_) {
    if ((m.opcode == WorkOpcode::read) != of_reads) continue;
    std::memcpy(expected.data() + m.offset, theirs_.data() + m.offset, m.length);
  }
  if (std::memcmp(memory.data(), expected.data(), memory.size()) == 0) return "";
  const auto [wrong, right] = std::mismatch(memory.begin(), memory.end(), expected.begin());
  return std::string(of_reads ? "memory read" : "memory written") + " differs at byte " +
         std::to_string(wrong - memory.begin());
}

std::string VerifiedSide::bytes_verdict() {
  if (!problem_.empty()) return problem_;
  if (completed_ != messages_.size()) return std::to_string(completed_) + " messages completed";
  if (received_ != arrivals_.size()) return std::to_string(received_) + " messages received";
  if (std::string text = compare(target_, false); !text.empty()) return text;
  return compare(fetched_, true);
}

std::string VerifiedSide::verdict() {
  if (std::string text = bytes_verdict(); !text.empty()) return text;
  if (engine_.view().inflight_bytes() != 0) return "bytes are still in flight";
  if (own_engine_ != nullptr && engine_.counters().rx_data_bytes != bytes_wanted()) {
    return "bytes were not counted";
  }
  return engine_.view().check_conservation();
}

void converse(std::span<const Speaker> speakers, const std::atomic<int>& finished,
              const Around& around, const WorkerSettings& settings) {
  const TscClock clock = TscClock::calibrated();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const Speaker& speaker : speakers) {
    threads.emplace_back([&, speaker] {
      Worker worker(settings);
      worker.add({&speaker.side->engine(), speaker.port, speaker.side, speaker.resolver});
      around([&] { worker.run(clock, stop); });
    });
  }
  const int all = static_cast<int>(speakers.size());
  while (finished.load(std::memory_order_acquire) != all) std::this_thread::yield();
  stop.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
}

std::uint64_t VerifiedSide::bytes_wanted() const {
  std::uint64_t bytes = 0;
  for (const Message& m : messages_) bytes += m.length;
  return bytes;
}

}  // namespace paceline::test
