// One end of a measured conversation: sends WRITEs or SENDs of one size as fast as they go, a
// window of messages at a time, or is the other end; or sends a SEND back for each that comes, and
// times the round trips. Nothing is verified here but that every work request succeeds: that every
// byte is right, tests/rt shows.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/engine.h"
#include "tests/support/worker.h"

namespace paceline::bench {

enum class Load : std::uint8_t { write, send, echo };

struct LoadConfig {
  unsigned index = 0;  // 0 answers, 1 asks
  Load load = Load::write;
  std::uint32_t size = 65536;  // bytes of a message
  std::uint32_t window = 16;   // messages under way on each queue pair
  std::uint32_t queue_pairs = 1;
  std::uint32_t working_set = 262144;  // bytes that messages are taken from and written to, in turn
  std::uint32_t ack_every = 16;
  Picos catch_up = picos_from_micros(200);  // time that a late pacer may make up for
  double rate_mbps = 0;                     // of each queue pair; 0: the link's
  Picos stagger{0};                         // queue pairs begin one after the other, over this time
  Picos warm_up = picos_from_micros(100'000);
  Picos duration = picos_from_micros(1'000'000);  // after that
};

// What was counted between the end of the warm-up and the end of the duration.
struct LoadResult {
  Picos elapsed{0};
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tx_packets = 0;  // with payload
  std::uint64_t retransmitted = 0;
  std::uint64_t turns = 0;
  std::string problem;
};

// Source port of the first queue pair; those of the others follow.
inline constexpr std::uint16_t kFirstSourcePort = 0xC000;

class LoadSide final : public WorkerApp {
 public:
  LoadSide(const LoadConfig& config, Port& port);

  transport::Engine& engine() { return engine_; }
  bool connect();
  bool step(Picos now) override;
  // Called once each on the polling thread: after the warm-up, and when the duration is over.
  std::function<void()> at_begin;
  std::function<void()> at_end;
  // Set when the duration is over, or something went wrong. Any thread.
  const std::atomic<bool>& finished() const { return finished_; }
  const LoadResult& result() const { return result_; }
  // Echo only, nanoseconds.
  const Histogram& round_trips() const { return round_trips_; }

 private:
  struct Channel {
    std::uint32_t qp = 0;
    std::uint32_t outstanding = 0;
    std::uint64_t echoes_due = 0;
    bool wants = false;       // is among wanting_
    std::vector<Picos> sent;  // by message number, modulo the window
    std::uint64_t posted = 0;
    std::uint64_t answered = 0;
  };
  void fail(const std::string& what);
  bool asks() const { return config_.index == 1; }
  bool post(Picos now, Channel& channel);
  void want(Channel& channel);
  void begin_channels(Picos now);
  void post_receive(std::uint64_t channel);
  bool take(Picos now);
  void measure(Picos now);

  LoadConfig config_;
  std::vector<std::byte> source_;
  std::vector<std::byte> target_;
  transport::CompletionQueue send_cq_;
  transport::CompletionQueue receive_cq_;
  std::vector<std::unique_ptr<transport::ReceiveQueue>> receives_;
  transport::Engine engine_;
  std::uint32_t source_key_ = 0;
  std::uint32_t target_key_ = 0;
  std::array<transport::Completion, 32> batch_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> wanting_;
  std::uint64_t place_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t turns_ = 0;
  std::uint32_t begun_ = 0;  // queue pairs, in order
  Picos first_step_{-1};
  Picos started_{-1};
  bool measuring_ = false;
  LoadResult begin_;
  LoadResult result_;
  Histogram round_trips_;
  std::atomic<bool> finished_{false};
};

}  // namespace paceline::bench
