// A run of the soak: two hosts on a cable, all kinds of queue pairs between them, the traffic of
// one seed, and what must hold all along and at the end.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/soak/options.h"
#include "tests/soak/stage.h"

namespace paceline::soak {

inline constexpr std::uint32_t kMtu = 4096;  // of the engines; queue pairs draw theirs

// An algorithm with its defaults for a port of this rate.
transport::CcChoice choose_cc(cc::AlgorithmId id, Rate link_rate, std::uint32_t base_rtt_ns);

class TroubledPair;

class World final : public WeatherListener {
 public:
  World(const Options& options, std::uint64_t seed);
  ~World() override;

  // Sends options.packets packets, lets everything come to its end, and checks. Throws Broken.
  // `progress` is called now and then with the number of packets sent.
  Totals run(const std::function<void(std::uint64_t)>& progress);
  // Every frame of the run and, after it, every completion and counter: for who compares runs.
  const test::FrameTrail& trail() const { return trail_; }
  std::uint64_t outcome() const;
  // What this seed has drawn, in one line.
  const std::string& description() const { return description_; }

  void on_weather(std::uint32_t qp_number, Psn psn, const ImpairmentVerdict& verdict) override;

 private:
  struct Ends {
    Stream* sends = nullptr;     // the stream that this queue pair initiates
    Stream* receives = nullptr;  // and the one that comes in
  };

  void make_hosts();
  void make_reliable(unsigned count);
  void make_unreliable(transport::QpType type);
  void make_troubled(unsigned count);
  std::uint64_t take_memory(std::uint64_t bytes);
  Ends& ends(unsigned side, std::uint32_t qp_number);
  void join(std::unique_ptr<Stream> forth, std::unique_ptr<Stream> back, std::uint32_t a,
            std::uint32_t b);

  std::uint64_t packets() const;
  bool finished() const;
  void poll(unsigned side);
  void take_completions(unsigned side);
  void step();
  bool advance();
  void note(const transport::Completion& completion);
  void change();
  static void look_ahead(const transport::Engine& engine);
  void check_events(unsigned side);
  void check_engine(unsigned side);
  [[noreturn]] void fail_stuck() const;
  void check_end();

  Options options_;
  const Mode& mode_;
  std::uint64_t seed_;
  Random random_;
  Random changes_;
  test::FrameTrail trail_;
  test::RunHash completed_;
  std::string description_;
  std::unique_ptr<PacketPool> pool_;
  Stage stage_;
  std::vector<std::unique_ptr<transport::ReceiveQueue>> queues_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::vector<std::unique_ptr<TroubledPair>> troubled_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::array<std::vector<Ends>, 2> by_slot_;
  std::uint64_t memory_used_ = 0;
  Picos next_step_{0};
  Picos step_{0};
  std::uint64_t polls_ = 0;
  std::array<Picos, 2> polled_{Picos{-1}, Picos{-1}};  // when last
  unsigned weather_side_ = 0;                          // whose packets are being judged
  Picos last_completion_{0};
  std::vector<std::uint32_t> answers_;
  std::vector<transport::Completion> completions_;
};

}  // namespace paceline::soak
