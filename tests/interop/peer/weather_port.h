// A port that disturbs both directions: a seeded generator (tests/support/impair.h) loses, repeats
// or delays packets, and single packets can be damaged, counted and sent again on demand.
// It stands between an engine and a ResolvingPort, so that only RoCEv2 meets it.
//
// A direction's generator sees the packets of that direction only, in their order: same seed, same
// packets, same weather.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/port/port.h"
#include "tests/support/impair.h"

namespace paceline::interop {

enum class Way : std::uint8_t { in, out };

// A received or sent packet as bytes.
struct KeptPacket {
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
  std::uint16_t bth_offset = 0;
  std::uint32_t icrc = 0;
  Ecn ecn = Ecn::not_ect;
};

class WeatherPort final : public Port {
 public:
  // `behind` must outlive this.
  WeatherPort(Port& behind, std::uint64_t seed);

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return Picos{0}; }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return behind_.packets(); }
  PortInfo info() const override { return behind_.info(); }

  void set(Way way, const Impairments& impairments);
  // The next packets with this opcode get a wrong ICRC, or are lost.
  void spoil_next(Way way, std::uint8_t opcode, unsigned count) {
    spoil_[index(way)] = {opcode, count};
  }
  void lose_next(Way way, std::uint8_t opcode, unsigned count) {
    lose_[index(way)] = {opcode, count};
  }
  // The last packet with this opcode once more, past the weather. False when there was none.
  bool repeat(Way way, std::uint8_t opcode);
  // Sends what waits for the port behind, repeated packets among it. Before each poll of an engine.
  void poll(Picos now) { send(now); }
  // What came from the network, and what went there, repeated and spoiled ones included.
  std::uint64_t seen(Way way, std::uint8_t opcode) const { return seen_[index(way)][opcode]; }
  const std::array<std::uint64_t, 256>& seen(Way way) const { return seen_[index(way)]; }
  const ImpairmentCounters& counters(Way way) const {
    return way == Way::in ? in_.counters() : out_.counters();
  }

 private:
  // What the engine sent, as a port to receive from.
  class Outbox final : public Port {
   public:
    explicit Outbox(Port& behind) : behind_(behind) {}
    std::size_t rx(std::span<Packet*> burst) override;
    std::size_t tx(Picos, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
    Picos rx_ready_at() const override { return waiting_.empty() ? kNever : Picos{0}; }
    Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
    PacketPool& packets() override { return behind_.packets(); }
    PortInfo info() const override { return behind_.info(); }

   private:
    Port& behind_;
    std::vector<Packet*> waiting_;
  };
  // The network as it is: where packets are counted, kept, spoiled, lost by name and said again.
  class Inbox final : public Port {
   public:
    explicit Inbox(WeatherPort& owner) : owner_(owner) {}
    std::size_t rx(std::span<Packet*> burst) override;
    std::size_t tx(Picos, std::uint8_t, std::span<Packet* const>) override { return 0; }
    Picos rx_ready_at() const override { return Picos{0}; }
    Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
    PacketPool& packets() override { return owner_.packets(); }
    PortInfo info() const override { return owner_.info(); }

   private:
    WeatherPort& owner_;
  };
  struct Named {
    std::uint8_t opcode = 0;
    unsigned count = 0;
  };

  static std::size_t index(Way way) { return static_cast<std::size_t>(way); }
  // False when the packet is to be lost.
  bool pass(Way way, Packet& packet);
  Packet* again(const KeptPacket& kept);
  void send(Picos now);

  Port& behind_;
  Inbox inbox_;
  Outbox outbox_;
  ImpairedPort in_;
  ImpairedPort out_;
  std::vector<Packet*> to_send_;
  std::vector<Packet*> to_receive_;  // repeated
  std::array<Named, 2> spoil_;
  std::array<Named, 2> lose_;
  std::array<std::array<std::uint64_t, 256>, 2> seen_{};
  std::array<std::map<std::uint8_t, KeptPacket>, 2> kept_;
};

}  // namespace paceline::interop
