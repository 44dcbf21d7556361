// The reader's side of a capture ring (capture_ring.h), in another process than the writer. The
// ring's fields are copied once and checked; a ring that makes no sense ends the reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/port/capture/capture_ring.h"
#include "dataplane/port/capture/pcapng_writer.h"

namespace paceline {

class CaptureRingReader {
 public:
  // Both arguments must outlive this. Returns what is wrong, or an empty text.
  std::string open(std::span<const std::byte> ring, CaptureReaderPage& page);

  // The next frame, valid until the next call. False: there is none, or error() is set. Its time
  // counts from epoch_unix_ns(). If the port left out the ICRC, it is filled in; if the fabric
  // damaged the packet, its last bit is flipped.
  bool next(CapturedFrame& frame);
  const std::string& error() const { return error_; }

  std::int64_t epoch_unix_ns() const { return epoch_unix_ns_; }
  Picos begin() const { return begin_; }
  Rate rate() const { return rate_; }
  std::uint32_t snap() const { return snap_; }
  // So far, from the writer's count.
  std::uint64_t frames() const;
  std::uint64_t missed() const;
  // The place in the ring up to which it is written, and read.
  std::uint64_t written() const;
  std::uint64_t read() const { return read_; }

 private:
  void copy(std::uint64_t at, void* to, std::size_t bytes) const;
  bool fail(const char* what);
  void finish_bytes(const CaptureRecord& record);

  const CaptureRingHeader* header_ = nullptr;
  const std::byte* records_ = nullptr;
  CaptureReaderPage* page_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint32_t snap_ = 0;
  Rate rate_{};
  std::int64_t epoch_unix_ns_ = 0;
  Picos begin_{0};
  std::uint64_t read_ = 0;
  std::vector<std::byte> bytes_;
  std::string comment_;
  std::string error_;
};

}  // namespace paceline
