// A cable between two engines in virtual time. Both ends share one pool, so a packet that is sent
// is moved, not copied, and at the end the pool must be full again. Each end may refuse packets
// although it said that it would take them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/qp/queue_pair.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/support/impair.h"
#include "tests/support/pinned_hashes.h"

namespace paceline::soak {

class CableEnd final : public Port {
 public:
  CableEnd(const PortInfo& info, Picos delay, PacketPool& pool, double refuse, Random random)
      : info_(info), delay_(delay), pool_(pool), refuse_(refuse), random_(random) {}
  ~CableEnd() override {
    while (!arriving_.empty()) pool_.free(arriving_.pop());
    while (!injected_.empty()) pool_.free(injected_.pop());
  }

  void join(CableEnd& peer) { peer_ = &peer; }
  void set_now(Picos now) { now_ = now; }
  // Every frame that leaves here is added to the trail, as one of side `side`.
  void record(test::FrameTrail& trail, unsigned side, bool print) {
    trail_ = &trail;
    side_ = side;
    print_ = print;
  }
  // A packet of the pool, out of nowhere: arrives here at once, behind what has arrived.
  void inject(Picos now, Packet* packet) {
    packet->time = now;
    packet->wire_bytes = info_.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
    injected_.push(packet);
  }

  std::size_t rx(std::span<Packet*> burst) override {
    std::size_t n = 0;
    while (n < burst.size() && !arriving_.empty() && arriving_.head->time <= now_) {
      burst[n++] = arriving_.pop();
    }
    while (n < burst.size() && !injected_.empty()) burst[n++] = injected_.pop();
    arrived_ += n;
    return n;
  }

  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    if (refuse_ > 0 && random_.uniform() < refuse_) return 0;
    std::size_t n = 0;
    while (n < burst.size() && tx_ready_at(traffic_class) <= now) {
      Packet* packet = burst[n++];
      packet->wire_bytes = info_.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
      busy_until_ =
          later(busy_until_, now) + serialization_time(packet->wire_bytes, info_.link_rate);
      packet->time = busy_until_ + delay_;
      if (trail_ != nullptr) show(*packet);
      peer_->arriving_.push(packet);
    }
    sent_ += n;
    return n;
  }

  Picos rx_ready_at() const override {
    if (!injected_.empty()) return injected_.head->time;
    return arriving_.empty() ? kNever : arriving_.head->time;
  }
  // Where it takes bursts, a burst of small packets may wait for the wire.
  Picos tx_ready_at(std::uint8_t) const override {
    const Picos queued = serialization_time((info_.tx_burst - 1U) * 84U, info_.link_rate);
    return busy_until_ < queued ? Picos{0} : busy_until_ - queued;
  }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t arrived() const { return arrived_; }

 private:
  void show(const Packet& packet) {
    const std::span<const std::byte> payload =
        packet.has_bytes() ? packet.payload_view() : std::span<const std::byte>{};
    trail_->add(packet.time,
                {side_, packet.traffic_class, packet.wire_bytes, packet.payload_bytes, packet.icrc},
                packet.header_view(), payload);
    if (!print_) return;
    fmt::print("{:>14} ps  from {}  {:>4} B  class {}  ", packet.time.count, side_,
               packet.wire_bytes, packet.traffic_class);
    for (const std::byte b : packet.header_view()) fmt::print("{:02x}", static_cast<unsigned>(b));
    fmt::print("  icrc {:08x}\n", packet.icrc);
  }

  PortInfo info_;
  Picos delay_;
  PacketPool& pool_;
  double refuse_;
  Random random_;
  CableEnd* peer_ = nullptr;
  Picos now_{0};
  Picos busy_until_{0};
  transport::PacketFifo arriving_;
  transport::PacketFifo injected_;
  std::uint64_t sent_ = 0;
  std::uint64_t arrived_ = 0;
  test::FrameTrail* trail_ = nullptr;
  unsigned side_ = 0;
  bool print_ = false;
};

// Is told what happens to the packets of a queue pair.
class WeatherListener {
 public:
  WeatherListener() = default;
  WeatherListener(const WeatherListener&) = delete;
  WeatherListener& operator=(const WeatherListener&) = delete;
  virtual ~WeatherListener() = default;
  // A packet for `qp_number` did not just pass.
  virtual void on_weather(std::uint32_t qp_number, Psn psn, const ImpairmentVerdict& verdict) = 0;
};

// Loses, repeats, holds back and damages, and says so: what UC and UD may lose and repeat follows
// from what happened to them here.
class BadWeather final : public ImpairedPort {
 public:
  using ImpairedPort::ImpairedPort;
  void set_listener(WeatherListener& listener) { listener_ = &listener; }

 protected:
  ImpairmentVerdict judge(const Packet& packet) override {
    const ImpairmentVerdict verdict = ImpairedPort::judge(packet);
    if (verdict.drop || verdict.corrupt || verdict.duplicate || verdict.hold != 0) {
      wire::ParsedPacket parsed;
      if (listener_ != nullptr && wire::parse_headers(packet.header_view(), packet.payload_bytes,
                                                      parsed) == wire::ParseError::ok) {
        listener_->on_weather(parsed.dest_qpn, parsed.psn, verdict);
      }
    }
    return verdict;
  }

 private:
  WeatherListener* listener_ = nullptr;
};

}  // namespace paceline::soak
