#include "tools/workload/job_plans/sender_degrees.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace paceline::workload {

namespace {

using Sender = std::array<std::uint32_t, 3>;  // to, step, from

// How many there are to `to`, in this step.
std::size_t count_of(const std::vector<Sender>& senders, std::uint32_t to, std::uint32_t step) {
  const auto begin = std::ranges::lower_bound(senders, Sender{to, step, 0});
  return static_cast<std::size_t>(std::ranges::lower_bound(senders, Sender{to, step + 1, 0}) -
                                  begin);
}

// Each sender once in a step.
std::vector<Sender> senders_of(const Schedule& schedule, std::span<const std::uint32_t> servers,
                               const std::vector<std::uint32_t>& steps) {
  std::vector<Sender> senders;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    if (servers[t.from] != servers[t.to]) senders.push_back({t.to, steps[i], t.from});
  }
  std::ranges::sort(senders);
  senders.erase(std::unique(senders.begin(), senders.end()), senders.end());
  return senders;
}

}  // namespace

std::vector<std::uint16_t> sender_degrees(const Schedule& schedule,
                                          std::span<const std::uint32_t> servers, bool pipelined) {
  const std::size_t count = schedule.transfers.size();
  std::vector<std::uint32_t> steps(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint32_t before : schedule.waits_of(schedule.transfers[i])) {
      steps[i] = std::max(steps[i], steps[before] + 1);
    }
  }
  const std::vector<Sender> in_step = senders_of(schedule, servers, steps);
  std::vector<Sender> in_all;
  if (pipelined) in_all = senders_of(schedule, servers, std::vector<std::uint32_t>(count));
  std::vector<std::uint16_t> degrees(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Transfer& t = schedule.transfers[i];
    if (servers[t.from] == servers[t.to]) continue;
    const std::size_t degree = count_of(in_step, t.to, steps[i]);
    if (pipelined && degree != count_of(in_all, t.to, 0)) continue;
    degrees[i] = static_cast<std::uint16_t>(std::min<std::size_t>(degree, 0xFFFF));
  }
  return degrees;
}

}  // namespace paceline::workload
