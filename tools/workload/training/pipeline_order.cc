#include "tools/workload/training/pipeline_order.h"

#include <algorithm>

namespace paceline::workload {

namespace {

// Interleaved, a stage takes as many micro-batches as there are stages through one chunk, and then
// through the next. The last of these rounds may have fewer.
PipelinePass numbered_pass(const PipelineShape& shape, std::uint32_t number, bool backward) {
  if (shape.chunks == 1) return {backward, 0, number};
  const std::uint32_t round = shape.stages * shape.chunks;
  const std::uint32_t first = number / round * shape.stages;
  const std::uint32_t together = std::min(shape.stages, shape.micro_batches - first);
  const std::uint32_t chunk = number % round / together;
  return {backward, backward ? shape.chunks - 1 - chunk : chunk, first + number % round % together};
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

std::vector<PipelinePass> forward_order(const PipelineShape& shape) {
  std::vector<PipelinePass> order;
  for (std::uint32_t pass = 0; pass < shape.micro_batches * shape.chunks; ++pass) {
    order.push_back(numbered_pass(shape, pass, false));
  }
  return order;
}

std::optional<PipelineHop> hop_of(const PipelineShape& shape, std::uint32_t stage,
                                  const PipelinePass& pass, bool arrives) {
  const std::uint32_t part = pass.chunk * shape.stages + stage;  // of the model
  const bool behind = arrives == pass.backward;                  // or before
  if (part == (behind ? shape.stages * shape.chunks - 1 : 0)) return std::nullopt;
  const std::uint32_t other = behind ? part + 1 : part - 1;
  const std::uint32_t sender = arrives ? other : part;
  return PipelineHop{other % shape.stages, 2 * sender + (pass.backward ? 1 : 0)};
}

}  // namespace paceline::workload
