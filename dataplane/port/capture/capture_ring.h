// A ring in shared memory through which the thread that owns a port shows its frames to another
// process, without waiting for it. This file describes the memory. It has two pieces, so that no
// side can write what the other relies on:
// - the ring, written only by the port's thread (its maker seals it): a header, then
//   records, each of a multiple of 32 bytes, that wrap around at the end;
// - the reader's page: how far it has read. The writer looks at it when the ring seems full and
//   believes only what can be.
// A frame that finds no room is counted and not shown; the writer never waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline {

inline constexpr std::uint64_t kCaptureRingMagic = 0x676E'6952'7061'4350;  // "PCapRing"
inline constexpr std::uint32_t kCaptureRingVersion = 1;
inline constexpr std::size_t kCaptureRecordsAt = 4096;
inline constexpr std::size_t kCaptureReasons = 31;
inline constexpr std::size_t kCaptureReasonBytes = 32;  // its terminating zero included

// Size of the records' part; a power of two.
inline constexpr std::uint64_t kLeastCaptureBytes = 64U << 10U;
inline constexpr std::uint64_t kMostCaptureBytes = 128U << 20U;
inline constexpr std::uint64_t kUsualCaptureBytes = 32U << 20U;
// Bytes kept of a frame: at least the headers; no frame is longer than the maximum.
inline constexpr std::uint32_t kLeastCaptureSnap = 64;
inline constexpr std::uint32_t kMostCaptureSnap = 65'535;

struct CaptureRingHeader {
  std::uint64_t magic = kCaptureRingMagic;
  std::uint32_t version = kCaptureRingVersion;
  std::uint32_t snap = kMostCaptureSnap;
  std::uint64_t bytes = 0;                            // of records
  std::uint64_t rate_bps = 0;                         // of the port
  std::int64_t epoch_unix_ns = 0;                     // of the time 0 of records, since 1970
  std::int64_t begin_picos = 0;                       // when the capture began
  alignas(64) std::atomic<std::uint64_t> written{0};  // bytes of records since the begin
  std::atomic<std::uint64_t> frames{0};               // that crossed, shown or not
  std::atomic<std::uint64_t> missed{0};               // frames among these that were not shown
  // Words for why a frame was dropped. A word that a record refers to does not change any more.
  alignas(64) std::array<std::array<char, kCaptureReasonBytes>, kCaptureReasons> reasons{};
};
static_assert(sizeof(CaptureRingHeader) <= kCaptureRecordsAt);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct CaptureReaderPage {
  std::atomic<std::uint64_t> read{0};  // bytes of records since the begin
};

// Facts about a frame in its record, beside packet_flag.
// The last four bytes are reserved for it.
inline constexpr std::uint8_t kCaptureWithoutIcrc = 1U << 7;

struct CaptureRecord {
  std::uint32_t bytes = 0;     // of the record, this head included
  std::uint32_t original = 0;  // of the frame
  std::uint32_t kept = 0;      // of it: they follow
  std::uint8_t direction = 0;  // CaptureDirection
  std::uint8_t fate = 0;       // Fate
  std::uint8_t flags = 0;
  std::uint8_t reason = 0;  // 0: none, else the number of a word, from 1
  std::int64_t at_picos = 0;
  std::uint64_t spare = 0;
};
inline constexpr std::size_t kCaptureRecordBytes = sizeof(CaptureRecord);
static_assert(kCaptureRecordBytes == 32);  // a record's head never wraps

constexpr std::uint64_t capture_record_bytes(std::uint32_t kept) {
  return (kCaptureRecordBytes + kept + kCaptureRecordBytes - 1) & ~(kCaptureRecordBytes - 1);
}

}  // namespace paceline
