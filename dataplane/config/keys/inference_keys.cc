#include <array>

#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

using namespace key_unit;

constexpr auto kInferenceKeys = std::to_array<KeySpec>({
    {.path = "workload.job.inference.prefill_nics",
     .field = PACELINE_FIELD(workload.job.inference.prefill_nics),
     .min = 0,
     .max = kHostLimit - 1,
     .used_by = "job",
     .meaning = "The first ranks compute prompts, each request at the rank with the shortest "
                "queue; the others decode, in turn. 0: half of the ranks."},
    {.path = "workload.job.inference.layers",
     .field = PACELINE_FIELD(workload.job.inference.layers),
     .min = 1,
     .max = 1024,
     .used_by = "job",
     .meaning = "Layers."},
    {.path = "workload.job.inference.kv_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.job.inference.kv_bytes),
     .min = 1,
     .max = 1 << 20,
     .used_by = "job",
     .meaning = "Keys and values of a token in a layer: 2 times heads of keys and values, values "
                "of a head, and bytes of a value."},
    {.path = "workload.job.inference.tokens_per_second",
     .field = PACELINE_FIELD(workload.job.inference.tokens_per_second),
     .min = 1,
     .max = 1e9,
     .used_by = "job",
     .meaning = "Tokens of a prompt that a rank computes in a second."},
    {.path = "workload.job.inference.layers_per_transfer",
     .field = PACELINE_FIELD(workload.job.inference.layers_per_transfer),
     .min = 1,
     .max = 1024,
     .used_by = "job",
     .meaning = "Keys and values are sent for this many layers at a time, while the next layers "
                "are computed; `layers`: all at the end."},
    {.path = "workload.job.inference.time_scale",
     .field = PACELINE_FIELD(workload.job.inference.time_scale),
     .min = 1e-3,
     .max = 1e9,
     .used_by = "job",
     .meaning = "Requests arrive this many times as fast as in the trace."},
    {.path = "workload.job.inference.requests",
     .field = PACELINE_FIELD(workload.job.inference.requests),
     .min = 0,
     .max = 1 << 24,
     .used_by = "job",
     .meaning = "The first ones of the trace; 0: all."},
    {.path = "workload.job.inference.reuse",
     .field = PACELINE_FIELD(workload.job.inference.reuse),
     .used_by = "job",
     .meaning = "Blocks of a prompt that a prefill rank has are not computed again. Only "
                "Mooncake's traces have blocks."},
});

}  // namespace

std::span<const KeySpec> inference_keys() { return kInferenceKeys; }

}  // namespace paceline::config
