#include "tools/workload/inference/prefill_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kPicosOfSecond = 1'000'000'000'000;
constexpr double kPicosOfTick = 1e5;

Picos arrival_of(const TraceRequest& request, const InferenceSettings& settings) {
  return Picos{static_cast<std::int64_t>(static_cast<double>(request.ticks) * kPicosOfTick /
                                         settings.time_scale)};
}

class PrefillQueues {
 public:
  PrefillQueues(const RequestTrace& trace, const InferenceSettings& settings)
      : trace_(trace), s_(settings), free_(settings.prefill_ranks) {}

  std::vector<PrefillTurn> plan() {
    const std::uint32_t count = requests_used(trace_, s_);
    std::vector<PrefillTurn> turns;
    turns.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const TraceRequest& request = trace_.requests[i];
      PrefillTurn& turn = turns.emplace_back();
      turn.arrival = arrival_of(request, s_);
      turn.prefill =
          static_cast<std::uint32_t>(std::min_element(free_.begin(), free_.end()) - free_.begin());
      turn.decode = s_.prefill_ranks + i % s_.decode_ranks;
      turn.begin = later(turn.arrival, free_[turn.prefill]);
      turn.computed = request.input;
      if (s_.reuse) reuse_blocks(request, turn);
      turn.end = turn.begin + prefill_time(turn.computed, s_);
      free_[turn.prefill] = turn.end;
      if (s_.reuse) keep_blocks(request, i, turn);
    }
    return turns;
  }

 private:
  // A rank that has a block from `since` on.
  struct Holder {
    std::uint32_t rank = 0;
    std::uint32_t request = 0;
    Picos since{0};
  };

  static const Holder* at_rank(const std::vector<Holder>& holders, std::uint32_t rank) {
    for (const Holder& holder : holders) {
      if (holder.rank == rank) return &holder;
    }
    return nullptr;
  }

  void reuse_blocks(const TraceRequest& request, PrefillTurn& turn) {
    std::map<std::uint32_t, BlockFetch> fetches;  // by rank
    std::uint64_t rest = request.input;           // tokens of this block and those behind it
    for (const std::uint64_t block : trace_.blocks_of(request)) {
      // The last token of the prompt is left to compute.
      const std::uint64_t tokens = std::min<std::uint64_t>(rest, kBlockTokens);
      const std::uint64_t usable = tokens == rest ? tokens - 1 : tokens;
      rest -= tokens;
      const auto known = holders_.find(block);
      if (known == holders_.end() || usable == 0) continue;
      if (at_rank(known->second, turn.prefill) != nullptr) {
        turn.kept += usable;
      } else if (const Holder* from = holder_at(known->second, turn.begin)) {
        BlockFetch& fetch = fetches[from->rank];
        fetch.from = from->rank;
        fetch.request = std::max(fetch.request, from->request);
        fetch.tokens += usable;
      } else {
        continue;
      }
      turn.computed -= usable;
    }
    for (const auto& [rank, fetch] : fetches) turn.fetches.push_back(fetch);
  }

  // The first that has it at that time.
  static const Holder* holder_at(const std::vector<Holder>& holders, Picos time) {
    const auto at = std::find_if(holders.begin(), holders.end(),
                                 [time](const Holder& holder) { return holder.since <= time; });
    return at == holders.end() ? nullptr : &*at;
  }

  void keep_blocks(const TraceRequest& request, std::uint32_t number, const PrefillTurn& turn) {
    for (const std::uint64_t block : trace_.blocks_of(request)) {
      std::vector<Holder>& holders = holders_[block];
      if (at_rank(holders, turn.prefill) == nullptr) {
        holders.push_back({turn.prefill, number, turn.end});
      }
    }
  }

  const RequestTrace& trace_;
  const InferenceSettings& s_;
  std::vector<Picos> free_;  // when the queue of each prefill rank ends
  std::unordered_map<std::uint64_t, std::vector<Holder>> holders_;  // by block
};

}  // namespace

std::uint64_t PrefillTurn::fetched() const {
  std::uint64_t tokens = 0;
  for (const BlockFetch& fetch : fetches) tokens += fetch.tokens;
  return tokens;
}

std::uint32_t requests_used(const RequestTrace& trace, const InferenceSettings& settings) {
  const auto all = static_cast<std::uint32_t>(trace.requests.size());
  return settings.requests == 0 ? all : std::min(all, settings.requests);
}

Picos prefill_time(std::uint64_t tokens, const InferenceSettings& settings) {
  const std::uint64_t rate = settings.tokens_per_second;
  return Picos{static_cast<std::int64_t>(tokens * (kPicosOfSecond / rate) +
                                         tokens * (kPicosOfSecond % rate) / rate)};
}

std::vector<PrefillTurn> plan_prefill(const RequestTrace& trace,
                                      const InferenceSettings& settings) {
  return PrefillQueues(trace, settings).plan();
}

std::vector<std::string> inference_errors(const RequestTrace& trace,
                                          const InferenceSettings& settings) {
  std::vector<std::string> errors;
  const auto refuse = [&errors](std::string_view key, auto value, const std::string& why) {
    errors.push_back(fmt::format("workload.job.inference.{} = {}: {}", key, value, why));
  };
  const std::uint32_t count = requests_used(trace, settings);
  if (settings.requests > count) {
    refuse("requests", settings.requests, fmt::format("the trace has {}", count));
  }
  constexpr double kMostSeconds = static_cast<double>(kMostJobNanos) / 1e9;
  std::uint64_t tokens = 0, longest = 0;
  for (const TraceRequest& request : std::span(trace.requests).first(count)) {
    tokens += request.input;
    longest = std::max<std::uint64_t>(longest, request.input);
  }
  const double computing = static_cast<double>(tokens) / settings.tokens_per_second;
  if (computing > kMostSeconds) {
    refuse("tokens_per_second", settings.tokens_per_second,
           fmt::format("all prompts take {:.3g} s: at most {:.3g} s fit", computing, kMostSeconds));
  }
  const double last = static_cast<double>(trace.requests[count - 1].ticks) /
                      (static_cast<double>(kTicksPerSecond) * settings.time_scale);
  if (last > kMostSeconds) {
    refuse("time_scale", settings.time_scale,
           fmt::format("the last request comes after {:.3g} s: at most {:.3g} s fit", last,
                       kMostSeconds));
  }
  const double bytes =
      static_cast<double>(longest) * static_cast<double>(settings.kv_bytes) * settings.layers;
  if (bytes > static_cast<double>(kMostJobBytes)) {
    refuse("kv_bytes", settings.kv_bytes,
           fmt::format("{:.3g} B of the longest prompt: at most {:.3g} B fit", bytes,
                       static_cast<double>(kMostJobBytes)));
  }
  return errors;
}

}  // namespace paceline::workload
