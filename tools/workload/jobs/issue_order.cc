#include "tools/workload/jobs/issue_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace paceline::workload {

void sort_once(std::vector<OpPair>& pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

std::vector<std::uint32_t> issue_order(std::uint32_t count, std::span<const OpPair> waits) {
  std::vector<std::uint32_t> missing(count);  // ops that an op still waits for
  std::vector<std::uint32_t> first(std::size_t{count} + 1);
  for (const auto& [op, before] : waits) {
    ++missing[op];
    ++first[before + 1];
  }
  for (std::uint32_t op = 0; op < count; ++op) first[op + 1] += first[op];
  std::vector<std::uint32_t> waiting(waits.size());  // for each op, those that wait for it
  std::vector<std::uint32_t> place(first.begin(), first.end() - 1);
  for (const auto& [op, before] : waits) waiting[place[before]++] = op;

  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t op = 0; op < count; ++op) {
    if (missing[op] == 0) ready.push(op);
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::uint32_t op = ready.top();
    ready.pop();
    order.push_back(op);
    for (std::uint32_t i = first[op]; i < first[op + 1]; ++i) {
      if (--missing[waiting[i]] == 0) ready.push(waiting[i]);
    }
  }
  return order;
}

std::vector<std::uint32_t> find_circle(std::uint32_t count, std::span<const OpPair> waits,
                                       std::span<const std::uint32_t> order) {
  if (order.size() == count) return {};
  std::vector<bool> ordered(count);
  for (const std::uint32_t op : order) ordered[op] = true;
  // Every op that is left out waits for another one: following these leads into a circle.
  const auto next = [&](std::uint32_t op) {
    auto wait = std::lower_bound(waits.begin(), waits.end(), OpPair{op, 0});
    while (ordered[wait->second]) ++wait;
    return wait->second;
  };
  auto op = static_cast<std::uint32_t>(std::find(ordered.begin(), ordered.end(), false) -
                                       ordered.begin());
  std::vector<bool> seen(count);
  for (; !seen[op]; op = next(op)) seen[op] = true;
  std::vector<std::uint32_t> circle;
  for (std::uint32_t at = op; circle.empty() || at != op; at = next(at)) circle.push_back(at);
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
  return circle;
}

}  // namespace paceline::workload
