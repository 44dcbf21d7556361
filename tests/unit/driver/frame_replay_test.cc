// Captures into a port, with a clock that does as it is told.
#include "dataplane/driver/ports/frame_replay.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "dataplane/port/capture/port_capture.h"
#include "tests/support/ring_port.h"
#include "tests/unit/driver/scripted_clock.h"

namespace paceline {
namespace {

using Frames = std::vector<std::string>;

std::string frame_text(std::size_t size, char first) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + static_cast<char>(i));
  return text;
}

// Each at its time, in nanoseconds.
std::string capture_text(const std::vector<std::pair<std::int64_t, std::string>>& frames) {
  std::ostringstream out;
  PcapngWriter writer(out, "test");
  writer.add_interface("if", "", 1);
  for (const auto& [at, text] : frames) {
    CapturedFrame frame;
    frame.at = picos_from_nanos(at);
    frame.bytes = std::as_bytes(std::span(text));
    writer.frame(frame);
  }
  return out.str();
}

// The far end of a cable writes down what comes, and when.
class Listener {
 public:
  explicit Listener(RingPort& port) : port_(port) {}
  void take(Picos now) {
    std::array<Packet*, 16> burst;
    for (std::size_t n = port_.rx(burst); n != 0; n = port_.rx(burst)) {
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<std::byte> bytes;
        frame_of(*burst[i], bytes);
        frames.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        times.push_back(now);
        port_.packets().free(burst[i]);
      }
    }
  }
  Frames frames;
  std::vector<Picos> times;

 private:
  RingPort& port_;
};

// Lets the far end listen whenever time is read.
class ListeningClock final : public WallClock {
 public:
  explicit ListeningClock(Listener* listener) : listener_(listener) {}
  Picos now() override {
    if (listener_ != nullptr) listener_->take(now_);
    return now_;
  }
  void wait(Picos until) override {
    if (listener_ != nullptr) listener_->take(now_);
    now_ = later(now_, until);
  }

 private:
  Listener* listener_;
  Picos now_{1'000};
};

TEST_CASE("replay: the frames arrive as they were, at the distances of the file", "[replay]") {
  const std::string text = capture_text({{1'000'000, frame_text(14, 'a')},
                                         {1'050'000, frame_text(200, 'b')},
                                         {1'050'000, frame_text(1500, 'c')},
                                         {1'040'000, frame_text(128, 'd')},
                                         {3'050'000, frame_text(129, 'e')}});
  for (const double speed : {1.0, 4.0, 0.0}) {
    INFO("speed " << speed);
    RingCable cable;
    Listener listener(cable.end(1));
    ListeningClock clock(&listener);
    FrameReplayOptions options;
    options.speed = speed;
    FrameReplay replay(cable.end(0), clock, options);
    std::istringstream in(text);
    CaptureReader reader(in);
    REQUIRE(replay.run(reader));
    clock.now();
    CHECK(listener.frames == Frames{frame_text(14, 'a'), frame_text(200, 'b'),
                                    frame_text(1500, 'c'), frame_text(128, 'd'),
                                    frame_text(129, 'e')});
    CHECK(replay.report().sent == 5);
    CHECK(replay.report().bytes == 14 + 200 + 1500 + 128 + 129);
    CHECK(replay.report().out_of_order == 1);
    const auto after = [&](std::size_t i) { return (listener.times[i] - Picos{1000}).count; };
    if (speed == 0) {
      CHECK(after(4) == 0);
    } else {
      CHECK(after(1) == static_cast<std::int64_t>(50'000'000 / speed));
      CHECK(after(4) == static_cast<std::int64_t>(2'050'000'000 / speed));
    }
    cable.drain();
    CHECK(cable.end(0).packets().in_use() == 0);
    CHECK(cable.end(1).packets().in_use() == 0);
  }
}

TEST_CASE("replay: a captured replay is the capture", "[replay]") {
  std::vector<std::pair<std::int64_t, std::string>> frames;
  for (unsigned i = 0; i < 700; ++i) {
    frames.emplace_back(i * 3'000, frame_text(20 + i * 5, static_cast<char>(i)));
  }
  RingCable cable;
  std::ostringstream out;
  PortCapture capture(out, {});
  CapturedPort near(cable.end(0), capture);
  Listener listener(cable.end(1));
  ListeningClock clock(&listener);
  FrameReplay replay(near, clock, {});
  std::istringstream in(capture_text(frames));
  CaptureReader reader(in);
  REQUIRE(replay.run(reader));
  capture.finish(clock.now(), 0);
  CHECK(listener.frames.size() == frames.size());
  std::istringstream again(out.str());
  CaptureReader second(again);
  FrameRead frame;
  std::size_t i = 0;
  for (; second.next(frame); ++i) {
    const std::string bytes(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
    REQUIRE(bytes == frames.at(i).second);
    CHECK(frame.at.count - frames[0].first == frames[i].first + 1);  // the clock began at 1 ns
  }
  CHECK(i == frames.size());
}

TEST_CASE("replay: frames that cannot be sent are refused, each with its number", "[replay]") {
  RingCable cable;
  ExactClock clock;
  const auto error_of = [&](const std::string& text) {
    FrameReplay replay(cable.end(0), clock, {});
    std::istringstream in(text);
    CaptureReader reader(in);
    CHECK_FALSE(replay.run(reader));
    return replay.error();
  };
  CHECK(error_of(capture_text({{0, frame_text(13, 'x')}})) ==
        "frame 1 has 13 bytes; allowed on this port are 14 to 4224");
  CHECK(error_of(capture_text({{0, frame_text(60, 'x')}, {0, frame_text(4225, 'x')}})) ==
        "frame 2 has 4225 bytes; allowed on this port are 14 to 4224");
  CHECK_THAT(error_of("nothing"), Catch::StartsWith("byte 0: not a capture file"));
}

TEST_CASE("replay: a port that takes nothing is given up", "[replay]") {
  RingCableConfig config;
  config.ring_packets = 8;
  RingCable cable(config);
  ListeningClock clock(nullptr);
  std::vector<std::pair<std::int64_t, std::string>> frames(100, {0, frame_text(60, 'x')});
  FrameReplay replay(cable.end(0), clock, {});
  std::istringstream in(capture_text(frames));
  CaptureReader reader(in);
  CHECK_FALSE(replay.run(reader));
  CHECK(replay.error() == "the port takes no frames: is a peer at the other end?");
  CHECK(replay.report().sent > 0);
  CHECK(replay.report().sent <= 8);
}

TEST_CASE("replay: no more than so many frames", "[replay]") {
  RingCable cable;
  Listener listener(cable.end(1));
  ListeningClock clock(&listener);
  FrameReplayOptions options;
  options.frames = 3;
  FrameReplay replay(cable.end(0), clock, options);
  std::vector<std::pair<std::int64_t, std::string>> frames(2, {0, frame_text(60, 'x')});
  for (int i = 0; i < 3; ++i) {
    std::istringstream in(capture_text(frames));
    CaptureReader reader(in);
    CHECK(replay.run(reader));
  }
  clock.now();
  CHECK(replay.done());
  CHECK(listener.frames.size() == 3);
}

}  // namespace
}  // namespace paceline
