// The writer's side of a capture ring (capture_ring.h). Belongs to the thread that owns the port.
// The writer relies on its own copies only: it reads back nothing that it has written, and believes
// the reader only if the ring then holds no more than fits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/units.h"
#include "dataplane/port/capture/capture.h"
#include "dataplane/port/capture/capture_ring.h"
#include "dataplane/port/capture/pcapng_writer.h"

namespace paceline {

class CaptureRingWriter final : public LinkTap {
 public:
  struct Settings {
    std::uint32_t snap = kMostCaptureSnap;
    Rate rate{};
  };
  // `ring`: kCaptureRecordsAt bytes and a power of two of at least kLeastCaptureBytes, zeroed, in
  // pages that exist already. The ring and the page outlive this object, and both are aligned to
  // pages.
  CaptureRingWriter(std::span<std::byte> ring, const CaptureReaderPage& reader,
                    const Settings& settings);

  // Before the first frame: when that is, on its thread's clock and since 1970.
  void begin(Picos now, std::int64_t unix_ns);
  // Whether the first end of the shown link is the captured one.
  void set_forward(CaptureDirection direction) { forward_ = direction; }
  // Packet::icrc means nothing (PortInfo::computes_icrc): the reader fills it in.
  void set_without_icrc(bool without) { without_icrc_ = without; }

  // Bytes written so far, published or not.
  struct Mark {
    std::uint64_t end = 0;
    std::uint64_t frames = 0;
    std::uint64_t missed = 0;
  };
  // Writes a frame that readers do not see yet.
  void stage(Picos now, CaptureDirection direction, const Packet& packet);
  const Mark& staged() const { return staged_; }
  // Publishes the frames staged up to the mark, and discards the rest.
  void publish(const Mark& mark);
  void publish() { publish(staged_); }

  // A frame whose fate is not known yet: settle() publishes it.
  void show(Picos now, bool forward, const Packet& packet) override;
  void settle(Fate fate, const char* reason) override;

  std::uint64_t frames() const { return published_.frames; }
  std::uint64_t missed() const { return published_.missed; }
  std::uint64_t bytes() const { return size_; }
  std::uint32_t snap() const { return snap_; }

 private:
  void stage(Picos now, CaptureDirection direction, const Packet& packet, bool forward);
  bool has_room(std::uint64_t bytes);
  void put(std::uint64_t at, std::span<const std::byte> bytes);
  std::uint8_t number_of(const char* reason);

  CaptureRingHeader& header_;
  const CaptureReaderPage& reader_;
  std::byte* const records_;
  const std::uint64_t size_;
  const std::uint32_t snap_;
  bool without_icrc_ = false;
  CaptureDirection forward_ = CaptureDirection::outbound;
  std::uint64_t read_ = 0;  // the reader's index, when it was last asked and made sense
  Mark staged_;
  Mark published_;
  CaptureRecord shown_;  // the record of the last show(), at shown_at_
  std::uint64_t shown_at_ = 0;
  bool shown_written_ = false;
  std::array<const char*, kCaptureReasons> reasons_{};
  std::size_t reason_count_ = 0;
};

}  // namespace paceline
