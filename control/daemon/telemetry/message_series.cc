#include "control/daemon/telemetry/message_series.h"

#include <fmt/format.h>

#include <cmath>

namespace paceline::daemon {

using telemetry::MessageFigures;
using telemetry::MessagesBySize;
using telemetry::SeriesKind;

namespace {

struct MessageCounter {
  std::string_view name;
  std::string_view unit;
  std::uint64_t MessageFigures::*field;
  std::string_view meaning;
};

constexpr std::array<MessageCounter, 8> kCounters{{
    {"messages_begun", "1", &MessageFigures::begun, "messages begun"},
    {"messages_completed", "1", &MessageFigures::completed, "messages completed"},
    {"messages_failed", "1", &MessageFigures::failed, "messages that ended with an error"},
    {"messages_crossed", "1", &MessageFigures::crossed,
     "messages begun in another block of an experiment than they ended in"},
    {"messages_begun_bytes", "bytes", &MessageFigures::begun_bytes, "bytes of messages begun"},
    {"messages_completed_bytes", "bytes", &MessageFigures::completed_bytes,
     "bytes of messages completed"},
    {"messages_fct_ns", "ns", &MessageFigures::fct_ns, "completion times of messages, summed"},
    {"messages_log2_slowdown", "2^-20", &MessageFigures::log2_slowdown,
     "binary logarithms of the slowdowns of messages, summed"},
}};
constexpr std::array<std::pair<std::string_view, double>, 2> kQuantiles{
    {{"slowdown_p50", 0.5}, {"slowdown_p99", 0.99}}};
constexpr std::array<std::string_view, 3> kSizeWords{"up to 64 KiB", "up to 1 MiB", "above 1 MiB"};
static_assert(kSizeWords.size() == kSizeNames.size());

constexpr std::size_t kPerSize = kCounters.size() + kQuantiles.size();

}  // namespace

std::vector<telemetry::SeriesInfo> message_series() {
  std::vector<telemetry::SeriesInfo> out;
  for (const std::string_view size : kSizeNames) {
    for (const MessageCounter& c : kCounters) {
      out.push_back({fmt::format("{}_{}", c.name, size), std::string(c.unit), SeriesKind::counter});
    }
    for (const auto& quantile : kQuantiles) {
      out.push_back({fmt::format("{}_{}", quantile.first, size), "1/1000", SeriesKind::gauge});
    }
  }
  return out;
}

std::string message_series_meaning(std::string_view name) {
  for (std::size_t size = 0; size < kSizeNames.size(); ++size) {
    for (const MessageCounter& c : kCounters) {
      if (name == fmt::format("{}_{}", c.name, kSizeNames[size]))
        return fmt::format("{}, of {}", c.meaning, kSizeWords[size]);
    }
    for (const auto& [quantile, share] : kQuantiles) {
      if (name == fmt::format("{}_{}", quantile, kSizeNames[size])) {
        return fmt::format(
            "quantile {} of the slowdowns of messages of the last second, of {}: time over the "
            "least possible",
            share, kSizeWords[size]);
      }
    }
  }
  return {};
}

void put_message_counters(const MessagesBySize& now, std::span<std::uint64_t> out) {
  for (std::size_t size = 0; size < now.size(); ++size) {
    for (std::size_t i = 0; i < kCounters.size(); ++i) {
      out[size * kPerSize + i] = now[size].*kCounters[i].field;
    }
  }
}

void put_slowdowns(const MessagesBySize& before, const MessagesBySize& now,
                   std::span<std::uint64_t> out) {
  for (std::size_t size = 0; size < now.size(); ++size) {
    for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
      const double value = slowdown_quantile(before[size], now[size], kQuantiles[i].second);
      out[size * kPerSize + kCounters.size() + i] =
          static_cast<std::uint64_t>(std::lround(value * kSlowdownUnit));
    }
  }
}

double slowdown_quantile(const MessageFigures& before, const MessageFigures& now, double q) {
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < now.slowdown.size(); ++k) {
    total += now.slowdown[k] - before.slowdown[k];
  }
  if (total == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(total)));
  std::uint64_t seen = 0;
  for (std::size_t k = 0; k < now.slowdown.size(); ++k) {
    seen += now.slowdown[k] - before.slowdown[k];
    if (seen >= wanted) return std::exp2(static_cast<double>(k + 1) / 8);
  }
  return std::exp2(static_cast<double>(now.slowdown.size()) / 8);
}

}  // namespace paceline::daemon
