// Cost of one allocation of Cadence's receiving port, with every channel active: what the worker of
// a 400 Gb/s port spends between two packets when shares change. Only the poll that allocates is
// timed; the REQUESTs before it and the GRANTs after it are not.
//
//   settled  one channel in 64 has a new cap, the others what they had
//   shuffled every channel has a new cap: all limits, their order and most shares change
//   equal    nobody is limited: one level for all, and one channel in 64 has a new demand
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/cadence/receiver/receiver.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::cc {
namespace {

enum class Change { settled, shuffled, equal };

CadenceParams all_active(std::uint32_t channels) {
  std::vector<double> values;
  for (const ParamSpec& spec : cadence_param_specs()) {
    // The least grant below a 4,096-th part of the link, or all limits would be above the level.
    values.push_back(spec.name == "a_max"   ? channels
                     : spec.name == "r_min" ? 1e-5
                                            : spec.default_value);
  }
  return make_cadence_params(values, PortFacts{rate_from_gbps(400), 4096, 4170, 12'000});
}

class Peers {
 public:
  Peers(std::uint32_t count, Change change)
      : change_(change), params_(all_active(count)), receiver_(params_), peers_(count) {
    for (std::uint32_t id = 0; id < count; ++id) draw(id);
  }

  // One round: news from the peers, an allocation of which the time is returned, and its GRANTs
  // confirmed. Rounds are far enough apart for the budget of GRANTs.
  double round() {
    now_ += params_.control_ns * static_cast<std::int64_t>(peers_.size()) + 4 * params_.rtt_ns;
    for (std::uint32_t id = 0; id < peers_.size(); ++id) {
      if (change_ == Change::shuffled || random_.below(64) == 0) draw(id);
      arrive(id);
      request(id);
    }
    receiver_.poll(Nanos{now_}, {});  // the scan; may allocate, too
    request_one_more();
    now_ += params_.alloc_ns;
    const std::uint64_t before = receiver_.snapshot().allocations;
    const auto begin = std::chrono::steady_clock::now();
    receiver_.poll(Nanos{now_}, {});
    const auto end = std::chrono::steady_clock::now();
    allocations_ += receiver_.snapshot().allocations - before;
    deliver();
    return std::chrono::duration<double>(end - begin).count();
  }
  std::uint64_t allocations() const { return allocations_; }

 private:
  struct Peer {
    RequestMessage request{};
    ChannelCounters* counters = nullptr;
  };

  void draw(std::uint32_t id) {
    RequestMessage& m = peers_[id].request;
    m.demand_bytes = (4096ULL << random_.below(14)) + ++drawn_;  // never what it was
    if (change_ == Change::equal) {
      m.demand_bytes += 64ULL << 20;
      m.tx_cap_mbps = kCapUnlimited;
    } else {
      m.tx_cap_mbps = static_cast<std::uint32_t>(20ULL << random_.below(12));
      m.tx_cap_mbps += static_cast<std::uint32_t>(random_.below(m.tx_cap_mbps));
    }
  }
  void arrive(std::uint32_t id) {
    if (peers_[id].counters != nullptr) peers_[id].counters->rx_bytes += 4170;
  }
  void request(std::uint32_t id) {
    Peer& peer = peers_[id];
    RequestMessage& m = peer.request;
    m.channel = static_cast<std::uint16_t>(id);
    ++m.req_seq;
    m.sent_total = peer.counters == nullptr ? 0 : peer.counters->rx_bytes;
    m.timestamp_ns = static_cast<std::uint32_t>(now_);
    peer.counters = receiver_.on_request(Nanos{now_}, id, m);
  }
  // The poll that scanned may have allocated already: something new, so that the next one does.
  void request_one_more() {
    if (change_ == Change::shuffled) {
      for (std::uint32_t id = 0; id < peers_.size(); ++id) {
        draw(id);
        request(id);
      }
      return;
    }
    for (std::uint32_t id = 0; id < peers_.size(); id += 64) {
      draw(id);
      request(id);
    }
  }
  void deliver() {
    std::array<ReceiverOutput, 64> out;
    for (;;) {
      const std::size_t n = receiver_.poll(Nanos{now_}, out);
      for (std::size_t i = 0; i < n; ++i) {
        peers_[out[i].peer].request.grant_echo = out[i].grant.grant_seq;
      }
      if (n < out.size()) return;
    }
  }

  Change change_;
  CadenceParams params_;
  CadenceReceiver receiver_;
  std::vector<Peer> peers_;
  Random random_{1};
  std::int64_t now_ = 10'000'000;
  std::uint64_t allocations_ = 0;
  std::uint64_t drawn_ = 0;
};

void allocate(benchmark::State& state, Change change) {
  Peers peers(static_cast<std::uint32_t>(state.range(0)), change);
  for (int i = 0; i < 8; ++i) peers.round();
  const std::uint64_t before = peers.allocations();
  for (auto _ : state) state.SetIterationTime(peers.round());
  if (peers.allocations() - before != static_cast<std::uint64_t>(state.iterations())) {
    state.SkipWithError("a timed poll did not allocate exactly once");
  }
}

#define PACELINE_SIZES Arg(64)->Arg(512)->Arg(4096)->UseManualTime()->Unit(benchmark::kMicrosecond)
BENCHMARK_CAPTURE(allocate, settled, Change::settled)->PACELINE_SIZES;
BENCHMARK_CAPTURE(allocate, shuffled, Change::shuffled)->PACELINE_SIZES;
BENCHMARK_CAPTURE(allocate, equal, Change::equal)->PACELINE_SIZES;

}  // namespace
}  // namespace paceline::cc
