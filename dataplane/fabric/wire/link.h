// A directed link: the wire and the packets on it. One cache line, because every hop touches it;
// what only some links need is elsewhere: unusual rates in LinkRate, losses in Impairments, pauses
// in PauseTimes.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

struct alignas(64) Link {
  static constexpr std::uint32_t kToSwitch = 0x8000'0000;  // in `to`
  static constexpr std::uint32_t kNoEgress = 0xFFFF'FFFF;

  Packet* head = nullptr;  // in flight, by arrival; only the head is in the event wheel
  Packet* tail = nullptr;
  Picos head_time = kNever;       // arrival of the head: spares the load of a packet
  Picos busy{0};                  // the wire is free from here on
  Picos delay{0};                 // propagation
  std::uint32_t ps_per_byte = 0;  // 0: not a whole number, see LinkRate
  std::uint32_t id = 0;
  std::uint32_t to = 0;              // far end: host number, or switch number | kToSwitch
  std::uint32_t egress = kNoEgress;  // queues at the near end; none at a host
  std::uint16_t to_port = 0;         // ingress port number at a far switch
  std::uint8_t backlog = 0;          // bit per class with queued packets
  std::uint8_t paused = 0;           // bit per class paused by the far end, or without credits
  std::uint8_t down = 0;             // 0xFF: carries nothing, like a pause of every class
  std::uint8_t impaired = 0;         // kDraws and so on: departures take the slow path
  std::uint8_t notable = 0;          // kTapped and so on: arrivals take the slow path
  bool exact = false;                // each departure is an event

  static constexpr std::uint8_t kTapped = 1;  // captured: LinkTaps
  static constexpr std::uint8_t kLeaves = 2;  // ends in another part of the fabric: PartBoundary
  static constexpr std::uint8_t kEnters = 4;  // begins in another part
  static constexpr std::uint8_t kGrants = 8;  // what arrives is held against credits

  static constexpr std::uint8_t kDraws = 1;  // a packet may be lost, corrupted or duplicated
  // With either of these each departure is an event: it cannot wait for the arrival of the packet
  // before it, which may be the later one.
  static constexpr std::uint8_t kReorders = 2;  // a packet may be delayed
  static constexpr std::uint8_t kVaries = 4;    // the delay has changed
  // These use the slow path, and impair nothing.
  static constexpr std::uint8_t kCopies = 8;    // a departing packet is copied to another part
  static constexpr std::uint8_t kCredits = 16;  // it uses credits, and returns those it held
  static constexpr std::uint8_t kRecords = 32;  // it may ask for a record of telemetry
  static constexpr std::uint8_t kHarmless = kCopies | kCredits | kRecords;

  bool tapped() const { return (notable & kTapped) != 0; }
  bool leaves() const { return (notable & kLeaves) != 0; }
  std::uint8_t held() const { return static_cast<std::uint8_t>(paused | down); }
  std::uint8_t eligible() const { return static_cast<std::uint8_t>(backlog & ~held()); }
};
static_assert(sizeof(Link) == 64);

struct LinkRate {
  Rate rate{};
  std::uint64_t remainder = 0;  // of byte x 8e12 / bps, carried while packets follow back to back

  // Time to serialise when a byte is not a whole number of picoseconds: the error never exceeds one
  // picosecond over a back-to-back train. back_to_back: the packet starts where the last one ended.
  Picos serialize(std::uint32_t bytes, bool back_to_back) {
    if (!back_to_back) remainder = 0;
    const std::uint64_t work = std::uint64_t{bytes} * 8'000'000'000'000U + remainder;
    remainder = work % rate.bps;
    return {static_cast<std::int64_t>(work / rate.bps)};
  }
};

// Time of a byte where it is a whole number of picoseconds, else 0. (8e6 ps at 1 Mb/s fits.)
inline std::uint32_t picos_per_byte(Rate rate) {
  constexpr std::uint64_t kPicosBitsPerByte = 8'000'000'000'000;
  return kPicosBitsPerByte % rate.bps == 0
             ? static_cast<std::uint32_t>(kPicosBitsPerByte / rate.bps)
             : 0;
}

// Values of Packet::route beyond any host: what happens to the packet where the link ends.
inline constexpr std::uint32_t kRoutePause =
    0xFFFF'FFFF;  // a pause frame; entropy: 1 pause, 0 resume
inline constexpr std::uint32_t kRouteLost = 0xFFFF'FFFE;  // dropped there; ingress holds the reason
inline constexpr std::uint32_t kRouteNone = 0xFFFF'FFFD;  // unknown destination
inline constexpr std::uint32_t kRouteCredit = 0xFFFF'FFFC;  // a credit update; digest: the limit

}  // namespace paceline::fabric
