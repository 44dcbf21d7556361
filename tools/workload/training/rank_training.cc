#include "tools/workload/training/rank_training.h"

#include <algorithm>

namespace paceline::workload {

namespace {

// Tags of messages around the context ring; those between stages are smaller.
constexpr std::uint32_t kContextForwardTag = kMostHopTags;
constexpr std::uint32_t kContextBackwardTag = kMostHopTags + 1;

TrainingUse use_of_hop(const PipelinePass& pass) {
  return pass.backward ? TrainingUse::pipeline_backward : TrainingUse::pipeline_forward;
}

constexpr Picos twice(Picos time) { return time + time; }

std::uint64_t tokens_of_rank(const TrainingSettings& settings) {
  return static_cast<std::uint64_t>(settings.step.tokens) / settings.by.context;
}

std::vector<StageUnit> units_of_rank(const TrainingSettings& settings, std::uint32_t rank,
                                     std::uint32_t stage, std::vector<std::size_t>& ends) {
  const Parallelism& by = settings.by;
  const RankShare share{rank % by.tensor, rank / (by.tensor * by.context) % by.data % by.expert};
  std::vector<StageUnit> out;
  for (std::uint32_t chunk = 0; chunk < by.chunks; ++chunk) {
    const auto units = stage_units(settings, share, chunk * by.pipeline + stage);
    out.insert(out.end(), units.begin(), units.end());
    ends.push_back(out.size());
  }
  return out;
}

}  // namespace

RankTraining::RankTraining(const TrainingSettings& settings, RankOps& ops)
    : s_(settings),
      ops_(ops),
      tensor_(ops.rank() % settings.by.tensor),
      stage_(static_cast<std::uint32_t>(ops.rank() / (settings.by.ranks() / settings.by.pipeline))),
      stage_ranks_(settings.by.ranks() / settings.by.pipeline),
      activation_(bytes_of_values(tokens_of_rank(settings) * settings.model.hidden,
                                  settings.model.value_bytes)),
      order_(pipeline_order(pipeline(), stage_)),
      units_(units_of_rank(settings, ops.rank(), stage_, chunk_end_)),
      weights_(settings, ops, units_.size()) {}

void RankTraining::add_iteration() {
  for (const PipelinePass& pass : order_) pass.backward ? backward(pass) : forward(pass);
  weights_.end_iteration();
  ++iteration_;
}

void RankTraining::block(std::uint32_t op) {
  ops_.wait(op, last_);
  for (const std::uint32_t before : pending_) ops_.wait(op, before);
  pending_.clear();
  last_ = op;
}

void RankTraining::compute(TrainingUse use, Picos duration) {
  block(ops_.compute(use, duration));
  computed_ = last_;
}

void RankTraining::forward(const PipelinePass& pass) {
  receive(pass);
  const std::size_t begin = pass.chunk == 0 ? 0 : chunk_end_[pass.chunk - 1];
  for (std::size_t i = begin; i < chunk_end_[pass.chunk]; ++i) {
    begin_unit(i, pass);
    const StageUnit& unit = units_[i];
    if (unit.layers == 0) {
      if (unit.feed_forward > Picos{0}) compute(TrainingUse::forward, unit.feed_forward);
      continue;
    }
    forward_attention(unit);
    forward_feed_forward(unit);
  }
  send(pass);
}

void RankTraining::backward(const PipelinePass& pass) {
  receive(pass);
  const std::size_t begin = pass.chunk == 0 ? 0 : chunk_end_[pass.chunk - 1];
  const bool last = pass.micro_batch + 1 == s_.step.micro_batches;
  for (std::size_t i = chunk_end_[pass.chunk]; i-- > begin;) {
    begin_unit(i, pass);
    const StageUnit& unit = units_[i];
    if (unit.layers != 0) {
      backward_feed_forward(unit);
      backward_attention(unit);
    } else if (unit.feed_forward > Picos{0}) {
      compute(TrainingUse::backward, twice(unit.feed_forward));
    }
    if (last) weights_.reduce(i, unit, computed_, i == begin);
  }
  send(pass);
}

// The weights of a unit are gathered while the unit before it computes. Each iteration, micro-batch
// and layer has a draw of its own, forward and backward.
void RankTraining::begin_unit(std::size_t unit, const PipelinePass& pass) {
  draw_ = (iteration_ * s_.step.micro_batches + pass.micro_batch) * s_.model.layers +
          units_[unit].first_layer;
  const bool first = pass.micro_batch == 0;
  const auto await = [this](const WeightTraffic::Ops& ops) {
    pending_.insert(pending_.end(), ops.begin(), ops.end());
  };
  if (s_.by.sharding == Sharding::full && (first || s_.step.frees_weights)) {
    await(weights_.gather(unit, units_[unit], before_));
  }
  if (first && !pass.backward) await(weights_.updated(unit));
  before_ = last_;
}

void RankTraining::begin_tensor_part(TrainingUse use, const StageUnit& unit) {
  if (s_.by.tensor == 1 || !s_.by.sequence) return;
  block(ops_.collective(use, TrainingGroup::tensor, CollectiveOp::all_gather,
                        activation_ * unit.layers));
}

void RankTraining::end_tensor_part(TrainingUse use, const StageUnit& unit) {
  if (s_.by.tensor == 1) return;
  const CollectiveOp op = s_.by.sequence ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  block(ops_.collective(use, TrainingGroup::tensor, op, activation_ * unit.layers));
}

void RankTraining::exchange_tokens(TrainingUse use, const StageUnit& unit, bool back) {
  if (s_.by.expert == 1) return;
  block(ops_.exchange(use, activation_ * s_.model.top_k * unit.expert_layers, draw_, back));
}

void RankTraining::forward_attention(const StageUnit& unit) {
  begin_tensor_part(TrainingUse::tensor_attention, unit);
  attend(unit, false);
  end_tensor_part(TrainingUse::tensor_attention, unit);
}

void RankTraining::forward_feed_forward(const StageUnit& unit) {
  begin_tensor_part(TrainingUse::tensor_feed_forward, unit);
  compute(TrainingUse::forward, unit.feed_forward);
  if (unit.expert_layers != 0) {
    exchange_tokens(TrainingUse::expert_dispatch, unit, false);
    compute(TrainingUse::forward, unit.experts);
    exchange_tokens(TrainingUse::expert_combine, unit, true);
  }
  end_tensor_part(TrainingUse::tensor_feed_forward, unit);
}

void RankTraining::backward_feed_forward(const StageUnit& unit) {
  begin_tensor_part(TrainingUse::tensor_feed_forward, unit);
  if (s_.step.gathers_inputs) begin_tensor_part(TrainingUse::tensor_feed_forward, unit);
  if (unit.expert_layers != 0) {
    exchange_tokens(TrainingUse::expert_combine, unit, false);
    compute(TrainingUse::backward, twice(unit.experts));
    exchange_tokens(TrainingUse::expert_dispatch, unit, true);
  }
  compute(TrainingUse::backward, twice(unit.feed_forward));
  end_tensor_part(TrainingUse::tensor_feed_forward, unit);
}

void RankTraining::backward_attention(const StageUnit& unit) {
  begin_tensor_part(TrainingUse::tensor_attention, unit);
  if (s_.step.gathers_inputs) begin_tensor_part(TrainingUse::tensor_attention, unit);
  attend(unit, true);
  end_tensor_part(TrainingUse::tensor_attention, unit);
}

// Keys and values go around the ring; a rank passes a block on while it computes with it.
void RankTraining::attend(const StageUnit& unit, bool backward) {
  const TrainingUse use = backward ? TrainingUse::backward : TrainingUse::forward;
  const Picos scores = backward ? twice(unit.scores) : unit.scores;
  const Picos projections = backward ? twice(unit.projections) : unit.projections;
  if (s_.by.context == 1) return compute(use, projections + scores);
  const std::vector<std::uint32_t>& ring = ops_.ranks_in(TrainingGroup::context);
  const std::uint32_t steps = s_.by.context;
  const std::uint32_t at = ops_.rank() / s_.by.tensor % steps;
  const std::uint32_t tag = backward ? kContextBackwardTag : kContextForwardTag;
  const TrainingUse passes =
      backward ? TrainingUse::context_backward : TrainingUse::context_forward;
  const std::uint64_t bytes = kv_bytes(unit, backward);
  compute(use, projections);
  std::uint32_t here = last_;  // the op that brought the keys and values
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint32_t brought = here;
    if (step + 1 < steps) {
      ops_.wait(ops_.send(passes, ring[(at + 1) % steps], tag, bytes), brought);
      here = ops_.receive(passes, ring[(at + steps - 1) % steps], tag, bytes);
      ops_.wait(here, brought);
    }
    if (step > 0) pending_.push_back(brought);
    const auto all = static_cast<std::uint64_t>(scores.count);
    compute(use, Picos{static_cast<std::int64_t>(part_of_count(all, steps, step))});
  }
}

std::uint64_t RankTraining::kv_bytes(const StageUnit& unit, bool backward) const {
  const std::uint64_t bytes = bytes_of_values(
      2 * tokens_of_rank(s_) * s_.model.kv_hidden * unit.layers, s_.model.value_bytes);
  return part_of_count(backward ? 2 * bytes : bytes, s_.by.tensor, tensor_);
}

std::uint64_t RankTraining::hop_bytes() const {
  return s_.by.sequence ? part_of_count(activation_, s_.by.tensor, tensor_) : activation_;
}

PipelineShape RankTraining::pipeline() const {
  return {s_.by.pipeline, s_.by.chunks, s_.step.micro_batches};
}

std::uint32_t RankTraining::rank_at(const PipelineHop& hop) const {
  return static_cast<std::uint32_t>(hop.stage * stage_ranks_ + ops_.rank() % stage_ranks_);
}

// The rank receives when its computing comes to need it.
void RankTraining::receive(const PipelinePass& pass) {
  const auto hop = hop_of(pipeline(), stage_, pass, true);
  if (!hop) return;
  const std::uint32_t op = ops_.receive(use_of_hop(pass), rank_at(*hop), hop->tag, hop_bytes());
  ops_.wait(op, last_);
  pending_.push_back(op);
}

void RankTraining::send(const PipelinePass& pass) {
  const auto hop = hop_of(pipeline(), stage_, pass, false);
  if (!hop) return;
  ops_.wait(ops_.send(use_of_hop(pass), rank_at(*hop), hop->tag, hop_bytes()), last_);
}

}  // namespace paceline::workload
