// Which rank of an inference service computes which request's prompt, and where it finds keys and
// values that are there already: a model of the queues, as the service's scheduler would have it,
// with a fabric that takes no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "tools/workload/inference/request_trace.h"

namespace paceline::workload {

struct InferenceSettings {
  std::uint32_t prefill_ranks = 1;  // the first ones
  std::uint32_t decode_ranks = 1;   // those behind them
  std::uint32_t layers = 1;
  std::uint32_t layers_per_transfer = 1;
  std::uint64_t kv_bytes = 1;  // keys and values of a token in a layer
  std::uint32_t tokens_per_second = 1;
  double time_scale = 1;
  std::uint32_t requests = 0;  // the first ones; 0: all
  bool reuse = true;

  // Into which the layers are cut: a part is sent when it has been computed.
  std::uint32_t parts() const { return (layers + layers_per_transfer - 1) / layers_per_transfer; }
};

// Keys and values that a rank gets from another one.
struct BlockFetch {
  std::uint32_t from = 0;     // a prefill rank
  std::uint32_t request = 0;  // the request whose computing there must have ended
  std::uint64_t tokens = 0;
};

struct PrefillTurn {
  Picos arrival{0};
  Picos begin{0};
  Picos end{0};
  std::uint32_t prefill = 0;  // rank
  std::uint32_t decode = 0;   // rank
  // Tokens of the prompt by how they are obtained; `computed` is at least 1.
  std::uint64_t computed = 0;
  std::uint64_t kept = 0;           // at this rank from an earlier request
  std::vector<BlockFetch> fetches;  // by rank

  std::uint64_t fetched() const;
};

// Requests go to the prefill rank whose queue ends first, the lowest of several, and their keys and
// values to the decode ranks in turn. With `reuse`, a block that the rank has had before is not
// computed; one that another rank has when the computing begins is fetched from the rank that took
// it on first. Ranks forget nothing. The last token is computed always: it gives the answer's
// first. For settings and a trace without inference_errors.
std::vector<PrefillTurn> plan_prefill(const RequestTrace& trace, const InferenceSettings& settings);

// Errors in them, with the names of the scenario's keys.
std::vector<std::string> inference_errors(const RequestTrace& trace,
                                          const InferenceSettings& settings);

// The requests of the trace that are used.
std::uint32_t requests_used(const RequestTrace& trace, const InferenceSettings& settings);

// The time that a rank computes for this many tokens.
Picos prefill_time(std::uint64_t tokens, const InferenceSettings& settings);

}  // namespace paceline::workload
