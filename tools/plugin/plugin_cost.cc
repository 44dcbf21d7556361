// Time per event of a plug-in against the built-in dcqcn, and per round of a receiving half against
// the built-in homa. The times are printed, never judged, because they depend on the machine.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "cc/dispatch.h"
#include "cc/params.h"
#include "cc/port_parts.h"
#include "cc/registry.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "tools/cli/cli.h"
#include "tools/plugin/plugin_check.h"

namespace paceline::tools {
namespace {

constexpr int kTurns = 31;
constexpr int kEventsPerTurn = 100'000;
constexpr int kRoundsPerTurn = 10'000;
constexpr std::uint32_t kPacketBytes = 4178;

cc::ParamBlock block_of(const cc::AlgorithmInfo& info, cc::plugin::Guard& guard) {
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  facts.full_packet_bytes = kPacketBytes;
  facts.base_rtt_ns = 5000;
  const auto values = cc::resolve_params(info, "", {}, facts);
  cc::ParamBlock block =
      cc::make_param_block(info.id, std::get<std::vector<double>>(values), facts);
  cc::put_guard(block, guard);
  return block;
}

// One context with a CNP every 60 us and the ticks that it asks for between them. What it asks a
// receiver for is granted at once.
class Context {
 public:
  explicit Context(const cc::AlgorithmInfo& info) : id_(info.id), block_(block_of(info, guard_)) {
    cc::start_state(id_, state_.data(), block_, cc::Event{}, decision_);
  }

  double seconds_of_turn() {
    const double begin = thread_cpu_seconds();
    for (int i = 0; i < kEventsPerTurn; ++i) step();
    return thread_cpu_seconds() - begin;
  }

 private:
  void step() {
    cc::Event event;
    const bool cnp = cnp_at_ <= decision_.wake_at.count;
    event.signal = cnp ? cc::Signal::cnp : cc::Signal::tick;
    const std::int64_t at = cnp ? cnp_at_ : std::max(decision_.wake_at.count, now_ + 1);
    if (cnp) cnp_at_ += 60'000;
    event.sent_bytes =
        decision_.rate.bps / 8'000'000 * static_cast<std::uint64_t>(at - now_) / 1000;
    now_ = at;
    sent_ += event.sent_bytes;
    event.now = Nanos{now_};
    event.sent_total = sent_;
    event.backlog_bytes = 1'000'000;
    cc::dispatch(id_, state_.data(), block_, event, decision_);
    if (decision_.request) grant(event);
  }

  void grant(cc::Event event) {
    GrantMessage message;
    message.grant_seq = ++grant_seq_;
    message.limit_total = (sent_ + 1'000'000'000) & kTotalMask;
    event.signal = cc::Signal::grant;
    event.grant = &message;
    event.sent_bytes = 0;
    cc::dispatch(id_, state_.data(), block_, event, decision_);
  }

  cc::AlgorithmId id_;
  cc::plugin::Guard guard_;
  std::uint16_t grant_seq_ = 0;
  alignas(cc::kStateAlignment) std::array<std::byte, cc::kStateBytes> state_{};
  cc::ParamBlock block_{};
  cc::Decision decision_{};
  std::int64_t now_ = 0;
  std::int64_t cnp_at_ = 60'000;
  std::uint64_t sent_ = 0;
};

// A port with senders that always have more to send, each of which sends what it is granted.
class ReceivingPort {
 public:
  explicit ReceivingPort(const cc::AlgorithmInfo& info)
      : receiver_(cc::make_downlink_allocator(block_of(info, guard_))) {
    for (std::uint32_t s = 0; s < kCostSenders; ++s) {
      RequestMessage request;
      request.channel = static_cast<std::uint16_t>(s);
      request.req_seq = 1;
      request.demand_bytes = std::uint64_t{1} << 46;
      senders_[s].counters = receiver_->on_request(Nanos{0}, s, request);
    }
  }

  double seconds_of_turn() {
    const double begin = thread_cpu_seconds();
    for (int i = 0; i < kRoundsPerTurn; ++i) step();
    return thread_cpu_seconds() - begin;
  }

 private:
  struct Sender {
    cc::ChannelCounters* counters = nullptr;
    std::uint64_t ceiling = 0;
  };

  // The time of one packet: one sender that may send a packet sends it.
  void step() {
    now_ += 335;
    std::array<cc::ReceiverOutput, 16> out;
    std::size_t n = 0;
    do {
      n = receiver_->poll(Nanos{now_}, out);
      for (std::size_t i = 0; i < n; ++i) {
        senders_[out[i].peer].ceiling = out[i].grant.limit_total;
      }
    } while (n == out.size());
    for (std::uint32_t i = 0; i < kCostSenders; ++i) {
      Sender& s = senders_[turn_++ % kCostSenders];
      if (s.ceiling < s.counters->rx_bytes + kPacketBytes) continue;
      s.counters->rx_bytes += kPacketBytes;
      ++s.counters->rx_packets;
      return;
    }
  }

  cc::plugin::Guard guard_;
  std::unique_ptr<cc::DownlinkAllocator> receiver_;
  std::array<Sender, kCostSenders> senders_{};
  std::int64_t now_ = 0;
  std::uint32_t turn_ = 0;
};

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

template <class Bench>
EventCost cost_of(const cc::AlgorithmInfo& plugin, cc::AlgorithmId other, int per_turn) {
  Bench own(plugin);
  Bench built_in(*cc::find(other));
  std::vector<double> owns;
  std::vector<double> built_ins;
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    owns.push_back(own.seconds_of_turn());
    built_ins.push_back(built_in.seconds_of_turn());
    ratios.push_back(owns.back() / built_ins.back());
    PluginTimeLimit::passed();
  }
  const double nanos = 1e9 / per_turn;
  return {middle(owns) * nanos, middle(built_ins) * nanos, middle(ratios)};
}

}  // namespace

EventCost event_cost(const cc::AlgorithmInfo& plugin) {
  return cost_of<Context>(plugin, cc::AlgorithmId::dcqcn, kEventsPerTurn);
}

EventCost round_cost(const cc::AlgorithmInfo& plugin) {
  return cost_of<ReceivingPort>(plugin, cc::AlgorithmId::homa, kRoundsPerTurn);
}

}  // namespace paceline::tools
