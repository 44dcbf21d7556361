// A packet as bytes on the wire, for captures: in pieces, nothing is copied. And what a capture
// says beside the bytes: a comment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/port/capture/capture.h"
#include "dataplane/port/packet.h"
#include "dataplane/wire/host/pause_frame.h"

namespace paceline {

// Refers to the packet and to itself.
class ShownFrame {
 public:
  // Makes the frame of a link's pause (packet_flag::pfc). In the model it has no sender's address,
  // so each direction of a link has one address.
  ShownFrame(const Packet& packet, bool forward);
  ShownFrame(const ShownFrame&) = delete;
  ShownFrame& operator=(const ShownFrame&) = delete;

  // Headers, payload, ICRC (of a RoCEv2 packet: Packet::icrc); may be empty.
  std::span<const std::span<const std::byte>> pieces() const { return pieces_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::array<std::byte, wire::kPauseFrameBytes> pause_;
  std::array<std::byte, 4> trailer_;
  std::array<std::span<const std::byte>, 3> pieces_{};
  std::size_t bytes_ = 0;
};

// `flags` of the packet (packet_flag). Empty: it was delivered unchanged.
std::string capture_comment(std::uint8_t flags, Fate fate, std::string_view reason);

}  // namespace paceline
