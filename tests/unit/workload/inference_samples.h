// Requests of inference services for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/workload/inference/prefill_plan.h"
#include "tools/workload/inference/request_trace.h"

namespace paceline::workload::inference_samples {

inline std::string requests_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/requests/" + name;
}

// A request of whole blocks.
inline void add_request(RequestTrace& trace, std::int64_t ticks,
                        const std::vector<std::uint64_t>& blocks) {
  const auto count = static_cast<std::uint32_t>(blocks.size());
  trace.requests.push_back({.ticks = ticks,
                            .input = count * kBlockTokens,
                            .first_block = static_cast<std::uint32_t>(trace.blocks.size()),
                            .blocks = count});
  trace.blocks.insert(trace.blocks.end(), blocks.begin(), blocks.end());
}

// Prompts that begin alike: blocks are the nodes of a random tree, a prompt the way from its root
// to a node. The last block has as many tokens as chance has it.
inline RequestTrace random_trace(std::uint64_t seed, std::uint32_t requests) {
  Random random(seed, 1);
  RequestTrace trace;
  std::vector<std::vector<std::uint64_t>> ways{{0}};
  std::int64_t ticks = 0;
  for (std::uint32_t i = 0; i < requests; ++i) {
    std::vector<std::uint64_t> way = ways[random.below(ways.size())];
    const std::uint64_t more = random.below(4);
    for (std::uint64_t k = 0; k < more; ++k) {
      way.push_back(ways.size());
      ways.push_back(way);
    }
    add_request(trace, ticks, way);
    trace.requests.back().input -= static_cast<std::uint32_t>(random.below(kBlockTokens));
    ticks += static_cast<std::int64_t>(random.below(3) * random.below(kTicksPerSecond / 2));
  }
  return trace;
}

}  // namespace paceline::workload::inference_samples
