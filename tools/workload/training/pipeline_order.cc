#include "tools/workload/training/pipeline_order.h"

#include <algorithm>

namespace paceline::workload {

namespace {

// Interleaved, a stage takes as many micro-batches as there are stages through one chunk, and then
// through the next.
PipelinePass numbered_pass(const PipelineShape& shape, std::uint32_t number, bool backward) {
  if (shape.chunks == 1) return {backward, 0, number};
  const std::uint32_t round = shape.stages * shape.chunks;
  const std::uint32_t chunk = number % round / shape.stages;
  return {backward, backward ? shape.chunks - 1 - chunk : chunk,
          number / round * shape.stages + number % shape.stages};
}

}  // namespace

std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t passes = shape.micro_batches * shape.chunks;  // in each direction
  const std::uint32_t behind = shape.stages - 1 - stage;
  const std::uint32_t ahead =
      std::min(passes, shape.chunks == 1 ? behind : 2 * behind + (shape.chunks - 1) * shape.stages);
  std::vector<PipelinePass> order;
  order.reserve(std::size_t{2} * passes);
  for (std::uint32_t forward = 0; forward < passes + ahead; ++forward) {
    if (forward < passes) order.push_back(numbered_pass(shape, forward, false));
    if (forward >= ahead) order.push_back(numbered_pass(shape, forward - ahead, true));
  }
  return order;
}

}  // namespace paceline::workload
