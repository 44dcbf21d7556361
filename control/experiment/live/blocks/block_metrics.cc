#include "control/experiment/live/blocks/block_metrics.h"

#include <algorithm>
#include <cmath>

#include "dataplane/base/numbers/math.h"

namespace paceline::experiment::live {

namespace {

using B = BlockMetric;

constexpr std::array<BlockMetricInfo, kBlockMetrics> kInfos{{
    {B::log_slowdown, "log_slowdown", "slowdown of messages up to 1 MiB (geometric mean)",
     Scale::logarithm, Better::lower},
    {B::p99_short, "p99_short", "p99 slowdown up to 64 KiB", Scale::ratio, Better::lower},
    {B::p99_medium, "p99_medium", "p99 slowdown up to 1 MiB", Scale::ratio, Better::lower},
    {B::completed_share, "completed_share", "messages completed", Scale::difference,
     Better::higher},
    {B::goodput, "goodput", "goodput", Scale::ratio, Better::higher},
    {B::collective_time, "collective_time", "collective time", Scale::ratio, Better::lower},
    {B::offered, "offered", "offered load", Scale::ratio, Better::neither},
    {B::retransmitted_share, "retransmitted_share", "retransmitted packets", Scale::difference,
     Better::lower},
    {B::pause_share, "pause_share", "time paused", Scale::difference, Better::lower},
    {B::marked_share, "marked_share", "packets marked", Scale::difference, Better::neither},
    {B::cnps_per_mb, "cnps_per_mb", "CNPs per MB", Scale::difference, Better::neither},
    {B::queueing_delay, "queueing_delay", "queueing delay", Scale::ratio, Better::lower},
    {B::queue_bytes, "queue_bytes", "queue", Scale::ratio, Better::lower},
    {B::fairness, "fairness", "fairness (Jain)", Scale::difference, Better::higher},
    {B::cycles_per_packet, "cycles_per_packet", "cycles per packet", Scale::ratio, Better::lower},
    {B::temperature, "temperature", "temperature", Scale::difference, Better::neither},
    {B::other_class_goodput, "other_class_goodput", "goodput of other classes", Scale::ratio,
     Better::neither},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (static_cast<std::size_t>(kInfos[i].metric) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

const BlockMetricInfo& info(BlockMetric metric) { return kInfos[static_cast<std::size_t>(metric)]; }

std::optional<BlockMetric> block_metric_named(std::string_view name) {
  const auto found = std::find_if(kInfos.begin(), kInfos.end(),
                                  [&](const BlockMetricInfo& i) { return i.name == name; });
  if (found == kInfos.end()) return std::nullopt;
  return found->metric;
}

std::vector<std::string_view> block_metric_names() {
  std::vector<std::string_view> names;
  for (const BlockMetricInfo& i : kInfos) names.push_back(i.name);
  return names;
}

double contrast(BlockMetric metric, double champion, double candidate) {
  if (!std::isfinite(champion) || !std::isfinite(candidate)) return kUndefined;
  if (info(metric).scale != Scale::ratio) return candidate - champion;
  if (champion == candidate && champion >= 0) return 0;
  if (!(champion > 0 && candidate > 0)) return kUndefined;
  return det_log(candidate) - det_log(champion);
}

double effect_of(BlockMetric metric, double mean_contrast) {
  if (!std::isfinite(mean_contrast)) return kUndefined;
  return info(metric).scale == Scale::difference ? mean_contrast : det_exp(mean_contrast) - 1;
}

}  // namespace paceline::experiment::live
