#include "dataplane/config/keys/scenario_keys.h"

#include <array>
#include <vector>

#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

using namespace key_unit;

constexpr auto kWorkloadKinds =
    std::to_array<std::string_view>({"incast", "all_to_all", "open_loop", "ring_all_reduce",
                                     "permutation", "flows", "htsim", "job"});
constexpr auto kCdfs = std::to_array<std::string_view>({"websearch", "fb_hadoop", "file"});
constexpr auto kPlacements =
    std::to_array<std::string_view>({"packed", "spread", "random", "file"});
constexpr auto kStartUnits = std::to_array<std::string_view>({"ps", "us"});
constexpr auto kModels = std::to_array<std::string_view>({"llama3-70b"});
constexpr auto kCcKeys = std::to_array<std::string_view>(
    {"algorithm", "profile", "fallback", "fallback_profile", "params"});

constexpr auto kRunKeys = std::to_array<KeySpec>({
    {.path = "name",
     .field = PACELINE_FIELD(name),
     .meaning =
         "Name in tables, results and `--set scenario.NAME.key=value`: letters, digits, - and _."},
    {.path = "seed",
     .field = PACELINE_FIELD(seed),
     .min = 0,
     .max = 9.2e18,
     .meaning = "Seed of everything random. In an experiment it is set once, at the top."},
    {.path = "duration",
     .field = PACELINE_FIELD(duration),
     .min = kNs,
     .max = 1000 * kSecond,
     .meaning = "Virtual time at which the run stops; by default when every message completed."},
    {.path = "max_hops",
     .field = PACELINE_FIELD(max_hops),
     .min = 0,
     .max = 1e15,
     .meaning = "The run fails beyond this many packet hops (link transmissions); 0 = no limit."},
});

constexpr auto kWorkloadKeys = std::to_array<KeySpec>({
    {.path = "workload.kind",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.kind),
     .choices = kWorkloadKinds,
     .meaning = "Implied by `flows_file`, `matrix_file` and `job.file`."},
    {.path = "workload.fan_in",
     .field = PACELINE_FIELD(workload.fan_in),
     .min = 1,
     .max = kHostLimit - 1,
     .used_by = "incast open_loop",
     .meaning = "Senders of an incast; at most hosts - 1."},
    {.path = "workload.receiver",
     .field = PACELINE_FIELD(workload.receiver),
     .min = 0,
     .max = kHostLimit - 1,
     .used_by = "incast",
     .meaning = "The host they send to."},
    {.path = "workload.message_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.message_bytes),
     .min = 1,
     .max = 1e15,
     .used_by = "incast all_to_all permutation open_loop",
     .meaning = "Bytes of each message; all_to_all: mean over the pairs; open_loop: of an incast."},
    {.path = "workload.start_jitter",
     .field = PACELINE_FIELD(workload.start_jitter),
     .min = 0,
     .max = 1000 * kSecond,
     .used_by = "incast all_to_all permutation ring_all_reduce",
     .meaning = "Each host begins at a time uniform in [0, start_jitter]."},
    {.path = "workload.shift",
     .field = PACELINE_FIELD(workload.shift),
     .min = 0,
     .max = kHostLimit - 1,
     .used_by = "permutation",
     .meaning = "Host h sends to h + this, modulo hosts; 0 = drawn."},
    {.path = "workload.skew",
     .field = PACELINE_FIELD(workload.skew),
     .min = 0,
     .max = 8,
     .used_by = "all_to_all",
     .meaning = "Weight of a destination = exp(skew * z), z standard normal. 0 = uniform."},
    {.path = "workload.cdf",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.cdf),
     .choices = kCdfs,
     .used_by = "open_loop",
     .meaning = "Flow sizes. \"file\" is implied by `cdf_file`."},
    {.path = "workload.cdf_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.cdf_file),
     .used_by = "open_loop",
     .meaning = "Lines of `size share`, ending at 1 or at 100."},
    {.path = "workload.load",
     .field = PACELINE_FIELD(workload.load),
     .min = 0,
     .max = 1,
     .used_by = "open_loop",
     .meaning =
         "Payload bytes each host offers, as a share of its link rate (headers come on top).",
     .open_min = true},
    {.path = "workload.window",
     .field = PACELINE_FIELD(workload.window),
     .min = kNs,
     .max = 1000 * kSecond,
     .used_by = "open_loop",
     .meaning = "Arrivals happen in [0, window)."},
    {.path = "workload.incast_load",
     .field = PACELINE_FIELD(workload.incast_load),
     .min = 0,
     .max = 1,
     .used_by = "open_loop",
     .meaning = "Incasts on top, Poisson, of `fan_in` drawn hosts with `message_bytes` each; "
                "payload as a share of all hosts' links."},
    {.path = "workload.all_reduce_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.all_reduce_bytes),
     .min = 0,
     .max = 1e15,
     .used_by = "ring_all_reduce",
     .meaning = "Gradient bytes per rank; either this or `model`."},
    {.path = "workload.model",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.model),
     .choices = kModels,
     .used_by = "ring_all_reduce",
     .meaning =
         "Gradient buckets with the shape of this model, in backward order, 2 bytes a parameter."},
    {.path = "workload.scale",
     .field = PACELINE_FIELD(workload.scale),
     .min = 1,
     .max = 1e12,
     .used_by = "ring_all_reduce",
     .meaning = "Bytes are divided by this."},
    {.path = "workload.chunk_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.chunk_bytes),
     .min = 1,
     .max = kGiB,
     .used_by = "ring_all_reduce",
     .meaning =
         "Largest message of a ring step; chunks are forwarded independently of each other."},
    {.path = "workload.buckets_in_flight",
     .field = PACELINE_FIELD(workload.buckets_in_flight),
     .min = 1,
     .max = 1024,
     .used_by = "ring_all_reduce",
     .meaning = "All-reduces of successive gradient buckets that a rank lets overlap."},
    {.path = "workload.flows_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.flows_file),
     .used_by = "flows",
     .meaning = "Flow list in the text format of the HPCC simulator."},
    {.path = "workload.matrix_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.matrix_file),
     .used_by = "htsim",
     .meaning = "Connection matrix of htsim."},
    {.path = "workload.start_unit",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.start_unit),
     .choices = kStartUnits,
     .used_by = "htsim",
     .meaning = "Unit of its starts; needed if all are below 1000, not all 0; else ps."},
    {.path = "workload.placement",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.placement),
     .choices = kPlacements,
     .meaning = "The NIC of each rank: server by server, rail by rail, drawn, or as "
                "`placement_file` says, which implies it."},
    {.path = "workload.placement_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.placement_file),
     .meaning = "Lines of `rank server nic`, one for each rank."},
    {.path = "workload.per_rail",
     .field = PACELINE_FIELD(workload.per_rail),
     .used_by = "incast all_to_all open_loop ring_all_reduce permutation",
     .meaning = "Each rail has the workload for itself: its ranks are the servers."},
    {.path = "workload.pxn",
     .field = PACELINE_FIELD(workload.pxn),
     .meaning = "To another rail: by NVLink to this server's NIC of that rail, then along it."},
});

constexpr auto kExperimentKeys = std::to_array<KeySpec>({
    {.path = "name", .meaning = "Name of the experiment."},
    {.path = "seed",
     .min = 0,
     .max = 9.2e18,
     .meaning =
         "Every repetition derives its seed from this one; all arms of a repetition share it."},
    {.path = "repetitions",
     .min = 2,
     .max = 100'000,
     .meaning = "Paired replays of each scenario: the unit of the statistics."},
    {.path = "confidence",
     .min = 0.5,
     .max = 0.9999,
     .meaning = "Level of the confidence intervals."},
});

}  // namespace

std::span<const KeySpec> scenario_keys() {
  static const std::vector<KeySpec> keys = [] {
    std::vector<KeySpec> all;
    for (const std::span<const KeySpec> part :
         {std::span<const KeySpec>(kRunKeys), fabric_keys(), transport_keys(),
          std::span<const KeySpec>(kWorkloadKeys), job_keys(), training_keys(), inference_keys(),
          background_keys(), probing_keys()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return keys;
}
std::span<const std::string_view> cc_keys() { return kCcKeys; }
std::span<const std::string_view> workload_kinds() { return kWorkloadKinds; }

std::span<const KeySpec> experiment_keys() { return kExperimentKeys; }

Field experiment_field(Experiment& experiment, std::string_view name) {
  if (name == "seed") return &experiment.seed;
  if (name == "repetitions") return &experiment.repetitions;
  if (name == "confidence") return &experiment.confidence;
  return &experiment.name;
}

}  // namespace paceline::config
