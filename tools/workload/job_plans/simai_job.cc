#include "tools/workload/job_plans/simai_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tools/workload/job_plans/simai_passes.h"
#include "tools/workload/jobs/import_limits.h"
#include "tools/workload/models/rank_groups.h"

namespace paceline::workload {

namespace {

// A forward collective of fewer bytes is made so large, in the policy of transformers.
constexpr std::uint64_t kLeastForwardBytes = 4096;

bool communicates(const SimaiPhase& phase) {
  return phase.op && phase.bytes != 0 && phase.op != CollectiveOp::broadcast;
}

constexpr Picos nanos(std::uint64_t ns) { return Picos{static_cast<std::int64_t>(ns) * 1000}; }

class SimaiJob {
 public:
  SimaiJob(const SimaiWorkload& workload, std::uint32_t ranks) : w_(workload) {
    out_.value.ranks = ranks;
  }

  Imported<Job> make(std::uint32_t iterations) {
    check();
    auto stretches = simai_stretches(w_);
    stretches_ = std::move(stretches.value);
    for (std::string& error : stretches.errors) out_.errors.push_back(std::move(error));
    check_size(iterations);
    if (!out_.ok()) return std::move(out_);
    dp_ = out_.value.ranks / (w_.tp * w_.pp);
    add_groups();
    for (const SimaiLayer& layer : w_.layers) out_.value.names.push_back(layer.name);
    out_.value.names.emplace_back("pipeline: activations");
    out_.value.names.emplace_back("pipeline: gradients");
    for (std::uint32_t rank = 0; rank < out_.value.ranks; ++rank) add_rank(rank, iterations);
    std::sort(out_.value.waits.begin(), out_.value.waits.end());
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  void check() {
    const std::uint32_t ranks = out_.value.ranks;
    const std::uint32_t divisor = w_.tp * w_.pp;
    if (ranks % divisor != 0) {
      out_.errors.push_back(fmt::format("{} ranks: expected a multiple of {}, of TP {} times PP {}",
                                        ranks, divisor, w_.tp, w_.pp));
      return;
    }
    if (ranks / divisor % w_.ep != 0) {
      out_.errors.push_back(
          fmt::format("{} ranks are {} of data parallelism: expected a multiple "
                      "of EP {}",
                      ranks, ranks / divisor, w_.ep));
    }
    if (w_.all_gpus != 0 && w_.all_gpus != ranks) {
      out_.warnings.push_back(
          fmt::format("written for {} GPUs and run on {} ranks", w_.all_gpus, ranks));
    }
    if (w_.pp > 1 && !has_pipeline(w_)) {
      out_.warnings.push_back(fmt::format(
          "{} stages of a pipeline: without pp_comm they send nothing to one another", w_.pp));
    }
    std::uint32_t broadcasts = 0;
    for (const SimaiLayer& layer : w_.layers) {
      for (const SimaiPhase* phase :
           {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
        if (phase->op == CollectiveOp::broadcast) ++broadcasts;
      }
    }
    if (broadcasts != 0) {
      out_.warnings.push_back(
          fmt::format("{} times BROADCAST: no communication, as in SimAI", broadcasts));
    }
  }

  // Three computations a layer, and for each collective one that is its delay; a send and a receive
  // for each pass, forward and backward.
  void check_size(std::uint32_t iterations) {
    std::uint64_t ops = 4 * stretches_.size();
    for (const SimaiLayer& layer : w_.layers) {
      ops += 3;
      for (const SimaiPhase* phase :
           {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
        if (communicates(*phase)) ops += 2;
      }
    }
    const std::uint64_t each = std::uint64_t{out_.value.ranks} * iterations;
    if (ops <= kMostJobOps / each) return;
    out_.errors.push_back(fmt::format("about {:.3g} operations of {} ranks: at most {} fit",
                                      static_cast<double>(ops) * static_cast<double>(each),
                                      out_.value.ranks, kMostJobOps));
  }

  // The groups of each kind, and which one each rank is in.
  void add_groups() {
    add_groups(SimaiGroup::tp, {1, w_.tp});
    add_groups(SimaiGroup::dp, {w_.tp, dp_});
    add_groups(SimaiGroup::ep, {w_.tp, w_.ep});
    add_groups(SimaiGroup::dp_ep, {std::uint64_t{w_.tp} * w_.ep, dp_ / w_.ep});
  }

  void add_groups(SimaiGroup kind, const RankDigit& digit) {
    Job& job = out_.value;
    group_of_[static_cast<std::size_t>(kind)] =
        append_groups(groups_of_ranks(job.ranks, {digit}), job.groups);
  }

  std::uint32_t add(const JobOp& op) {
    out_.value.ops.push_back(op);
    return static_cast<std::uint32_t>(out_.value.ops.size() - 1);
  }
  void wait(std::uint32_t op, std::uint32_t before) {
    if (before != kNone) out_.value.waits.emplace_back(op, before);
  }

  void add_rank(std::uint32_t rank, std::uint32_t iterations) {
    rank_ = rank;
    last_ = kNone;
    std::vector<std::uint32_t> updated(w_.layers.size(), kNone);  // by layer
    for (std::uint32_t i = 0; i < iterations; ++i) {
      for (const SimaiStretch& stretch : stretches_) {
        receive(stretch, false);
        for (std::uint32_t layer = stretch.begin; layer < stretch.end; ++layer) {
          add_blocking(layer, w_.layers[layer].forward, updated[layer], true);
        }
        send(stretch, false);
      }
      for (std::size_t s = stretches_.size(); s-- > 0;) {
        const SimaiStretch& stretch = stretches_[s];
        receive(stretch, true);
        for (std::uint32_t layer = stretch.end; layer-- > stretch.begin;) {
          add_blocking(layer, w_.layers[layer].input_gradient, kNone, false);
          updated[layer] = add_weight_gradient(layer);
        }
        send(stretch, true);
      }
    }
  }

  // The rank's next computing waits for what arrives, but for nothing that it sends.
  void receive(const SimaiStretch& stretch, bool backward) {
    const std::uint32_t op = add_hop(stretch, backward, true);
    if (op != kNone) last_ = op;
  }
  void send(const SimaiStretch& stretch, bool backward) { add_hop(stretch, backward, false); }

  // kNone if there is no such hop.
  std::uint32_t add_hop(const SimaiStretch& stretch, bool backward, bool arrives) {
    if (!stretch.is_pass) return kNone;
    const std::uint32_t stage_ranks = w_.tp * dp_;
    PipelinePass pass = stretch.pass;
    pass.backward = backward;
    const auto hop = hop_of(pipeline_of(w_), rank_ / stage_ranks, pass, arrives);
    if (!hop) return kNone;
    const std::uint32_t op =
        add({.kind = arrives ? JobOpKind::receive : JobOpKind::send,
             .rank = rank_,
             .peer = hop->stage * stage_ranks + rank_ % stage_ranks,
             .tag = hop->tag,
             .bytes = w_.pp_comm,
             .name = static_cast<std::uint32_t>(w_.layers.size()) + (backward ? 1 : 0)});
    wait(op, last_);
    return op;
  }

  std::uint32_t add_compute(std::uint32_t layer, std::uint64_t ns) {
    const std::uint32_t op =
        add({.rank = rank_, .duration = nanos(ns), .name = layer, .line = w_.layers[layer].line});
    wait(op, last_);
    last_ = op;
    return op;
  }

  // kNone if the phase has no communication.
  std::uint32_t add_collective(std::uint32_t layer, const SimaiPhase& phase, bool forward) {
    if (!communicates(phase)) return kNone;
    const bool raised = forward && w_.policy == SimaiPolicy::hybrid_transformer_fwd_in_bckwd;
    const std::uint32_t op =
        add({.kind = JobOpKind::collective,
             .rank = rank_,
             .group = group_of_[static_cast<std::size_t>(phase.group)][rank_],
             .op = *phase.op,
             .bytes = raised ? std::max(phase.bytes, kLeastForwardBytes) : phase.bytes,
             .name = layer,
             .line = w_.layers[layer].line});
    wait(op, last_);
    return op;
  }

  void add_blocking(std::uint32_t layer, const SimaiPhase& phase, std::uint32_t after,
                    bool forward) {
    const std::uint32_t compute = add_compute(layer, phase.compute_ns);
    if (after != kNone && after != last_) wait(compute, after);
    const std::uint32_t collective = add_collective(layer, phase, forward);
    if (collective == kNone) return;
    last_ = collective;
    add_compute(layer, w_.layers[layer].update_ns);
  }

  // Returns what the next iteration waits for.
  std::uint32_t add_weight_gradient(std::uint32_t layer) {
    const SimaiPhase& phase = w_.layers[layer].weight_gradient;
    const std::uint32_t compute = add_compute(layer, phase.compute_ns);
    const std::uint32_t collective = add_collective(layer, phase, false);
    if (collective == kNone) return compute;
    const std::uint32_t update = add({.rank = rank_,
                                      .duration = nanos(w_.layers[layer].update_ns),
                                      .name = layer,
                                      .line = w_.layers[layer].line});
    wait(update, collective);
    return update;
  }

  const SimaiWorkload& w_;
  std::vector<SimaiStretch> stretches_;
  Imported<Job> out_;
  std::uint32_t dp_ = 1;
  std::array<std::vector<std::uint32_t>, 4> group_of_;  // by SimaiGroup and rank
  std::uint32_t rank_ = 0;
  std::uint32_t last_ = kNone;  // op of the rank that the next one waits for
};

}  // namespace

Imported<Job> job_of_simai(const SimaiWorkload& workload, std::uint32_t ranks,
                           std::uint32_t iterations) {
  return SimaiJob(workload, ranks).make(iterations);
}

}  // namespace paceline::workload
