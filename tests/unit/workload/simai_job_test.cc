// Workloads of SimAI as jobs: groups and calls, times of computing, and what NICs and NVLink carry
// by closed forms.
#include "tools/workload/job_plans/simai_job.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/workload/job_plan_samples.h"
#include "tests/unit/workload/training_samples.h"
#include "tools/workload/job_plans/collective_calls.h"

namespace paceline::workload::simai_job_test {
namespace {

using namespace job_plan_samples;
using training_samples::ideal_end;
using Lines = std::vector<std::string>;
using Op = CollectiveOp;
using Ranks = std::vector<std::uint32_t>;

constexpr std::uint32_t kPerServer = 8;

const std::string kGpt13 = "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt";
const std::string kGpt13Sequence = "G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp_A100.txt";
const std::string kGpt175 = "G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt";
const std::string kLlama65 = "L65B-M1-C05_Llama65B_megatron_tp8_pp1_mbs1_A100.txt";
const std::string kLlama7 = "L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt";
const std::string kLlama7Zero = "L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt";

SimaiWorkload simai_file(const std::string& name) {
  auto read = read_simai_workload(
      std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/simai/" + name, {true});
  CAPTURE(name);
  REQUIRE(read.errors == Lines{});
  return std::move(read.value);
}

Job simai_job_of(const SimaiWorkload& workload, std::uint32_t ranks, std::uint32_t iterations = 1) {
  auto job = job_of_simai(workload, ranks, iterations);
  REQUIRE(job.errors == Lines{});
  return std::move(job.value);
}

// The phases of a layer with communication. In their policy of transformers a forward one has at
// least 4 KiB.
std::vector<SimaiPhase> phases_with_calls(const SimaiWorkload& w, const SimaiLayer& layer) {
  std::vector<SimaiPhase> out;
  for (const SimaiPhase* phase : {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
    if (!phase->op || phase->op == Op::broadcast || phase->bytes == 0) continue;
    out.push_back(*phase);
    const bool raised = w.policy == SimaiPolicy::hybrid_transformer_fwd_in_bckwd;
    if (raised && phase == &layer.forward) {
      out.back().bytes = std::max<std::uint64_t>(phase->bytes, 4'096);
    }
  }
  return out;
}

// Ranks that agree with `rank` in everything but their place in the group, by the rule
// rank = tp + TP * (dp + DP * pp), EP and its replicas within DP.
Ranks group_of(const SimaiWorkload& w, SimaiGroup kind, std::uint32_t ranks, std::uint32_t rank) {
  const std::uint32_t dp_degree = ranks / (w.tp * w.pp);
  const auto tp = [&](std::uint32_t r) { return r % w.tp; };
  const auto dp = [&](std::uint32_t r) { return r / w.tp % dp_degree; };
  const auto pp = [&](std::uint32_t r) { return r / (w.tp * dp_degree); };
  Ranks group;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (pp(r) != pp(rank)) continue;
    const bool same = kind == SimaiGroup::tp      ? dp(r) == dp(rank)
                      : tp(r) != tp(rank)         ? false
                      : kind == SimaiGroup::ep    ? dp(r) / w.ep == dp(rank) / w.ep
                      : kind == SimaiGroup::dp_ep ? dp(r) % w.ep == dp(rank) % w.ep
                                                  : true;
    if (same) group.push_back(r);
  }
  return group;
}

// "operation of SIZE ranks" to calls of all groups.
using CallCounts = std::map<std::string, std::size_t>;

CallCounts counts_of(const Job& job) {
  CallCounts counts;
  const auto calls = collective_calls(job);
  REQUIRE(calls.errors == Lines{});
  for (const CollectiveCall& call : calls.value) {
    ++counts[std::string(to_string(call.op)) + " of " + std::to_string(call.ops.size())];
  }
  return counts;
}

TEST_CASE("SimAI jobs: calls by operation and size of the group", "[workload][jobs]") {
  struct Sample {
    std::string file;
    std::uint32_t ranks;
    CallCounts counts;
  };
  // The calls of a rank, times the groups of each kind.
  const Sample samples[] = {
      {kGpt13,
       128,
       {{"all_gather of 8", 16}, {"all_reduce of 8", 16 * (89 + 82)}, {"reduce_scatter of 16", 8}}},
      {kGpt13Sequence,
       64,
       {{"all_gather of 8", 8 * (81 + 80)},
        {"all_reduce of 8", 8 * (9 + 2)},
        {"reduce_scatter of 8", 8 * (80 + 80) + 8}}},
      {kGpt175,
       32,
       {{"all_reduce of 8", 4 * 31}, {"all_gather of 4", 8}, {"reduce_scatter of 4", 8}}},
      {kLlama65,
       16,
       {{"all_reduce of 8", 2 * 31}, {"all_gather of 2", 8}, {"reduce_scatter of 2", 8}}},
      {kLlama7,
       24,
       {{"all_gather of 2", 12}, {"all_reduce of 2", 12 * (73 + 66)}, {"reduce_scatter of 12", 2}}},
      {kLlama7Zero, 8, {{"all_gather of 1", 8 * 12}, {"reduce_scatter of 8", 1}}},
      {"all_gather.txt", 8, {{"all_gather of 8", 19}}},
      {"all_reduce.txt", 8, {{"all_reduce of 8", 19}}},
      {"all_to_all.txt", 16, {{"all_to_all of 16", 19}}},
      {"muti_all_reduce.txt", 32, {{"all_reduce of 4", 8 * 19}}},
      {"microAllReduce.txt", 8, {{"all_reduce of 8", 2}}},
  };
  for (const Sample& sample : samples) {
    CAPTURE(sample.file, sample.ranks);
    CHECK(counts_of(simai_job_of(simai_file(sample.file), sample.ranks)) == sample.counts);
  }
}

TEST_CASE("SimAI jobs: every rank computes what the file says", "[workload][jobs]") {
  struct Sample {
    std::string file;
    std::uint32_t ranks;
    std::int64_t phases_ns;  // all three kinds of compute together
  };
  const Sample samples[] = {
      {kGpt13, 16, 74'645'010 + 73'471'011 + 60'080'012},
      {kGpt13Sequence, 8, 126'525'010 + 125'351'011 + 111'960'012},
      {kGpt175, 8, 50'383'903 + 82'008'007 + 54'420'009},
      {kLlama65, 8, 31'258'008 + 43'984'007 + 32'400'009},
      {kLlama7, 4, 32'842'123 + 35'888'012 + 35'888'012},
      {kLlama7Zero, 4, 127'472'500 + 195'190'000 + 12},
      {"microAllReduce.txt", 8, 1'112'000 + 2 + 2},
      {"all_to_all.txt", 8, 19 * 3},
  };
  for (const Sample& sample : samples) {
    CAPTURE(sample.file);
    const SimaiWorkload w = simai_file(sample.file);
    std::int64_t delays_ns = 0;  // one behind every collective
    for (const SimaiLayer& layer : w.layers) {
      delays_ns += static_cast<std::int64_t>(layer.update_ns * phases_with_calls(w, layer).size());
    }
    constexpr std::uint32_t kIterations = 2;
    const Job job = simai_job_of(w, sample.ranks, kIterations);
    std::vector<std::int64_t> computes(sample.ranks);
    for (const JobOp& op : job.ops) computes[op.rank] += op.duration.count;
    for (const std::int64_t picos : computes) {
      CHECK(picos == kIterations * 1'000 * (sample.phases_ns + delays_ns));
    }
  }
}

// What a rank sends over NVLink and by its NIC.
struct Carried {
  std::uint64_t nvlink = 0;
  std::uint64_t nic = 0;
  friend bool operator==(const Carried&, const Carried&) = default;
};

void carry(Carried& carried, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
  (from / kPerServer == to / kPerServer ? carried.nvlink : carried.nic) += bytes;
}

// The bytes of chunk c of n.
std::uint64_t chunk(std::uint64_t bytes, std::uint64_t n, std::uint64_t c) {
  return (c + 1) * bytes / n - c * bytes / n;
}

// What the member at place i sends: its chunks in a ring, or a block to each peer.
void carry_call(Carried& carried, const SimaiPhase& phase, const Ranks& group, std::uint32_t i) {
  const auto n = static_cast<std::uint32_t>(group.size());
  if (n < 2) return;
  const std::uint64_t s = phase.bytes;
  const std::uint64_t scattered = s - chunk(s, n, i);
  const std::uint64_t gathered = s - chunk(s, n, (i + 1) % n);
  if (phase.op == Op::all_to_all) {
    for (std::uint32_t j = 0; j < n; ++j) {
      if (j != i) carry(carried, group[i], group[j], chunk(s, n, j));
    }
    return;
  }
  const std::uint64_t sent = phase.op == Op::reduce_scatter ? scattered
                             : phase.op == Op::all_gather   ? gathered
                                                            : scattered + gathered;
  carry(carried, group[i], group[(i + 1) % n], sent);
}

TEST_CASE("SimAI jobs: bytes over NVLink and by NICs", "[workload][jobs]") {
  const std::pair<std::string, std::uint32_t> samples[] = {
      {kGpt13, 128},
      {kGpt13Sequence, 32},
      {kGpt175, 32},
      {kLlama65, 16},
      {kLlama7, 24},
      {kLlama7Zero, 16},
      {"all_gather.txt", 16},
      {"all_reduce.txt", 16},
      {"all_to_all.txt", 16},
      {"muti_all_reduce.txt", 16},
      {"microAllReduce.txt", 8},
  };
  for (const auto& [file, ranks] : samples) {
    CAPTURE(file, ranks);
    const SimaiWorkload w = simai_file(file);
    CollectiveSettings one_part;
    one_part.chunk_bytes = std::uint64_t{1} << 40;
    const auto read = plan_job(simai_job_of(w, ranks), servers_of(ranks, kPerServer), one_part,
                               std::uint64_t{1} << 24);
    REQUIRE(read.errors == Lines{});
    std::vector<Carried> carried(ranks);
    for (const PlannedMessage& m : read.value.plan.messages) {
      if (!m.computes) carry(carried[m.src], m.src, m.dst, m.bytes);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Carried expected;
      for (const SimaiLayer& layer : w.layers) {
        for (const SimaiPhase& phase : phases_with_calls(w, layer)) {
          const Ranks group = group_of(w, phase.group, ranks, rank);
          const auto at = std::find(group.begin(), group.end(), rank) - group.begin();
          carry_call(expected, phase, group, static_cast<std::uint32_t>(at));
        }
      }
      CAPTURE(rank, expected.nvlink, expected.nic, carried[rank].nvlink, carried[rank].nic);
      CHECK(carried[rank] == expected);
    }
  }
}

// The bytes that rank 0 sends in the groups of a kind, in GB, by rings or a block to each peer.
double gigabytes_of_first_rank(const Job& job, std::size_t size, std::size_t calls) {
  double bytes = 0;
  std::size_t found = 0;
  for (const JobOp& op : job.ops) {
    if (op.rank != 0 || op.kind != JobOpKind::collective) continue;
    const auto n = static_cast<double>(job.groups[op.group].size());
    if (job.groups[op.group].size() != size) continue;
    ++found;
    bytes += static_cast<double>(op.bytes) * (n - 1) / n;
  }
  CHECK(found == calls);
  return bytes / 1e9;
}

// TP 2, PP 12, DP 384, EP 16. The whole job has 10^8 ops, so
// that each figure comes from the layers and ranks that it is about.
TEST_CASE("SimAI jobs: what a rank of a large training sends", "[workload][jobs]") {
  SimaiWorkload w = simai_file("workload_analytical.txt");
  w.pp_comm = 0;
  SimaiWorkload gradients = w;
  std::erase_if(gradients.layers,
                [](const SimaiLayer& layer) { return !layer.weight_gradient.op; });
  REQUIRE(gradients.layers.size() == 4);
  const Job all = simai_job_of(gradients, 9'216);
  CHECK(gigabytes_of_first_rank(all, 384, 2) == Approx(8.4014).margin(0.00005));
  CHECK(gigabytes_of_first_rank(all, 24, 2) == Approx(55.5662).margin(0.00005));

  w.pp = 1;
  const Job stage = simai_job_of(w, 32);
  CHECK(counts_of(stage)["all_to_all of 16"] == 768 * 2);
  std::erase_if(w.layers,
                [](const SimaiLayer& layer) { return layer.weight_gradient.op.has_value(); });
  CHECK(gigabytes_of_first_rank(simai_job_of(w, 32), 16, 768) == Approx(72.4776).margin(0.00005));
}

// The waits of the first ops.
std::vector<std::pair<std::uint32_t, std::uint32_t>> waits_of_first(const Job& job,
                                                                    std::uint32_t ops) {
  auto waits = job.waits;
  std::erase_if(waits, [ops](const auto& wait) { return wait.first >= ops; });
  return waits;
}

TEST_CASE("SimAI jobs: only the same layer of the next iteration waits for a weight gradient",
          "[workload][jobs]") {
  const auto parsed = parse_simai_workload(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1\n2\n"
      "a -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 800 9\n"
      "b -1 5 ALLREDUCE 100 6 NONE 0 7 NONE 0 9\n",
      "w");
  REQUIRE(parsed.errors == Lines{});
  const Job job = simai_job_of(parsed.value, 2, 2);
  // a forward, b forward, its call, the delay; b's gradients; a's gradients, the call, the delay.
  const std::uint32_t kOps = 10;
  REQUIRE(job.ops.size() == 2 * 2 * kOps);
  CHECK(job.ops[2].kind == JobOpKind::collective);
  CHECK(job.ops[2].bytes == 4'096);  // a forward call of fewer is made so large
  CHECK(job.ops[8].kind == JobOpKind::collective);
  CHECK(job.ops[8].bytes == 800);
  CHECK(std::is_sorted(job.waits.begin(), job.waits.end()));
  CHECK(waits_of_first(job, 12) == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 0},
                                                                                        {2, 1},
                                                                                        {3, 2},
                                                                                        {4, 3},
                                                                                        {5, 4},
                                                                                        {6, 5},
                                                                                        {7, 6},
                                                                                        {8, 7},
                                                                                        {9, 8},
                                                                                        {10, 7},
                                                                                        {10, 9},
                                                                                        {11, 5},
                                                                                        {11, 10}});
}

// What each rank sends to other stages: the messages there, by the rank that gets them.
std::vector<std::map<std::uint32_t, std::size_t>> hops_of(const Job& job, std::uint64_t bytes) {
  std::vector<std::map<std::uint32_t, std::size_t>> hops(job.ranks);
  for (const JobOp& op : job.ops) {
    if (op.kind != JobOpKind::send) continue;
    CHECK(op.bytes == bytes);
    ++hops[op.rank][op.peer];
  }
  return hops;
}

// 2 m (p v - 1) hops, m v of them for each rank and direction, minus those that the first and the
// last part of the model lack.
TEST_CASE("SimAI jobs: what stages of a pipeline send to one another", "[workload][jobs]") {
  SimaiWorkload w = simai_file("workload_analytical.txt");
  w.ep = 1;
  w.tp = 2;
  constexpr std::uint32_t kStage = 4;  // ranks: 2 of tensor, 2 of data parallelism
  constexpr std::uint32_t kStages = 12;
  const Job job = simai_job_of(w, kStages * kStage);
  const auto hops = hops_of(job, 50'331'648);
  std::size_t all = 0;
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    CAPTURE(rank);
    const std::uint32_t stage = rank / kStage;
    const std::uint32_t next = (rank + kStage) % job.ranks;
    const std::uint32_t before = (rank + job.ranks - kStage) % job.ranks;
    CHECK(hops[rank].size() == 2);
    CHECK(hops[rank].at(next) == (stage + 1 == kStages ? 24 * 7 : 24 * 8));
    CHECK(hops[rank].at(before) == (stage == 0 ? 24 * 7 : 24 * 8));
    all += hops[rank].at(next) + hops[rank].at(before);
  }
  CHECK(all == kStage * 2 * 24 * (kStages * 8 - 1));
}

// Three lines before and two behind micro-batches of `layers` layers of two lines, of 10 and 2 ns
// forward and twice that backward.
std::string pipeline_file(std::uint32_t stages, std::uint32_t parts, std::uint32_t micro_batches,
                          std::uint32_t layers) {
  const std::string nothing = " -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n";
  std::string lines = "norm" + nothing;
  for (std::uint32_t i = 0; i < micro_batches; ++i) {
    lines += "embedding_layer" + nothing;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      lines += "attention -1 10 NONE 0 15 NONE 0 5 NONE 0 0\n";
      lines += "mlp -1 2 NONE 0 3 NONE 0 1 NONE 0 0\n";
    }
  }
  lines += "cross_entropy" + nothing;
  const std::uint32_t count = 2 + micro_batches * (1 + 2 * layers);
  return "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: " +
         std::to_string(stages) + " vpp: " + std::to_string(parts) +
         " ga: " + std::to_string(micro_batches) + " pp_comm: 4096.0\n" + std::to_string(count) +
         "\n" + lines;
}

SimaiWorkload pipeline_workload(std::uint32_t stages, std::uint32_t parts,
                                std::uint32_t micro_batches, std::uint32_t layers) {
  auto parsed = parse_simai_workload(pipeline_file(stages, parts, micro_batches, layers), "w");
  REQUIRE(parsed.errors == Lines{});
  REQUIRE(parsed.warnings == Lines{});
  return std::move(parsed.value);
}

// Where messages take no time, (m v + p - 1) passes each way.
TEST_CASE("SimAI jobs: the bubble of a pipeline", "[workload][jobs]") {
  for (std::uint32_t stages = 2; stages <= 5; ++stages) {
    for (std::uint32_t parts = 1; parts <= 3; ++parts) {
      for (std::uint32_t micro_batches = 1; micro_batches <= 11; ++micro_batches) {
        CAPTURE(stages, parts, micro_batches);
        const SimaiWorkload w = pipeline_workload(stages, parts, micro_batches, 2 * parts);
        const Job job = simai_job_of(w, stages);
        const auto plan = plan_job(job, servers_of(stages, 1), {}, std::uint64_t{1} << 24);
        REQUIRE(plan.errors == Lines{});
        const Picos pass = picos_from_nanos(2 * (12 + 24));  // two layers, forward and backward
        const std::uint32_t passes = micro_batches * parts + stages - 1;
        const Picos best{pass.count * passes};
        const Picos took = ideal_end(plan.value.plan);
        if (parts == 1 || micro_batches % stages == 0) {
          CHECK(took == best);
        } else {
          CHECK(took >= best);  // stages wait for a group of micro-batches that is not full
          CHECK(took <= best + Picos{pass.count * parts * stages});
        }
      }
    }
  }
}

TEST_CASE("SimAI jobs: micro-batches that contradict the first line", "[workload][jobs]") {
  SimaiWorkload w = pipeline_workload(2, 2, 3, 4);
  w.ga = 4;
  CHECK(job_of_simai(w, 2, 1).errors ==
        Lines{"pp = 2, ga = 4: expected so many micro-batches, each with a layer embedding_layer "
              "before it; the file has 3"});
  w.ga = 3;
  w.vpp = 3;
  CHECK(job_of_simai(w, 2, 1).errors.size() == 3);
  CHECK(job_of_simai(w, 2, 1).errors.front() ==
        "line 4: vpp = 3: expected a multiple of it of layers in the micro-batch that begins here; "
        "it has 4");
  w.pp_comm = 0;  // then nobody asks
  CHECK(job_of_simai(w, 2, 1).errors == Lines{});
}

TEST_CASE("SimAI jobs: numbers of ranks that do not fit, and remarks", "[workload][jobs]") {
  const SimaiWorkload large = simai_file("workload_analytical.txt");
  CHECK(job_of_simai(large, 100, 1).errors ==
        Lines{"100 ranks: expected a multiple of 24, of TP 2 times PP 12"});
  CHECK(job_of_simai(large, 48, 1).errors ==
        Lines{"48 ranks are 2 of data parallelism: expected a multiple of EP 16"});
  CHECK(job_of_simai(large, 9'216, 1).errors ==
        Lines{"about 1.18e+08 operations of 9216 ranks: at most 16777216 fit"});
  SimaiWorkload few = large;
  few.layers.resize(1);
  few.pp_comm = 0;
  CHECK(job_of_simai(few, 384, 1).warnings ==
        Lines{"written for 9216 GPUs and run on 384 ranks",
              "12 stages of a pipeline: without pp_comm they send nothing to one another"});
  CHECK(job_of_simai(few, 9'216, 1).warnings.size() == 1);
  CHECK(job_of_simai(simai_file(kGpt13), 8, 1).warnings ==
        Lines{"1 times BROADCAST: no communication, as in SimAI"});
  CHECK(job_of_simai(simai_file("all_reduce.txt"), 8, 1).warnings == Lines{});
}

}  // namespace
}  // namespace paceline::workload::simai_job_test
