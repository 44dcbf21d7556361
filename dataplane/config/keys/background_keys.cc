#include <array>

#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

using namespace key_unit;

constexpr auto kBackgroundKinds =
    std::to_array<std::string_view>({"none", "checkpoint", "dataset"});

constexpr auto kBackgroundKeys = std::to_array<KeySpec>({
    {.path = "workload.background.kind",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.background.kind),
     .choices = kBackgroundKinds,
     .used_by = "job",
     .meaning = "Beside the job, ranks write a checkpoint to storage, or storage sends them data."},
    {.path = "workload.background.bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.background.bytes),
     .min = 1,
     .max = 1e15,
     .used_by = "job",
     .meaning =
         "Bytes of each rank. A checkpoint has 14 bytes a parameter (weights, optimizer), over all "
         "ranks."},
    {.path = "workload.background.storage_nics",
     .field = PACELINE_FIELD(workload.background.storage_nics),
     .min = 1,
     .max = kHostLimit - 2,
     .used_by = "job",
     .meaning =
         "The last ranks, where `placement` puts them, are storage; the others have the job."},
    {.path = "workload.background.message_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.background.message_bytes),
     .min = 4096,
     .max = kGiB,
     .used_by = "job",
     .meaning = "Size of a message; messages go to the storage NICs in turn."},
    {.path = "workload.background.outstanding",
     .field = PACELINE_FIELD(workload.background.outstanding),
     .min = 1,
     .max = 4096,
     .used_by = "job",
     .meaning = "Messages in flight between a rank and a storage NIC."},
    {.path = "workload.background.traffic_class",
     .field = PACELINE_FIELD(workload.background.traffic_class),
     .min = 0,
     .max = 6,
     .used_by = "job",
     .meaning = "The job's data is in class 3. Classes without a weight are served first, the "
                "highest before others; see fabric.class_weights."},
    {.path = "workload.background.start",
     .field = PACELINE_FIELD(workload.background.start),
     .min = 0,
     .max = 1000 * kSecond,
     .used_by = "job",
     .meaning = "When it begins."},
});

}  // namespace

std::span<const KeySpec> background_keys() { return kBackgroundKeys; }

}  // namespace paceline::config
