// Writes what a link shows (capture.h) into a pcapng file: real payload, real ICRC (packets that
// are not RoCEv2 have none), both directions on one interface that has the link's name. Outbound is
// from the first end of the link to the second. The comment of a packet says if it was dropped,
// damaged or copied on the way.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/port/capture/capture.h"
#include "dataplane/port/capture/pcapng_writer.h"

namespace paceline {

struct LinkCaptureConfig {
  std::string_view application;  // who writes the file
  std::string_view name;         // of the link
  std::string_view description;
  Rate rate{};
  // The capture's time 0, since 1970; 0: times are the run's own.
  Nanos epoch{0};
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of the file, statistics at its end not counted
  std::uint64_t most_packets = ~std::uint64_t{0};
};

class LinkCapture final : public LinkTap {
 public:
  // `out` must outlive it.
  LinkCapture(std::ostream& out, const LinkCaptureConfig& config);

  void show(Picos now, bool forward, const Packet& packet) override;
  void settle(Fate fate, const char* reason) override;
  // Writes the statistics: the capture is over at `end`.
  void finish(Picos end);

  std::uint64_t seen() const { return seen_; }
  std::uint64_t written() const { return written_; }
  std::uint64_t dropped() const { return dropped_; }  // seen and not delivered
  std::uint64_t bytes() const { return writer_.bytes(); }
  // When the first packet came that was not written because of a limit; kNever: all were.
  Picos full_at() const { return full_at_; }

 private:
  PcapngWriter writer_;
  Picos fraction_;  // of a second, of the epoch
  std::uint64_t most_bytes_;
  std::uint64_t most_packets_;
  std::uint64_t seen_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  Picos full_at_ = kNever;
  CapturedFrame shown_;           // its fate is not known yet
  std::uint8_t shown_flags_ = 0;  // of the packet
  std::vector<std::byte> bytes_;  // of it
  std::string comment_;
};

}  // namespace paceline
