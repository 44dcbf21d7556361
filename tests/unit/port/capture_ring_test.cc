// The ring that a capture comes through: every frame whole and in order, or counted; and whatever
// the other side says, nobody leaves his memory or waits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/port/capture/capture_ring_reader.h"
#include "dataplane/port/capture/capture_ring_writer.h"
#include "dataplane/port/capture/ring_captured_port.h"
#include "dataplane/port/packet_pool.h"

namespace paceline {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::byte kUntouched{0xA5};

// Both pieces of memory, the ring between zones that nobody may touch.
struct RingLab {
  explicit RingLab(std::uint32_t snap = kMostCaptureSnap, std::size_t records = kLeastCaptureBytes)
      : bytes(kCaptureRecordsAt + records),
        memory(new (std::align_val_t{4096}) std::byte[bytes + 2 * kGuard]) {
    std::fill_n(memory.get(), bytes + 2 * kGuard, kUntouched);
    std::fill_n(memory.get() + kGuard, bytes, std::byte{0});
    writer = std::make_unique<CaptureRingWriter>(
        ring(), page, CaptureRingWriter::Settings{snap, rate_from_gbps(10)});
    writer->begin(Picos{5'000'000}, 1'700'000'000'000'000'000);
  }
  std::span<std::byte> ring() { return {memory.get() + kGuard, bytes}; }
  CaptureRingHeader& header() { return *reinterpret_cast<CaptureRingHeader*>(ring().data()); }
  bool guarded() const {
    const auto untouched = [](std::byte b) { return b == kUntouched; };
    return std::all_of(memory.get(), memory.get() + kGuard, untouched) &&
           std::all_of(memory.get() + kGuard + bytes, memory.get() + bytes + 2 * kGuard, untouched);
  }

  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{4096}); }
  };
  std::size_t bytes;
  std::unique_ptr<std::byte[], Free> memory;
  CaptureReaderPage page;
  std::unique_ptr<CaptureRingWriter> writer;
};

// A frame of so many bytes that follow from the seed; no RoCE, so that there is no ICRC.
class Frames {
 public:
  Packet& make(std::uint64_t seed, std::size_t size) {
    Random random(seed, size);
    packet_.header_bytes = static_cast<std::uint16_t>(std::min<std::size_t>(size, 60));
    packet_.payload_bytes = static_cast<std::uint16_t>(size - packet_.header_bytes);
    packet_.payload_kind = packet_.payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
    packet_.payload = payload_.data();
    const auto next = [&] { return static_cast<std::byte>(random.next() >> 56); };
    std::generate_n(packet_.header.begin(), packet_.header_bytes, next);
    std::generate_n(payload_.begin(), packet_.payload_bytes, next);
    return packet_;
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(packet_.header.begin(),
                               packet_.header.begin() + packet_.header_bytes);
    all.insert(all.end(), payload_.begin(), payload_.begin() + packet_.payload_bytes);
    return all;
  }

 private:
  Packet packet_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(9000);
};

std::vector<std::byte> copied(const CapturedFrame& frame) {
  return {frame.bytes.begin(), frame.bytes.end()};
}

TEST_CASE("capture ring: each frame arrives whole and in order, or is counted", "[capture_ring]") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  RingLab lab;
  CaptureRingReader reader;
  REQUIRE(reader.open(lab.ring(), lab.page) == "");
  CHECK(reader.rate().bps == rate_from_gbps(10).bps);
  CHECK(reader.begin() == Picos{5'000'000});
  CHECK(reader.epoch_unix_ns() == 1'700'000'000'000'000'000 - 5'000);
  Random random(seed, 0);
  Frames frames;
  struct Sent {
    std::uint64_t number;
    std::vector<std::byte> bytes;
    CaptureDirection direction;
  };
  std::deque<Sent> sent;
  std::uint64_t missed = 0;
  std::uint64_t seen = 0;
  // Some 20 MB through 64 KiB; the reader is late at times.
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const Packet& packet = frames.make(seed + i, 14 + random.below(4200));
    const auto direction =
        random.below(2) == 0 ? CaptureDirection::inbound : CaptureDirection::outbound;
    const std::uint64_t before = lab.writer->staged().missed;
    lab.writer->stage(Picos{static_cast<std::int64_t>(i) * 1000}, direction, packet);
    if (lab.writer->staged().missed == before) {
      sent.push_back({i, frames.bytes(), direction});
    } else {
      ++missed;
    }
    lab.writer->publish();
    if (random.below(8) != 0) continue;
    CapturedFrame frame;
    for (std::uint64_t k = random.below(20); k != 0 && reader.next(frame); --k) {
      REQUIRE(copied(frame) == sent.front().bytes);
      REQUIRE(frame.original_bytes == frame.bytes.size());
      REQUIRE(frame.direction == sent.front().direction);
      REQUIRE(frame.at == Picos{static_cast<std::int64_t>(sent.front().number) * 1000});
      REQUIRE(frame.comment.empty());
      sent.pop_front();
      ++seen;
    }
  }
  CapturedFrame frame;
  while (reader.next(frame)) {
    REQUIRE(copied(frame) == sent.front().bytes);
    sent.pop_front();
    ++seen;
  }
  CHECK(reader.error() == "");
  CHECK(sent.empty());
  CHECK(missed > 100);
  CHECK(seen > 1000);
  CHECK(reader.frames() == 10'000);
  CHECK(reader.missed() == missed);
  CHECK(seen + missed == 10'000);
  CHECK(lab.guarded());
}

TEST_CASE("capture ring: nobody reads, and what is full stays as it is", "[capture_ring]") {
  RingLab lab;
  Frames frames;
  std::size_t held = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    lab.writer->stage(Picos{0}, CaptureDirection::inbound, frames.make(i, 1000));
    lab.writer->publish();
    if (lab.writer->missed() == 0) ++held;
  }
  CHECK(held == kLeastCaptureBytes / capture_record_bytes(1000));
  CHECK(lab.writer->frames() == 1000);
  CHECK(lab.writer->missed() == 1000 - held);
  // Somebody reads at last: the oldest are all there, and there is room again.
  CaptureRingReader reader;
  REQUIRE(reader.open(lab.ring(), lab.page) == "");
  CapturedFrame frame;
  for (std::uint64_t i = 0; i < held; ++i) {
    REQUIRE(reader.next(frame));
    frames.make(i, 1000);
    REQUIRE(copied(frame) == frames.bytes());
  }
  CHECK_FALSE(reader.next(frame));
  lab.writer->stage(Picos{7}, CaptureDirection::inbound, frames.make(7, 1000));
  lab.writer->publish();
  REQUIRE(reader.next(frame));
  CHECK(frame.at == Picos{7});
}

TEST_CASE("capture ring: a reader that lies harms itself alone", "[capture_ring]") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  RingLab lab;
  Random random(seed, 9);
  Frames frames;
  for (std::uint64_t i = 0; i < 4'000; ++i) {
    // Anything: at random, ahead, far behind, backwards, and sometimes the truth.
    const std::uint64_t end = lab.writer->staged().end;
    const std::uint64_t lies[] = {random.next(),
                                  end + random.below(1 << 20),
                                  end - random.below(1 << 20),
                                  0,
                                  ~std::uint64_t{0},
                                  end};
    lab.page.read.store(lies[random.below(6)], std::memory_order_relaxed);
    lab.writer->stage(Picos{0}, CaptureDirection::outbound,
                      frames.make(i, 14 + random.below(8000)));
    lab.writer->publish();
    const auto& mark = lab.writer->staged();
    REQUIRE(mark.frames == i + 1);
    REQUIRE(mark.missed <= mark.frames);
    REQUIRE(mark.end % kCaptureRecordBytes == 0);
  }
  CHECK(lab.writer->missed() > 0);
  CHECK(lab.writer->missed() < 4'000);
  CHECK(lab.guarded());
}

TEST_CASE("capture ring: what the writer goes by is its own", "[capture_ring]") {
  RingLab lab;
  Frames frames;
  // The reader of a ring that is not sealed writes all over it.
  for (std::uint64_t i = 0; i < 500; ++i) {
    lab.header().written.store(~std::uint64_t{i}, std::memory_order_relaxed);
    lab.header().bytes = i * 777;
    lab.header().snap = static_cast<std::uint32_t>(i * 1000);
    lab.page.read.store(lab.writer->staged().end, std::memory_order_relaxed);
    lab.writer->stage(Picos{0}, CaptureDirection::inbound, frames.make(i, 3000));
    lab.writer->publish();
  }
  CHECK(lab.writer->missed() == 0);
  CHECK(lab.guarded());
}

TEST_CASE("capture ring: one that makes no sense is refused", "[capture_ring]") {
  Frames frames;
  const auto opened = [](RingLab& lab) {
    CaptureRingReader reader;
    return reader.open(lab.ring(), lab.page);
  };
  {
    RingLab lab;
    CaptureRingReader reader;
    CHECK(reader.open(lab.ring().first(5000), lab.page) == "too short for a capture ring");
    lab.header().bytes *= 2;
    CHECK(opened(lab) == "its size makes no sense");
    lab.header().bytes = kLeastCaptureBytes - 32;
    CHECK(opened(lab) == "its size makes no sense");
    lab.header().version = 9;
    CHECK(opened(lab) == "a capture ring of version 9; known is 1");
    lab.header().magic = 1;
    CHECK(opened(lab) == "not a capture ring");
  }
  // A record, or how far they go, changed at random: an end with a reason, or a frame within
  // bounds.
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    RingLab lab(2000);
    for (std::uint64_t i = 0; i < 5; ++i) {
      lab.writer->stage(Picos{1}, CaptureDirection::inbound, frames.make(i, 100 + 700 * i));
      lab.writer->publish();
    }
    Random random(seed, 1);
    CaptureRingReader reader;
    REQUIRE(reader.open(lab.ring(), lab.page) == "");
    if (random.below(4) == 0) {
      lab.header().written.store(random.next() >> random.below(64), std::memory_order_relaxed);
    } else {
      lab.ring()[kCaptureRecordsAt + random.below(32)] =
          static_cast<std::byte>(random.next() >> 56);
    }
    CapturedFrame frame;
    int read = 0;
    while (reader.next(frame)) {
      REQUIRE(frame.bytes.size() <= 2000);
      REQUIRE(++read <= 5'000);
    }
  }
}

TEST_CASE("capture ring: frames are cut to what is wanted", "[capture_ring]") {
  RingLab lab(128);
  Frames frames;
  lab.writer->stage(Picos{0}, CaptureDirection::inbound, frames.make(1, 1500));
  const std::vector<std::byte> whole = frames.bytes();
  lab.writer->stage(Picos{0}, CaptureDirection::inbound, frames.make(2, 100));
  lab.writer->publish();
  CHECK(lab.writer->staged().end == capture_record_bytes(128) + capture_record_bytes(100));
  CaptureRingReader reader;
  REQUIRE(reader.open(lab.ring(), lab.page) == "");
  CHECK(reader.snap() == 128);
  CapturedFrame frame;
  REQUIRE(reader.next(frame));
  CHECK(frame.original_bytes == 1500);
  CHECK(copied(frame) == std::vector<std::byte>(whole.begin(), whole.begin() + 128));
  REQUIRE(reader.next(frame));
  CHECK(frame.bytes.size() == 100);
}

TEST_CASE("capture ring: what was dropped says why", "[capture_ring]") {
  RingLab lab;
  lab.writer->set_forward(CaptureDirection::inbound);
  Frames frames;
  CaptureRingReader reader;
  REQUIRE(reader.open(lab.ring(), lab.page) == "");
  CapturedFrame frame;
  const auto shown = [&](Fate fate, const char* reason, bool forward, std::uint8_t flags = 0) {
    Packet& packet = frames.make(1, 200);
    packet.flags = flags;
    lab.writer->show(Picos{1}, forward, packet);
    CHECK_FALSE(reader.next(frame));  // its fate is not known yet
    lab.writer->settle(fate, reason);
    REQUIRE(reader.next(frame));
    return std::string(frame.comment);
  };
  CHECK(shown(Fate::delivered, "", true) == "");
  CHECK(frame.direction == CaptureDirection::inbound);
  CHECK(shown(Fate::lost, "loss", false) == "lost on this link: loss");
  CHECK(frame.direction == CaptureDirection::outbound);
  CHECK(shown(Fate::never_sent, "no route", true) == "dropped in front of this link: no route");
  CHECK(shown(Fate::refused, "loss", true, packet_flag::corrupt) ==
        "bit error on the way; dropped at the end of this link: loss");
  CHECK(frame.crc_error);
  auto turned = frames.bytes();
  turned.back() ^= std::byte{1};
  CHECK(copied(frame) == turned);
  // More words than there is room for, one too long.
  std::vector<std::string> words;
  for (int i = 0; i < 40; ++i) words.push_back("reason " + std::to_string(i));
  words[5] = std::string(100, 'x');
  for (int i = 0; i < 40; ++i) {
    const std::string comment = shown(Fate::lost, words[static_cast<std::size_t>(i)].c_str(), true);
    const std::string text = i == 5   ? std::string(kCaptureReasonBytes - 1, 'x')
                             : i < 29 ? words[static_cast<std::size_t>(i)]
                                      : "";  // two were there before
    CHECK(comment == "lost on this link: " + text);
  }
  CHECK(lab.guarded());
}

// Takes so many of what is offered.
class ChoosyPort final : public Port {
 public:
  std::size_t rx(std::span<Packet*> burst) override {
    std::size_t n = 0;
    for (; n < burst.size() && !waiting.empty(); ++n) {
      burst[n] = waiting.front();
      waiting.pop_front();
    }
    return n;
  }
  std::size_t tx(Picos, std::uint8_t, std::span<Packet* const> burst) override {
    ++calls;
    const std::size_t n = std::min(burst.size(), takes);
    takes -= n;
    // Taken is gone.
    for (Packet* packet : burst.first(n)) {
      packet->header.fill(std::byte{0xEE});
      pool.free(packet);
    }
    return n;
  }
  Picos rx_ready_at() const override { return kNever; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool; }
  PortInfo info() const override { return {}; }

  PacketPool pool{512, 64};
  std::deque<Packet*> waiting;
  std::size_t takes = 0;
  int calls = 0;
};

TEST_CASE("capture ring: of what is offered to a port, what it takes", "[capture_ring]") {
  RingLab lab(kMostCaptureSnap, 256U << 10U);
  CaptureRingReader reader;
  REQUIRE(reader.open(lab.ring(), lab.page) == "");
  ChoosyPort port;
  RingCapturedPort captured(port, *lab.writer);
  std::uint8_t number = 0;
  const auto packet = [&] {
    Packet* const p = port.pool.alloc();
    p->header_bytes = 60;
    p->header.fill(std::byte{0});
    p->header[20] = static_cast<std::byte>(number++);
    return p;
  };
  std::vector<Packet*> burst;
  for (int i = 0; i < 200; ++i) burst.push_back(packet());
  std::size_t sent = 0;
  for (const std::size_t takes : {0U, 1U, 63U, 64U, 65U, 7U}) {
    CAPTURE(takes);
    port.takes = takes;
    const auto rest = std::span<Packet* const>(burst).subspan(sent);
    REQUIRE(captured.tx(Picos{9}, 3, rest) == std::min(takes, rest.size()));
    CapturedFrame frame;
    for (std::size_t i = 0; i < takes; ++i) {
      REQUIRE(reader.next(frame));
      CHECK(frame.direction == CaptureDirection::outbound);
      CHECK(frame.at == Picos{9});
      CHECK(std::to_integer<std::size_t>(frame.bytes[20]) == (sent + i) % 256);
    }
    CHECK_FALSE(reader.next(frame));
    sent += takes;
  }
  CHECK(sent == 200);
  CHECK(lab.writer->frames() == 200);
  // And what comes in.
  for (int i = 0; i < 3; ++i) port.waiting.push_back(packet());
  captured.tell_time(Picos{11});
  std::vector<Packet*> in(8);
  REQUIRE(captured.rx(in) == 3);
  CapturedFrame frame;
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(reader.next(frame));
    CHECK(frame.direction == CaptureDirection::inbound);
    CHECK(frame.at == Picos{11});
    port.pool.free(in[i]);
  }
  CHECK(lab.writer->missed() == 0);
}

}  // namespace
}  // namespace paceline
