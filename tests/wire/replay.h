// One end of a captured conversation replaced by our own engine: frames go in, frames come out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/engine.h"
#include "tests/wire/conversation.h"

namespace paceline::test {

// Frames that a test puts in arrive at once; what the engine sends is kept as frames, ICRC and all.
class FramePort final : public Port {
 public:
  FramePort() : pool_(256, 4096) {}

  void arrive(const Frame& frame);
  std::vector<Frame> take_sent() { return std::exchange(sent_, {}); }

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return arriving_.empty() ? kNever : Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override;

 private:
  PacketPool pool_;
  std::deque<Packet*> arriving_;
  std::vector<Frame> sent_;
};

// Our end of a conversation: an engine with the address, and one queue pair connected to the other
// end as it was captured.
class ReplayEnd {
 public:
  // `own`, `peer`: addresses. PSNs: of the requests that come, and of those that go out.
  ReplayEnd(const wire::IpAddress& own, const wire::IpAddress& peer, std::uint32_t peer_qpn,
            Psn first_in, Psn first_out, transport::QpConfig qp = {});

  // The frame arrives, addressed to our queue pair, with remote keys in our numbers; then whatever
  // follows from it without anything else arriving, at once or `within` that much time.
  void feed(const CapturedPacket& packet, Picos within = Picos{0});
  // Goes on to the next thing that happens by itself; false when there is none.
  bool step();
  // Work was posted.
  void touch();

  // A region of the captured key, at the captured address.
  void add_region(std::uint32_t captured_key, std::uint64_t base, std::span<std::byte> memory);
  std::uint32_t key_of(std::uint32_t captured_key) const;
  // UD: for datagrams to the other end.
  std::uint32_t address_handle();

  // Frames sent since the last call, parsed; every ICRC is verified.
  std::vector<CapturedPacket> take_sent();
  std::vector<transport::Completion> completions(transport::CompletionQueue& queue);

  transport::Engine& engine() { return *engine_; }
  std::uint32_t qp() const { return qp_; }
  Picos now() const { return now_; }
  transport::CompletionQueue sends{4096};
  transport::CompletionQueue receipts{4096};
  transport::ReceiveQueue receives{4096};

 private:
  void poll();
  void bring_up_datagrams(const transport::QpConfig& qp, Psn first_out);

  struct Key {
    std::uint32_t captured;
    std::uint32_t ours;
  };

  FramePort port_;
  wire::IpAddress peer_;
  std::unique_ptr<transport::Engine> engine_;
  std::uint32_t qp_ = 0;
  Picos now_{0};
  std::vector<Key> keys_;
};

}  // namespace paceline::test
