// The figures of a block that arms are compared by. Names are part of the files of schema 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/metrics.h"

namespace paceline::experiment::live {

enum class BlockMetric : std::uint8_t {
  log_slowdown,         // restricted mean of ln slowdown, messages of up to 1 MiB
  p99_short,            // slowdown, messages of up to 64 KiB; those that stalled at the top
  p99_medium,           // beyond that, up to 1 MiB
  completed_share,      // of messages that were to be completed, all sizes
  goodput,              // payload delivered, bits per second
  collective_time,      // mean, seconds, of an application that reports it
  offered,              // payload begun, bits per second
  retransmitted_share,  // of data packets
  pause_share,          // of time, mean over NICs
  marked_share,         // of data packets received
  cnps_per_mb,          // CNPs received per 10^6 bytes sent
  queueing_delay,       // seconds: smoothed less least round trip, mean over queue pairs
  queue_bytes,          // mean, of queues that can be seen
  fairness,             // Jain's index over channels
  cycles_per_packet,
  temperature,          // placebo: degrees Celsius
  other_class_goodput,  // placebo: traffic that no arm governs, bits per second
};
inline constexpr std::size_t kBlockMetrics = 17;

// How two values are compared. logarithm: their difference is a log ratio, and so an effect of
// exp(mean) - 1; ratio: logarithms are taken first; difference: as they are.
enum class Scale : std::uint8_t { logarithm, ratio, difference };

struct BlockMetricInfo {
  BlockMetric metric;
  std::string_view name;   // in plans and records
  std::string_view label;  // in reports
  Scale scale;
  Better better;
};

const BlockMetricInfo& info(BlockMetric metric);
std::optional<BlockMetric> block_metric_named(std::string_view name);
std::vector<std::string_view> block_metric_names();

// One value per metric; NaN: not measured, or does not apply.
class BlockValues {
 public:
  BlockValues() { values_.fill(kUndefined); }
  double& operator[](BlockMetric metric) { return values_[static_cast<std::size_t>(metric)]; }
  double operator[](BlockMetric metric) const { return values_[static_cast<std::size_t>(metric)]; }

 private:
  std::array<double, kBlockMetrics> values_;
};

// Treatment against champion on the scale of the metric; NaN if a value is NaN, or if a ratio needs
// a value that is not positive.
double contrast(BlockMetric metric, double champion, double candidate);
// A mean of contrasts for display: a share for ratios, otherwise the difference; NaN if it is
// missing or infinite.
double effect_of(BlockMetric metric, double mean_contrast);

}  // namespace paceline::experiment::live
