// Cost of one allocation of Cadence's receiving half: every listed channel has demand, one of them
// has just changed its mind, and the shares of all are worked out again. a_max is the number of
// channels, so that none waits in rotation.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "cc/cadence_receiver.h"

namespace paceline::cc {
namespace {

CadenceParams params_for(std::uint32_t active) {
  std::vector<double> values;
  for (const ParamSpec& spec : cadence_param_specs()) {
    values.push_back(spec.name == "a_max" ? active : spec.default_value);
  }
  return make_cadence_params(values, PortFacts{rate_from_gbps(400), 4096, 4178, 5000});
}

class Allocator {
 public:
  explicit Allocator(std::uint32_t channels) : params_(params_for(channels)), receiver_(params_) {
    requests_.resize(channels);
    for (std::uint32_t peer = 0; peer < channels; ++peer) request(peer);
    settle();
  }

  // One channel asks for another rate, after all other work is done: one of the next polls
  // allocates.
  void change_one() {
    const auto channels = static_cast<std::uint32_t>(requests_.size());
    for (std::uint32_t i = 0; i < 16; ++i) request(refreshed_++ % channels);  // or they fall silent
    settle();
    const std::uint32_t peer = changed_++ % channels;
    std::uint32_t& cap = requests_[peer].tx_cap_mbps;
    cap = cap == kCapUnlimited ? 10 : kCapUnlimited;
    request(peer);
  }
  std::size_t poll() {
    const std::size_t n = receiver_.poll(Nanos{now_}, out_);
    for (std::size_t i = 0; i < n; ++i) {
      if (out_[i].kind != ReceiverOutput::Kind::grant) continue;
      requests_[out_[i].peer].grant_echo = out_[i].grant.grant_seq;
    }
    return n;
  }
  void advance() { now_ += params_.rtt_ns / 4; }
  CadenceReceiver::Snapshot snapshot() const { return receiver_.snapshot(); }

 private:
  // Lets time go by until a poll finds nothing to do.
  void settle() {
    std::uint64_t before = 0;
    do {
      now_ += params_.rtt_ns;
      before = receiver_.snapshot().allocations;
      while (poll() != 0) {
      }
    } while (receiver_.snapshot().allocations != before);
  }
  void request(std::uint32_t peer) {
    RequestMessage& m = requests_[peer];
    m.channel = static_cast<std::uint16_t>(peer);
    ++m.req_seq;
    m.demand_bytes = std::uint64_t{1} << 40;
    m.timestamp_ns = static_cast<std::uint32_t>(now_);
    if (m.req_seq == 1) m.tx_cap_mbps = kCapUnlimited;
    receiver_.on_request(Nanos{now_}, peer, m);
  }

  CadenceParams params_;
  CadenceReceiver receiver_;
  std::vector<RequestMessage> requests_;
  std::array<ReceiverOutput, 16> out_{};
  std::int64_t now_ = 10'000'000;
  std::uint32_t refreshed_ = 0;
  std::uint32_t changed_ = 0;
};

void allocation(benchmark::State& state) {
  const auto channels = static_cast<std::uint32_t>(state.range(0));
  Allocator allocator(channels);
  for (auto _ : state) {
    allocator.change_one();
    const std::uint64_t before = allocator.snapshot().allocations;
    for (;;) {
      const auto begin = std::chrono::steady_clock::now();
      allocator.poll();
      const auto end = std::chrono::steady_clock::now();
      if (allocator.snapshot().allocations != before) {
        state.SetIterationTime(std::chrono::duration<double>(end - begin).count());
        break;
      }
      allocator.advance();  // not yet: GRANTs are spaced
    }
    if (allocator.snapshot().active != channels) {
      state.SkipWithError("a channel fell silent");
      break;
    }
  }
}

BENCHMARK(allocation)->Arg(64)->Arg(512)->Arg(4096)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace paceline::cc
