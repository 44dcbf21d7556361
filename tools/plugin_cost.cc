// Time per event of a plug-in against the built-in dcqcn. Printed, never judged: the machine
// decides.

#include <algorithm>
#include <array>
#include <cstddef>
#include <variant>
#include <vector>

#include "cc/dispatch.h"
#include "cc/params.h"
#include "cc/registry.h"
#include "tools/cli.h"
#include "tools/plugin_check.h"

namespace paceline::tools {
namespace {

constexpr int kTurns = 31;
constexpr int kEventsPerTurn = 100'000;

// One context with a CNP every 60 us and the ticks it asks for between them.
class Context {
 public:
  explicit Context(const cc::AlgorithmInfo& info) : id_(info.id) {
    cc::PortFacts facts;
    facts.link_rate = rate_from_gbps(100);
    facts.full_packet_bytes = 4178;
    facts.base_rtt_ns = 5000;
    const auto values = cc::resolve_params(info, "", {}, facts);
    block_ = cc::make_param_block(id_, std::get<std::vector<double>>(values), facts);
    cc::put_guard(block_, guard_);
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
  }

  cc::AlgorithmId id_;
  cc::plugin::Guard guard_;
  alignas(cc::kStateAlignment) std::array<std::byte, cc::kStateBytes> state_{};
  cc::ParamBlock block_{};
  cc::Decision decision_{};
  std::int64_t now_ = 0;
  std::int64_t cnp_at_ = 60'000;
  std::uint64_t sent_ = 0;
};

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace

EventCost event_cost(const cc::AlgorithmInfo& plugin) {
  Context own(plugin);
  Context built_in(*cc::find(cc::AlgorithmId::dcqcn));
  std::vector<double> owns;
  std::vector<double> built_ins;
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    owns.push_back(own.seconds_of_turn());
    built_ins.push_back(built_in.seconds_of_turn());
    ratios.push_back(owns.back() / built_ins.back());
  }
  constexpr double kNanos = 1e9 / kEventsPerTurn;
  return {middle(owns) * kNanos, middle(built_ins) * kNanos, middle(ratios)};
}

}  // namespace paceline::tools
