// The part of one rank in training: see training_job.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/training/pipeline_order.h"
#include "tools/workload/training/rank_ops.h"
#include "tools/workload/training/stage_units.h"
#include "tools/workload/training/training_settings.h"
#include "tools/workload/training/weight_traffic.h"

namespace paceline::workload {

class RankTraining {
 public:
  // Both must outlive this.
  RankTraining(const TrainingSettings& settings, RankOps& ops);

  void add_iteration();

 private:
  void forward(const PipelinePass& pass);
  void backward(const PipelinePass& pass);
  void begin_unit(std::size_t unit, const PipelinePass& pass);
  void forward_attention(const StageUnit& unit);
  void forward_feed_forward(const StageUnit& unit);
  void backward_attention(const StageUnit& unit);
  void backward_feed_forward(const StageUnit& unit);
  void receive(const PipelinePass& pass);
  void send(const PipelinePass& pass);

  void compute(TrainingUse use, Picos duration);
  void block(std::uint32_t op);  // op follows the last one of the rank's computing
  void begin_tensor_part(TrainingUse use, const StageUnit& unit);
  void end_tensor_part(TrainingUse use, const StageUnit& unit);
  // back: from the ranks of the experts to those of the tokens.
  void exchange_tokens(TrainingUse use, const StageUnit& unit, bool back);
  void attend(const StageUnit& unit, bool backward);
  std::uint64_t kv_bytes(const StageUnit& unit, bool backward) const;
  std::uint64_t hop_bytes() const;
  PipelineShape pipeline() const;
  std::uint32_t rank_at(const PipelineHop& hop) const;

  const TrainingSettings& s_;
  RankOps& ops_;
  std::uint32_t tensor_ = 0;  // place among tensor-parallel ranks
  std::uint32_t stage_ = 0;
  std::uint64_t stage_ranks_ = 1;
  std::uint64_t activation_ = 0;  // bytes of a micro-batch at the rank, all of hidden
  std::vector<PipelinePass> order_;
  std::vector<std::size_t> chunk_end_;  // in units_
  std::vector<StageUnit> units_;        // of all chunks
  WeightTraffic weights_;
  std::uint64_t iteration_ = 0;
  std::uint64_t draw_ = 0;                   // JobOp::draw in the unit that is being made
  std::uint32_t last_ = RankOps::kNone;      // op that the rank's computing waits for
  std::uint32_t computed_ = RankOps::kNone;  // the last computation
  std::uint32_t before_ = RankOps::kNone;    // last_ at the beginning of the last unit
  std::vector<std::uint32_t> pending_;       // further ops that the next one waits for
};

}  // namespace paceline::workload
