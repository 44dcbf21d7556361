// A port that loses, repeats, delays, damages or marks what arrives, by a seeded generator: what a
// bad cable and a congested switch do, for tests and testbeds. It stands in front of another port
// and passes everything else through. Same seed, same packets: same impairments.
//
// Delay is counted in packets, not in time: a packet that is set aside comes out after `hold` later
// arrivals. If nothing arrives any more it stays aside, which to the protocol is a loss until a
// retransmission pushes it out; take_back() ends that.
//
// Same thread as the port behind it. Virtual time and real time alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline {

// Probabilities per arriving packet, each in [0, 1], drawn independently in the order of the
// fields.
struct Impairments {
  double drop = 0;
  double corrupt = 0;    // one bit, somewhere from the IP header to the ICRC
  double duplicate = 0;  // the copy follows at once
  double reorder = 0;    // set aside for 1 .. max_hold later arrivals
  double mark = 0;       // CE, where the packet is ECN-capable
  std::uint32_t max_hold = 8;
};

struct ImpairmentCounters {
  std::uint64_t passed = 0;  // handed to the caller, copies included
  std::uint64_t dropped = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t marked = 0;
};

// What is to happen to one packet.
struct ImpairmentVerdict {
  bool drop = false;
  bool corrupt = false;
  bool duplicate = false;
  bool mark = false;
  std::uint32_t hold = 0;  // 0: not set aside
};

class ImpairedPort : public Port {
 public:
  // `behind` must outlive this. Throws std::invalid_argument for a probability outside [0, 1].
  ImpairedPort(Port& behind, const Impairments& impairments, Random random);
  ~ImpairedPort() override { take_back(); }

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    return behind_.tx(now, traffic_class, burst);
  }
  Picos rx_ready_at() const override {
    return ready_head_ != nullptr ? Picos{0} : behind_.rx_ready_at();
  }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return behind_.packets(); }
  PortInfo info() const override { return behind_.info(); }
  void use_clock(const PollClock& clock) override { behind_.use_clock(clock); }

  const ImpairmentCounters& counters() const { return counters_; }
  void set(const Impairments& impairments);
  // Frees what is set aside, as if lost.
  void take_back();

 protected:
  // Tests script their own; the default draws.
  virtual ImpairmentVerdict judge(const Packet& packet);

 private:
  struct Held {
    Packet* packet;
    std::uint64_t release_at;  // arrival number
  };

  void handle(Packet* packet);
  void append(Packet* packet);
  void damage(Packet& packet);

  Port& behind_;
  Impairments impairments_;
  Random random_;
  ImpairmentCounters counters_;
  std::uint64_t arrivals_ = 0;
  std::vector<Held> held_;        // few; kept in the order of being set aside
  Packet* ready_head_ = nullptr;  // judged and waiting for a caller with room
  Packet* ready_tail_ = nullptr;
};

}  // namespace paceline
