// Text workloads of SimAI and ASTRA-sim (aliyun/aicb, aliyun/SimAI).
//
//   line 1    POLICY { model_parallel_NPU_group: TP | ep: N | pp: N | vpp: N | ga: N |
//             all_gpus: N | checkpoints: COUNT {layer} | checkpoint_initiates: COUNT {layer} |
//             pp_comm BYTES }
//   line 2    number of layers
//   a layer   name -1  fwd_ns comm bytes  ig_ns comm bytes  wg_ns comm bytes  update_ns  [policy]
//
// Words are separated by blanks or tabs; only HYBRID_CUSTOMIZED has the policy of a layer.
// comm: NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, alone or with _EP or _DP_EP.
// Bytes are those of the whole buffer of a rank, as nccl-tests count them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

enum class SimaiPolicy : std::uint8_t {
  hybrid_transformer_fwd_in_bckwd,
  hybrid_transformer,
  micro,
  data,
  model,
  hybrid_data_model,
  hybrid_model_data,
  hybrid_dlrm,
  hybrid_dlrm_enhanced,
  distributed_inference,
  hybrid_customized,
};

// Ranks of a collective. TP groups are contiguous; EP groups lie inside DP groups, and the ranks of
// a DP_EP group hold replicas of one expert.
enum class SimaiGroup : std::uint8_t { tp, dp, ep, dp_ep };

// A computation and the collective behind it. The op is broadcast where their older files say
// BROADCAST, a word that their own reader leaves out. No op: NONE.
struct SimaiPhase {
  std::uint64_t compute_ns = 0;
  std::uint64_t bytes = 0;
  std::optional<CollectiveOp> op;
  SimaiGroup group = SimaiGroup::tp;
};

struct SimaiLayer {
  std::string name;
  std::uint32_t line = 0;
  SimaiPhase forward;
  SimaiPhase input_gradient;
  SimaiPhase weight_gradient;
  std::uint64_t update_ns = 0;              // their delay behind each of the three collectives
  SimaiPolicy policy = SimaiPolicy::micro;  // that of the workload, except for HYBRID_CUSTOMIZED
};

struct SimaiWorkload {
  SimaiPolicy policy = SimaiPolicy::micro;
  std::uint32_t tp = 1;
  std::uint32_t ep = 1;
  std::uint32_t pp = 1;
  std::uint32_t vpp = 1;
  std::uint32_t ga = 1;
  std::uint32_t all_gpus = 0;              // 0: the file does not say
  std::uint64_t pp_comm = 0;               // bytes that a rank sends to the next stage
  std::vector<std::uint32_t> checkpoints;  // layers
  std::vector<std::uint32_t> checkpoint_initiates;
  std::vector<SimaiLayer> layers;
};

struct SimaiOptions {
  // Accept a file with fewer layers than its line 2 says, with a warning: one was cut off at the
  // source. More are always an error.
  bool fewer_layers = false;
};

Imported<SimaiWorkload> parse_simai_workload(std::string_view text, const std::string& source,
                                             const SimaiOptions& options = {});
Imported<SimaiWorkload> read_simai_workload(const std::string& path,
                                            const SimaiOptions& options = {});

}  // namespace paceline::workload
