// Writes what passes a port into a pcapng file: received frames as inbound, sent frames that the
// port took as outbound. Frames are as on the device, except for the padding of short ones; without
// frame check sequence.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/port/capture/pcapng_writer.h"
#include "dataplane/port/capture/watched_port.h"

namespace paceline {

struct PortCaptureConfig {
  std::string_view application;  // who writes the file
  std::string_view name;         // of the port
  std::string_view description;
  Rate rate{};
  // The capture's time 0, since 1970.
  Nanos epoch{0};
  Picos begin{0};                                // of the capture, on the same clock
  std::uint32_t snap = 0;                        // frames are cut to this length; 0: they are not
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of the file, statistics at its end not counted
  std::uint64_t most_packets = ~std::uint64_t{0};
};

class PortCapture {
 public:
  // `out` must outlive it.
  PortCapture(std::ostream& out, const PortCaptureConfig& config);

  void frame(Picos now, CaptureDirection direction, const Packet& packet);
  // The same for a frame that was put aside by frame_of().
  void frame(Picos now, CaptureDirection direction, std::span<const std::byte> bytes);
  // The same with all details.
  void frame(CapturedFrame frame);
  // Writes the statistics. lost: what the device itself reports as dropped.
  void finish(Picos end, std::uint64_t lost);

  std::uint64_t seen() const { return seen_; }
  std::uint64_t written() const { return written_; }
  bool full() const { return full_; }
  std::uint64_t bytes() const { return writer_.bytes(); }

 private:
  PcapngWriter writer_;
  Picos fraction_;  // of a second, of the epoch
  Picos begin_;
  std::uint64_t most_bytes_;
  std::uint64_t most_packets_;
  std::uint64_t seen_ = 0;
  std::uint64_t written_ = 0;
  bool full_ = false;
  std::vector<std::byte> bytes_;
};

// The bytes of a packet on the wire, put into `out`: its ICRC is Packet::icrc, where it has one.
void frame_of(const Packet& packet, std::vector<std::byte>& out);

// Captures the port behind it: for the owner of the engine on it. Changes nothing else.
class CapturedPort final : public WatchedPort {
 public:
  // Both outlive it.
  CapturedPort(Port& behind, PortCapture& capture) : WatchedPort(behind), capture_(capture) {}

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;

 private:
  PortCapture& capture_;
  std::vector<std::vector<std::byte>> offered_;  // a packet is gone once it is taken
};

}  // namespace paceline
