// Writes what passes a port into a pcapng file: what it received as inbound, what it was given to
// send and took as outbound. Frames are those of the device, but for what it fills short ones up
// with; without frame check sequence.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/port/pcapng_writer.h"
#include "dataplane/port/port.h"

namespace paceline {

struct PortCaptureConfig {
  std::string_view application;  // who writes the file
  std::string_view name;         // of the port
  std::string_view description;
  Rate rate{};
  // Of the capture's time 0, since 1970.
  Nanos epoch{0};
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of the file, statistics at its end not counted
  std::uint64_t most_packets = ~std::uint64_t{0};
};

class PortCapture {
 public:
  // `out` must outlive it.
  PortCapture(std::ostream& out, const PortCaptureConfig& config);

  void frame(Picos now, CaptureDirection direction, const Packet& packet);
  // The same of a frame that was put aside by frame_of().
  void frame(Picos now, CaptureDirection direction, std::span<const std::byte> bytes);
  // Writes the statistics. lost: what the device itself dropped, as it says.
  void finish(Picos end, std::uint64_t lost);

  std::uint64_t seen() const { return seen_; }
  std::uint64_t written() const { return written_; }
  bool full() const { return full_; }
  std::uint64_t bytes() const { return writer_.bytes(); }

 private:
  PcapngWriter writer_;
  Picos fraction_;  // of a second, of the epoch
  std::uint64_t most_bytes_;
  std::uint64_t most_packets_;
  std::uint64_t seen_ = 0;
  std::uint64_t written_ = 0;
  bool full_ = false;
  std::vector<std::byte> bytes_;
};

// The bytes of a packet on the wire, put into `out`: its ICRC is Packet::icrc, where it has one.
void frame_of(const Packet& packet, std::vector<std::byte>& out);

// The port behind it, captured: for whoever owns the engine on it. Changes nothing else.
class CapturedPort final : public Port {
 public:
  // Both outlive it.
  CapturedPort(Port& behind, PortCapture& capture) : behind_(behind), capture_(capture) {}

  // The time of what is received next; the caller's loop says so before it polls.
  void tell_time(Picos now) { now_ = now; }

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return behind_.rx_ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return behind_.packets(); }
  PortInfo info() const override { return behind_.info(); }
  void use_clock(const PollClock& clock) override { behind_.use_clock(clock); }

 private:
  Port& behind_;
  PortCapture& capture_;
  Picos now_{0};
  std::vector<std::vector<std::byte>> offered_;  // a packet is gone once it is taken
};

}  // namespace paceline
