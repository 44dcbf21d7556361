#include "tools/collective/bench_results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace paceline::tools {

BenchResults::BenchResults(std::uint32_t ranks, std::uint32_t sizes)
    : results_(ranks, std::vector<std::optional<RankResult>>(sizes)) {}

void BenchResults::take(std::uint32_t rank, const nlohmann::json& message) {
  results_[rank].at(message.at("size").get<std::uint32_t>()) =
      RankResult{message.at("mean_us").get<double>(), message.at("wrong").get<std::uint64_t>(),
                 message.at("element").get<std::uint64_t>(), message.at("expected").get<float>(),
                 message.at("got").get<float>()};
}

bool BenchResults::complete(std::uint32_t rank) const {
  return std::all_of(results_[rank].begin(), results_[rank].end(),
                     [](const auto& result) { return result.has_value(); });
}

std::vector<RankResult> BenchResults::of_size(std::uint32_t size) const {
  std::vector<RankResult> all;
  for (const auto& rank : results_) {
    if (!rank[size]) return {};
    all.push_back(*rank[size]);
  }
  return all;
}

}  // namespace paceline::tools
