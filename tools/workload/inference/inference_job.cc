#include "tools/workload/inference/inference_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

// Job::names
enum class InferenceUse : std::uint32_t { prefill, kv_cache, kv_reuse };
const std::vector<std::string> kInferenceUses = {"prefill", "KV cache", "KV reuse"};

constexpr std::uint32_t kNoOp = 0xFFFF'FFFF;

class InferenceOps {
 public:
  explicit InferenceOps(const InferenceSettings& settings)
      : s_(settings), last_computed_(settings.prefill_ranks, kNoOp) {
    job_.ranks = settings.prefill_ranks + settings.decode_ranks;
    job_.names = kInferenceUses;
  }

  void add_request(std::uint32_t number, const TraceRequest& request, const PrefillTurn& turn) {
    const std::vector<std::uint32_t> fetched = add_fetches(number, turn);
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t from = 0, to = 0; from < s_.layers; from = to) {
      to = std::min(from + s_.layers_per_transfer, s_.layers);
      const Picos computing = turn.end - turn.begin;
      const std::uint32_t compute =
          add(InferenceUse::prefill, {.rank = turn.prefill,
                                      .duration = share(computing, to) - share(computing, from),
                                      .start = turn.arrival});
      wait(compute, last_computed_[turn.prefill]);
      for (const std::uint32_t receive : fetched) {
        if (from == 0) wait(compute, receive);
      }
      last_computed_[turn.prefill] = compute;
      sizes.push_back(request.input * s_.kv_bytes * (to - from));
      wait(add(InferenceUse::kv_cache,
               transfer(JobOpKind::send, turn.prefill, turn.decode, number, sizes.back())),
           compute);
    }
    computed_.push_back(last_computed_[turn.prefill]);
    job_.requests.push_back({turn.arrival, static_cast<std::uint32_t>(job_.ops.size()),
                             static_cast<std::uint32_t>(sizes.size())});
    for (const std::uint64_t bytes : sizes) {
      JobOp op = transfer(JobOpKind::receive, turn.decode, turn.prefill, number, bytes);
      op.start = turn.arrival;
      add(InferenceUse::kv_cache, op);
    }
  }

  Job take() {
    std::sort(job_.waits.begin(), job_.waits.end());
    job_.waits.erase(std::unique(job_.waits.begin(), job_.waits.end()), job_.waits.end());
    return std::move(job_);
  }

 private:
  // The receives that computing waits for.
  std::vector<std::uint32_t> add_fetches(std::uint32_t number, const PrefillTurn& turn) {
    std::vector<std::uint32_t> receives;
    for (const BlockFetch& fetch : turn.fetches) {
      const std::uint64_t bytes = fetch.tokens * s_.kv_bytes * s_.layers;
      JobOp send = transfer(JobOpKind::send, fetch.from, turn.prefill, number, bytes);
      JobOp receive = transfer(JobOpKind::receive, turn.prefill, fetch.from, number, bytes);
      send.start = receive.start = turn.arrival;
      wait(add(InferenceUse::kv_reuse, send), computed_[fetch.request]);
      receives.push_back(add(InferenceUse::kv_reuse, receive));
    }
    return receives;
  }

  static JobOp transfer(JobOpKind kind, std::uint32_t rank, std::uint32_t peer, std::uint32_t tag,
                        std::uint64_t bytes) {
    return {.kind = kind, .rank = rank, .peer = peer, .tag = tag, .bytes = bytes};
  }

  // The time of this many layers, from the first on.
  Picos share(Picos all, std::uint32_t layers) const {
    return Picos{all.count / s_.layers * layers + all.count % s_.layers * layers / s_.layers};
  }

  std::uint32_t add(InferenceUse use, JobOp op) {
    op.name = static_cast<std::uint32_t>(use);
    job_.ops.push_back(op);
    return static_cast<std::uint32_t>(job_.ops.size() - 1);
  }

  void wait(std::uint32_t op, std::uint32_t before) {
    if (before != kNoOp) job_.waits.emplace_back(op, before);
  }

  const InferenceSettings& s_;
  Job job_;
  std::vector<std::uint32_t> last_computed_;  // op, by prefill rank
  std::vector<std::uint32_t> computed_;       // the last computing of each request
};

}  // namespace

Imported<Job> job_of_inference(const RequestTrace& trace, const InferenceSettings& settings) {
  Imported<Job> out;
  out.errors = inference_errors(trace, settings);
  if (!out.ok()) return out;
  const std::vector<PrefillTurn> turns = plan_prefill(trace, settings);
  std::uint64_t ops = std::uint64_t{3} * settings.parts() * turns.size();
  for (const PrefillTurn& turn : turns) ops += 2 * turn.fetches.size();
  if (ops > kMostJobOps) {
    out.errors.push_back(fmt::format(
        "workload.job.inference.layers_per_transfer = {}: {} operations of {} requests: at most {} "
        "fit; more layers in a transfer make fewer",
        settings.layers_per_transfer, ops, turns.size(), kMostJobOps));
    return out;
  }
  InferenceOps job(settings);
  for (std::uint32_t i = 0; i < turns.size(); ++i) {
    job.add_request(i, trace.requests[i], turns[i]);
  }
  out.value = job.take();
  return out;
}

}  // namespace paceline::workload
