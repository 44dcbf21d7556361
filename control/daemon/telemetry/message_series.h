// Series that the daemon adds to those of a segment: message figures, by size. Counters as in the
// segment, and slowdowns of messages in the last second, as gauges.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/telemetry/message_figures.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::daemon {

// Sizes of telemetry::MessagesBySize: up to 64 KiB, up to 1 MiB, beyond.
inline constexpr std::array<std::string_view, telemetry::kMessageSizes> kSizeNames{
    "small", "medium", "large"};

// Slowdowns are in thousandths, because series are whole numbers.
inline constexpr double kSlowdownUnit = 1000;

// "messages_begun_small", ..., "slowdown_p50_small", "slowdown_p99_small", ...
std::vector<telemetry::SeriesInfo> message_series();

// The meaning of a series; empty: it is not one of these.
std::string message_series_meaning(std::string_view name);

// Writes their values: counters of `now`, quantiles of the messages completed between `before` and
// `now`. `out` has message_series().size() places.
void put_message_counters(const telemetry::MessagesBySize& now, std::span<std::uint64_t> out);
void put_slowdowns(const telemetry::MessagesBySize& before, const telemetry::MessagesBySize& now,
                   std::span<std::uint64_t> out);

// The slowdown that a share q of the messages completed between the two looks did not exceed (the
// upper edge of its bucket); 0: none was completed.
double slowdown_quantile(const telemetry::MessageFigures& before,
                         const telemetry::MessageFigures& now, double q);

}  // namespace paceline::daemon
