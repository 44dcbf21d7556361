#include "tools/emulate/agreement.h"

#include <algorithm>
#include <cmath>

namespace paceline::tools {

namespace {

// The lower one of the two in the middle; 0 if there are no values.
double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Agreement::Side medians(const std::vector<AgreementWindow>& windows,
                        const std::vector<std::size_t>& counted,
                        const std::vector<std::uint32_t>& senders) {
  std::vector<double> queues;
  std::vector<double> rates;
  std::vector<double> totals;
  for (const std::size_t i : counted) {
    queues.push_back(windows[i].queue_bytes);
    double total = 0;
    for (const std::uint32_t host : senders) {
      rates.push_back(windows[i].rates[host]);
      total += windows[i].rates[host];
    }
    totals.push_back(total);
  }
  return {median(queues), median(rates), median(totals)};
}

double difference(double real, double virtual_one) {
  if (virtual_one == real) return 0;
  return (real - virtual_one) / std::max(virtual_one, 1.0);
}

}  // namespace

void WindowRecorder::look(VirtualWorld& world, Picos at) {
  fabric::Network& network = world.network();
  double queued = 0;
  for (std::uint32_t link = 0; link < network.links(); ++link) {
    if (network.egress_stats(link)) queued += static_cast<double>(network.queue_bytes(link, at));
  }
  queued_ += queued;
  sent_.resize(world.hosts());
  if (++looks_ < kLooks) return;
  AgreementWindow window;
  window.begin = at - distance_ * kLooks;
  window.end = at;
  window.queue_bytes = queued_ / kLooks;
  queued_ = 0;
  looks_ = 0;
  const double seconds = static_cast<double>((window.end - window.begin).count) * 1e-12;
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    const std::uint64_t sent = world.engine(h).counters().tx_data_bytes;
    window.rates.push_back(8 * static_cast<double>(sent - sent_[h]) / seconds);
    sent_[h] = sent;
  }
  windows_.push_back(std::move(window));
}

bool Agreement::close() const {
  const double queue = std::abs(real_time.queue_bytes - virtual_time.queue_bytes);
  return (std::abs(queue_difference) <= kClose || queue <= queue_allowed) &&
         std::abs(rate_difference) <= kClose && std::abs(total_difference) <= kClose;
}

double queue_allowed(const RealTimeReport& report, Rate rate, std::size_t senders,
                     std::uint32_t packet_bytes) {
  return static_cast<double>(std::max<std::uint64_t>(bytes_in(report.tolerance, rate),
                                                     std::uint64_t{packet_bytes} * senders));
}

Agreement compare(const std::vector<AgreementWindow>& virtual_time,
                  const std::vector<AgreementWindow>& real_time, const RealTimeReport& report,
                  const std::vector<std::uint32_t>& senders, double queue_allowed, Picos warm_up) {
  Agreement out;
  out.windows = std::min(virtual_time.size(), real_time.size());
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < out.windows; ++i) {
    if (real_time[i].begin < warm_up) {
      ++out.warm_up;
    } else if (report.on_stop == OnStop::run_on &&
               report.stopped_within(real_time[i].begin, real_time[i].end)) {
      ++out.stopped;
    } else {
      counted.push_back(i);
    }
  }
  out.counted = counted.size();
  out.virtual_time = medians(virtual_time, counted, senders);
  out.real_time = medians(real_time, counted, senders);
  const Agreement::Side& v = out.virtual_time;
  const Agreement::Side& r = out.real_time;
  out.queue_allowed = queue_allowed;
  out.queue_difference = difference(r.queue_bytes, v.queue_bytes);
  out.rate_difference = difference(r.rate, v.rate);
  out.total_difference = difference(r.total_rate, v.total_rate);
  return out;
}

}  // namespace paceline::tools
