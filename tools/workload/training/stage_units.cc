#include "tools/workload/training/stage_units.h"

#include <algorithm>

namespace paceline::workload {

namespace {

constexpr double kPicosPerSecond = 1e12;

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count); }

// `count` things are divided evenly among `all` places: how many places `begin` up to `end` have.
std::uint64_t between(std::uint64_t count, std::uint64_t all, std::uint64_t begin,
                      std::uint64_t end) {
  return all == 0 ? 0 : count_before(count, all, end) - count_before(count, all, begin);
}

class UnitMaker {
 public:
  UnitMaker(const TrainingSettings& settings, const RankShare& share)
      : s_(settings), m_(settings.model), share_(share) {}

  std::vector<StageUnit> units(std::uint32_t part) const {
    const std::uint32_t parts = s_.by.pipeline * s_.by.chunks;
    const std::uint32_t layers = m_.layers / parts;
    const std::uint32_t end = (part + 1) * layers;
    std::vector<StageUnit> out;
    if (part == 0) out.push_back(end_unit(m_.input_parameters, false));
    for (std::uint32_t layer = part * layers; layer < end; layer += s_.merge_layers) {
      out.push_back(layer_unit(layer, std::min(end, layer + s_.merge_layers)));
    }
    if (part + 1 == parts) out.push_back(end_unit(m_.output_parameters, true));
    return out;
  }

 private:
  StageUnit end_unit(double parameters, bool computes) const {
    StageUnit unit;
    unit.parameters = part_of_count(whole(parameters), s_.by.tensor, share_.tensor);
    if (computes) unit.feed_forward = time_of(2 * parameters);
    return unit;
  }

  StageUnit layer_unit(std::uint32_t begin, std::uint32_t end) const {
    const std::uint64_t in_layers =
        whole(m_.parameters - m_.input_parameters - m_.output_parameters);
    const std::uint32_t dense = m_.layers - m_.expert_layers;  // the first ones
    const std::uint32_t expert_begin = std::max(begin, dense) - dense;
    const std::uint32_t expert_end = std::max(end, dense) - dense;
    const std::uint64_t parameters = between(in_layers, m_.layers, begin, end);
    const std::uint64_t experts =
        between(whole(m_.expert_parameters), m_.expert_layers, expert_begin, expert_end);
    const std::uint32_t layers = end - begin;
    const double attention = m_.attention_parameters * layers;
    const double score = (s_.causal ? 2.0 : 4.0) * s_.sequence * m_.hidden * layers;
    StageUnit unit;
    unit.layers = layers;
    unit.expert_layers = expert_end - expert_begin;
    unit.first_layer = begin;
    unit.parameters = part_of_count(parameters, s_.by.tensor, share_.tensor);
    unit.expert_parameters = part_of_count(part_of_count(experts, s_.by.expert, share_.expert),
                                           s_.by.tensor, share_.tensor);
    unit.projections = time_of(2 * attention);
    unit.scores = time_of(score);
    unit.feed_forward = time_of(2 * (static_cast<double>(parameters) - attention));
    if (m_.experts != 0) {
      unit.experts = time_of(2 * static_cast<double>(experts) * m_.top_k / m_.experts);
    }
    return unit;
  }

  // flop: for a token, of all tensor-parallel ranks together.
  Picos time_of(double flop) const {
    const double tokens = s_.step.tokens / s_.by.context / s_.by.tensor;
    return Picos{static_cast<std::int64_t>(flop * tokens / s_.flops * kPicosPerSecond)};
  }

  const TrainingSettings& s_;
  const TrainingModel& m_;
  RankShare share_;
};

}  // namespace

std::vector<StageUnit> stage_units(const TrainingSettings& settings, const RankShare& share,
                                   std::uint32_t part) {
  return UnitMaker(settings, share).units(part);
}

}  // namespace paceline::workload
