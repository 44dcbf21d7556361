// One end of a conversation in real time whose every byte is checked: sends WRITEs and SENDs of
// many sizes, with and without immediate, READs as many from the other end, receives what the other
// end sends, and says what is wrong. Both ends are this class; what one sends the other can work
// out.
//
// Bounded by counts of messages and bytes; how long it takes is nobody's business but ctest's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/engine.h"
#include "tests/support/worker.h"

namespace paceline::test {

struct Message {
  transport::WorkOpcode opcode;
  std::uint64_t length;
  std::uint64_t offset;
};

// Every size with every opcode, each to a place of its own with a gap behind it.
std::vector<Message> all_messages();

struct SideConfig {
  unsigned index = 0;  // 0 or 1
  cc::AlgorithmId algorithm = cc::AlgorithmId::fixed;
  wire::MacAddress mac{};
  bool ipv6 = false;
  transport::PeerPolicy peers = transport::PeerPolicy::roce;
};

// What the engine of such a side is told.
transport::EngineConfig engine_config(const SideConfig& side, const PortInfo& info);

// What the other end must know; the same in two processes, for both are built the same way.
struct SideFacts {
  transport::QpAddress address;
  std::uint32_t target_key = 0;
  std::uint32_t source_key = 0;
};

// Lives on its thread while the loop runs; looked at by others before and after.
class VerifiedSide final : public WorkerApp {
 public:
  // `finished` is counted up once, when all is sent and received or something is wrong.
  VerifiedSide(const SideConfig& config, Port& port, std::atomic<int>& finished);
  // One of several on `engine`, which must outlive it and is polled elsewhere.
  VerifiedSide(const SideConfig& config, transport::Engine& engine, std::atomic<int>& finished);

  transport::Engine& engine() { return engine_; }
  SideFacts facts();
  // What facts() of the other end will say, from its MAC address; for an end in another process.
  SideFacts expected_peer(wire::MacAddress mac);
  bool connect(const SideFacts& peer);

  bool step(Picos now) override;
  // Messages completed so far. Any thread.
  std::size_t progress() const { return progress_.load(std::memory_order_relaxed); }

  // Empty when every message went and came, and every byte is right: of the other end's SENDs and
  // WRITEs, of what was read, and of everything around them. Call it when both ends have finished.
  std::string verdict();
  // The same of the bytes alone: where other connections share the engine and its counters.
  std::string bytes_verdict();
  // Bytes of the other end's messages so far, READs included.
  std::uint64_t bytes_wanted() const;

 private:
  VerifiedSide(const SideConfig& config, std::unique_ptr<transport::Engine> own,
               transport::Engine* engine, std::atomic<int>& finished);
  bool done() const { return completed_ == messages_.size() && received_ == arrivals_.size(); }
  void fail(const std::string& what);
  bool post(Picos now);
  void take_completions();
  void take_received(const transport::Completion& completion);
  std::string compare(const std::vector<std::byte>& memory, bool of_reads) const;

  SideConfig config_;
  std::atomic<int>& finished_;
  std::vector<Message> messages_;
  std::vector<std::size_t> arrivals_;  // messages of the other end that use up a receive
  std::vector<std::byte> source_;
  std::vector<std::byte> target_;   // the other end writes here
  std::vector<std::byte> fetched_;  // what is read goes here
  std::vector<std::byte> theirs_;   // what the other end's source holds
  transport::CompletionQueue send_cq_;
  transport::CompletionQueue receive_cq_;
  transport::ReceiveQueue receives_;
  std::unique_ptr<transport::Engine> own_engine_;  // or none: it is shared
  transport::Engine& engine_;
  std::uint32_t qp_ = 0;
  std::uint32_t source_key_ = 0;
  std::uint32_t target_key_ = 0;
  std::uint32_t fetched_key_ = 0;
  SideFacts peer_;
  std::atomic<std::size_t> progress_{0};
  std::size_t next_ = 0;
  std::size_t completed_ = 0;
  std::size_t received_ = 0;
  bool counted_ = false;
  std::string problem_;
};

// One end of a conversation and the port it is on.
struct Speaker {
  VerifiedSide* side;
  Port* port;
  neighbour::ResolvingPort* resolver = nullptr;
};

// What a thread does around its work: calls it.
using Around = std::function<void(const std::function<void()>&)>;

// A worker and a thread for each, until all have finished.
void converse(
    std::span<const Speaker> speakers, const std::atomic<int>& finished,
    const Around& around = [](const std::function<void()>& work) { work(); },
    const WorkerSettings& settings = {});

}  // namespace paceline::test
