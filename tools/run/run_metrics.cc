#include "tools/run/run_metrics.h"

#include <algorithm>

#include "control/experiment/analysis/statistics.h"
#include "dataplane/base/numbers/jain.h"

namespace paceline::tools {

namespace {

using experiment::Metric;
using experiment::MetricValues;
using experiment::nearest_rank;
using experiment::SizeBin;
using experiment::SlowdownStatistic;

double micros(Picos t) { return static_cast<double>(t.count) / 1e6; }

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// A message that was in flight when the run ended counts with its age, a lower bound: leaving it
// out would make the slowest arm look best. Calls visit(flow, time taken).
template <class Visit>
void for_each_started(const VirtualWorld& world, const std::vector<FlowRow>& flows, Visit&& visit) {
  for (const FlowRow& flow : flows) {
    if (flow.failed || !flow.started) continue;
    visit(flow, flow.fct.count >= 0 ? flow.fct : world.now() - flow.start);
  }
}

void fct_metrics(const VirtualWorld& world, const std::vector<FlowRow>& flows,
                 MetricValues& metrics) {
  std::vector<double> fct;
  std::vector<double> slowdown[4];  // by SizeBin; all first
  for_each_started(world, flows, [&](const FlowRow& flow, Picos took) {
    fct.push_back(micros(took));
    const double s = static_cast<double>(took.count) / static_cast<double>(flow.ideal.count);
    slowdown[0].push_back(s);
    slowdown[static_cast<std::size_t>(experiment::size_bin(flow.bytes))].push_back(s);
  });
  if (fct.empty()) return;
  std::sort(fct.begin(), fct.end());
  metrics[Metric::fct_mean_us] = mean(fct);
  metrics[Metric::fct_p50_us] = nearest_rank(fct, 0.5);
  metrics[Metric::fct_p99_us] = nearest_rank(fct, 0.99);
  metrics[Metric::fct_p999_us] = nearest_rank(fct, 0.999);
  for (unsigned bin = 0; bin < 4; ++bin) {
    std::vector<double>& values = slowdown[bin];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const auto size = static_cast<SizeBin>(bin);
    metrics[experiment::slowdown_metric(size, SlowdownStatistic::mean)] = mean(values);
    metrics[experiment::slowdown_metric(size, SlowdownStatistic::p50)] = nearest_rank(values, 0.5);
    metrics[experiment::slowdown_metric(size, SlowdownStatistic::p99)] = nearest_rank(values, 0.99);
  }
}

void collective_metrics(const VirtualWorld& world, const std::vector<FlowRow>& flows,
                        MetricValues& metrics) {
  const MessagePlan& plan = world.plan();
  if (plan.collectives.empty() || plan.connected) return;  // a job's: JobReport has them
  std::vector<Picos> begin(plan.collectives.size(), kNever);
  std::vector<Picos> end(plan.collectives.size(), Picos{-1});
  std::vector<bool> complete(plan.collectives.size(), true);
  for (const FlowRow& flow : flows) {
    const std::size_t c = plan.messages[flow.message].collective;
    if (c >= plan.collectives.size()) continue;
    if (flow.fct.count < 0 || flow.failed) {
      complete[c] = false;
      continue;
    }
    begin[c] = earlier(begin[c], flow.start);
    end[c] = later(end[c], flow.start + flow.fct);
  }
  double efficiency = 0;
  double time = 0;
  for (std::size_t c = 0; c < plan.collectives.size(); ++c) {
    if (!complete[c] || end[c].count < 0) return;  // not applicable: the run did not finish
    const Picos took = end[c] - begin[c];
    time += micros(took);
    efficiency +=
        static_cast<double>(plan.collectives[c].ideal.count) / static_cast<double>(took.count);
  }
  const auto n = static_cast<double>(plan.collectives.size());
  metrics[Metric::collective_efficiency] = efficiency / n;
  metrics[Metric::collective_time_us] = time / n;
}

// Over the throughputs of like messages; unlike ones have no common fair share.
void fairness_metric(const VirtualWorld& world, const std::vector<FlowRow>& flows,
                     MetricValues& metrics) {
  std::vector<double> throughput;
  for (const FlowRow& flow : flows) {
    const PlannedMessage& message = world.plan().messages[flow.message];
    if (flow.bytes != flows.front().bytes) return;
    if (message.after != kNoMessage || message.nvlink) return;
    if (flow.fct.count <= 0 || flow.failed) continue;
    throughput.push_back(static_cast<double>(flow.bytes) / static_cast<double>(flow.fct.count));
  }
  if (throughput.size() >= 2) metrics[Metric::jain_fairness] = jain_index(throughput);
}

// `drops` counts packets lost to congestion. Losses that the scenario configures have their own
// metrics, by cause.
void loss_metrics(const fabric::Network& network, MetricValues& metrics) {
  const fabric::FabricSpec& spec = network.spec();
  const fabric::NetworkStats& net = network.stats();
  const auto dropped = [&net](fabric::DropReason reason) {
    return net.drops[static_cast<std::size_t>(reason)];
  };
  const auto a_link = [&spec](double fabric::LinkSpec::*chance) {
    return std::any_of(spec.links.begin(), spec.links.end(),
                       [chance](const fabric::LinkSpec& link) { return link.*chance > 0; });
  };
  const auto an_event = [&spec](fabric::LinkAction action) {
    return std::any_of(spec.events.begin(), spec.events.end(),
                       [action](const fabric::LinkEvent& event) { return event.action == action; });
  };
  metrics[Metric::drops] = static_cast<double>(dropped(fabric::DropReason::buffer_full) +
                                               dropped(fabric::DropReason::headroom_exhausted));
  const auto count = [&metrics](Metric metric, bool asked_for, std::uint64_t packets) {
    if (asked_for || packets != 0) metrics[metric] = static_cast<double>(packets);
  };
  const bool fails = an_event(fabric::LinkAction::down);
  count(Metric::lost_link_down, fails, dropped(fabric::DropReason::link_down));
  count(Metric::lost_no_route, fails, dropped(fabric::DropReason::no_route));
  count(Metric::lost_on_links,
        a_link(&fabric::LinkSpec::loss) || an_event(fabric::LinkAction::loss),
        dropped(fabric::DropReason::link_loss));
  count(Metric::damaged_on_links,
        a_link(&fabric::LinkSpec::error_rate) || an_event(fabric::LinkAction::corrupt),
        net.corrupted_packets);
  count(Metric::lost_control, spec.drop_control_ppm != 0,
        dropped(fabric::DropReason::control_loss));
  count(Metric::trimmed, spec.trim.enabled, net.trimmed_packets);
}

}  // namespace

experiment::Distribution distribution_of(const VirtualWorld& world,
                                         const std::vector<FlowRow>& flows) {
  experiment::Distribution distribution;
  distribution.runs = 1;
  for_each_started(world, flows, [&](const FlowRow& flow, Picos took) {
    distribution.add(flow.bytes, took, flow.ideal);
    if (flow.fct.count < 0) ++distribution.outstanding;
  });
  return distribution;
}

MetricValues measure(const VirtualWorld& world, const std::vector<FlowRow>& flows,
                     const telemetry::EngineCounters& counters) {
  MetricValues metrics;
  fct_metrics(world, flows, metrics);
  collective_metrics(world, flows, metrics);
  fairness_metric(world, flows, metrics);

  Picos first = kNever;
  Picos last{0};
  std::uint64_t bytes = 0;
  for (const FlowRow& flow : flows) {
    if (flow.fct.count < 0 || flow.failed) continue;
    if (world.plan().messages[flow.message].nvlink) continue;
    first = earlier(first, flow.start);
    last = later(last, flow.start + flow.fct);
    bytes += flow.bytes;
  }
  if (bytes != 0) {
    metrics[Metric::goodput_gbps] =
        8000.0 * static_cast<double>(bytes) / static_cast<double>((last - first).count);
  }

  const fabric::NetworkStats& net = world.network().stats();
  metrics[Metric::queue_p99_bytes] =
      static_cast<double>(world.network().last_hop_depth().quantile(0.99));
  metrics[Metric::queue_max_bytes] = static_cast<double>(world.network().last_hop_max_bytes());
  loss_metrics(world.network(), metrics);
  metrics[Metric::retransmitted_bytes] = static_cast<double>(counters.retransmitted_bytes);
  metrics[Metric::pfc_pause_us] = micros(net.pause_time);
  metrics[Metric::ecn_marks] = static_cast<double>(net.marked_packets);
  metrics[Metric::cnps] = static_cast<double>(counters.cnps_sent);
  if (net.injected_bytes != 0) {
    metrics[Metric::control_overhead] =
        1.0 - static_cast<double>(counters.tx_wire_bytes) / static_cast<double>(net.injected_bytes);
  }
  std::array<double, cc::kLimiters> share{};
  double total = 0;
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    const auto picos = world.engine(h).view().limiter_picos(world.now());
    for (std::size_t i = 0; i < picos.size(); ++i) {
      share[i] += static_cast<double>(picos[i]);
      total += static_cast<double>(picos[i]);
    }
  }
  for (std::size_t i = 0; i < share.size() && total > 0; ++i) {
    metrics[experiment::limiter_metric(static_cast<cc::Limiter>(i))] = share[i] / total;
  }
  return metrics;
}

}  // namespace paceline::tools
