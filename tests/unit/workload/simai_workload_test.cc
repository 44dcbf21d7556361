#include "tools/workload/jobs/simai_workload.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

std::string simai_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/simai/" + name;
}

// "operation group" to calls and bytes.
using Calls = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

struct SimaiFigures {
  std::size_t layers = 0;
  std::uint64_t compute[3] = {};
  Calls calls[3];
};

SimaiFigures figures_of(const SimaiWorkload& workload) {
  static const std::map<CollectiveOp, std::string> kOps = {{CollectiveOp::all_reduce, "AR"},
                                                           {CollectiveOp::all_gather, "AG"},
                                                           {CollectiveOp::reduce_scatter, "RS"},
                                                           {CollectiveOp::all_to_all, "A2A"},
                                                           {CollectiveOp::broadcast, "BCAST"}};
  static const std::string kGroups[] = {"tp", "dp", "ep", "dp_ep"};
  SimaiFigures out;
  out.layers = workload.layers.size();
  for (const SimaiLayer& layer : workload.layers) {
    const SimaiPhase* const phases[] = {&layer.forward, &layer.input_gradient,
                                        &layer.weight_gradient};
    for (std::size_t i = 0; i < 3; ++i) {
      out.compute[i] += phases[i]->compute_ns;
      if (!phases[i]->op) continue;
      auto& [calls, bytes] = out.calls[i][kOps.at(*phases[i]->op) + " " +
                                          kGroups[static_cast<std::size_t>(phases[i]->group)]];
      ++calls;
      bytes += phases[i]->bytes;
    }
  }
  return out;
}

TEST_CASE("SimAI workloads: layers, compute times and calls of their own files", "[workload]") {
  const Calls none;
  const std::map<std::string, SimaiFigures> files = {
      {"workload_analytical.txt",
       {1'789,
        {2'235'901'806, 1'914'495'229, 392'398'442},
        {{{"AR tp", {31, 1'208'008'720}},
          {"AG tp", {600, 49'828'331'520}},
          {"RS tp", {384, 48'318'382'080}},
          {"A2A tp", {384, 9'663'676'416}},
          {"A2A ep", {384, 38'654'705'664}}},
         {{"AR tp", {1, 50'331'648}},
          {"RS tp", {408, 38'654'705'664}},
          {"AG tp", {576, 48'620'371'968}},
          {"A2A tp", {384, 9'663'676'416}},
          {"A2A ep", {384, 38'654'705'664}}},
         {{"AG dp", {1, 2'807'758'848}},
          {"RS dp", {1, 5'615'517'696}},
          {"AG dp_ep", {1, 19'327'352'832}},
          {"RS dp_ep", {1, 38'654'705'664}}}}}},
      {"G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt",
       {92,
        {74'645'010, 73'471'011, 60'080'012},
        {{{"BCAST tp", {1, 16'384}}, {"AG tp", {1, 3'248'619'520}}, {"AR tp", {89, 2'026'397'712}}},
         {{"AR tp", {82, 4'947'312'640}}},
         {{"RS dp", {1, 6'497'239'040}}}}}},
      {"G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp_A100.txt",
       {172,
        {126'525'010, 125'351'011, 111'960'012},
        {{{"BCAST tp", {1, 16'384}},
          {"AG tp", {81, 4'926'341'120}},
          {"RS tp", {80, 1'677'721'600}},
          {"AR tp", {9, 348'676'112}}},
         {{"AR tp", {2, 3'269'591'040}},
          {"RS tp", {80, 1'677'721'600}},
          {"AG tp", {80, 1'677'721'600}}},
         {{"RS dp", {1, 6'497'239'040}}}}}},
      {"G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt",
       {33,
        {50'383'903, 82'008'007, 54'420'009},
        {{{"AR tp", {29, 2'145'411'072}}},
         {{"AR tp", {2, 5'738'655'744}}},
         {{"AG dp", {1, 1}}, {"RS dp", {1, 11'175'321'600}}}}}},
      {"L65B-M1-C05_Llama65B_megatron_tp8_pp1_mbs1_A100.txt",
       {33,
        {31'258'008, 43'984'007, 32'400'009},
        {{{"AR tp", {29, 1'395'154'944}}},
         {{"AR tp", {2, 2'381'344'768}}},
         {{"AG dp", {1, 1}}, {"RS dp", {1, 6'236'471'296}}}}}},
      {"L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt",
       {76,
        {32'842'123, 35'888'012, 35'888'012},
        {{{"BCAST tp", {1, 16'384}}, {"AG tp", {1, 6'754'926'592}}, {"AR tp", {73, 1'352'687'632}}},
         {{"AR tp", {66, 7'845'445'632}}},
         {{"RS dp", {1, 13'509'853'184}}}}}},
      {"L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt",
       {12,
        {127'472'500, 195'190'000, 12},
        {none, {{"AG tp", {12, 3'496'004}}}, {{"RS dp", {1, 1'889'785'610}}}}}},
      {"all_gather.txt", {19, {19, 19, 19}, {none, none, {{"AG dp", {19, 2'147'479'552}}}}}},
      {"all_reduce.txt", {19, {19, 19, 19}, {none, none, {{"AR dp", {19, 2'147'479'552}}}}}},
      {"all_to_all.txt", {19, {19, 19, 19}, {none, none, {{"A2A dp", {19, 2'147'479'552}}}}}},
      {"muti_all_reduce.txt", {19, {19, 19, 19}, {none, none, {{"AR dp", {19, 2'147'479'552}}}}}},
      {"microAllReduce.txt", {2, {1'112'000, 2, 2}, {{{"AR tp", {2, 83'886'080}}}, none, none}}},
  };
  for (const auto& [name, expected] : files) {
    CAPTURE(name);
    const bool cut_off = name.starts_with("L65B");
    const auto read = read_simai_workload(simai_path(name), {cut_off});
    REQUIRE(read.errors == Lines{});
    const SimaiFigures found = figures_of(read.value);
    CHECK(found.layers == expected.layers);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(found.compute[i] == expected.compute[i]);
      CHECK(found.calls[i] == expected.calls[i]);
    }
    const bool broadcasts = expected.calls[0].contains("BCAST tp");
    CHECK(read.warnings.size() == (broadcasts || cut_off ? 1 : 0));
  }
}

TEST_CASE("SimAI workloads: the header", "[workload]") {
  const SimaiWorkload w = read_simai_workload(simai_path("workload_analytical.txt")).value;
  CHECK(w.policy == SimaiPolicy::hybrid_transformer_fwd_in_bckwd);
  CHECK(w.tp == 2);
  CHECK(w.ep == 16);
  CHECK(w.pp == 12);
  CHECK(w.vpp == 8);
  CHECK(w.ga == 24);
  CHECK(w.all_gpus == 9'216);
  CHECK(w.pp_comm == 50'331'648);
  const SimaiWorkload short_header =
      read_simai_workload(simai_path("L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt")).value;
  CHECK(short_header.tp == 2);
  CHECK(short_header.all_gpus == 0);
  const auto custom = parse_simai_workload(
      "HYBRID_CUSTOMIZED checkpoints: 2 0 3 checkpoint_initiates: 1 2 pp_comm: 5\n1\n"
      "l0 -1 1000 NONE 0 1 NONE 0 1 ALLREDUCE 1048576 7 DATA\n",
      "w");
  REQUIRE(custom.errors == Lines{});
  CHECK(custom.warnings ==
        Lines{"w: pp = 1 and pp_comm = 5: expected pp_comm where pp > 1 and only there"});
  CHECK(custom.value.checkpoints == std::vector<std::uint32_t>{0, 3});
  CHECK(custom.value.checkpoint_initiates == std::vector<std::uint32_t>{2});
  REQUIRE(custom.value.layers.size() == 1);
  CHECK(custom.value.layers[0].policy == SimaiPolicy::data);
  CHECK(custom.value.layers[0].name == "l0");
  CHECK(custom.value.layers[0].update_ns == 7);
  CHECK(custom.value.layers[0].line == 3);
}

TEST_CASE("SimAI workloads: a file that was cut off is refused, unless asked", "[workload]") {
  const std::string path = simai_path("L65B-M1-C05_Llama65B_megatron_tp8_pp1_mbs1_A100.txt");
  const auto refused = read_simai_workload(path);
  REQUIRE(refused.errors.size() == 1);
  CHECK_THAT(refused.errors[0],
             Catch::Matchers::StartsWith(path + ":35:") &&
                 Catch::Matchers::EndsWith("layers = 839 in line 2: the file has 33"));
  CHECK(read_simai_workload(path, {true}).warnings ==
        Lines{path + ":2: layers = 839: the file has 33"});
}

TEST_CASE("SimAI workloads: words that SimAI itself does not know are warned of", "[workload]") {
  const auto read = parse_simai_workload(
      "DATA\n1\nl0 -1 1 BROADCAST 5 1 ALLREDUCEALLTOALL_EP 6 1 REDUCESCATTER 0 1\n", "w");
  REQUIRE(read.errors == Lines{});
  CHECK(read.warnings == Lines{"w: 1 BROADCAST, which SimAI itself leaves out",
                               "w: 1 ALLREDUCEALLTOALL, which are ALLREDUCE for SimAI"});
  const SimaiLayer& layer = read.value.layers[0];
  CHECK(layer.forward.op == CollectiveOp::broadcast);
  CHECK(layer.input_gradient.op == CollectiveOp::all_reduce);
  CHECK(layer.input_gradient.group == SimaiGroup::ep);
  CHECK(layer.weight_gradient.op == CollectiveOp::reduce_scatter);
}

TEST_CASE("SimAI workloads: what is wrong is named with its place", "[workload]") {
  const auto of = [](const std::string& text) { return parse_simai_workload(text, "w").errors; };
  const std::string row = "l0 -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1";
  const auto layer = [&](const std::string& line) { return of("MICRO\n1\n" + line + "\n"); };
  const auto header = [&](const std::string& keys) {
    return of("HYBRID_TRANSFORMER " + keys + "\n1\n" + row + "\n");
  };
  CHECK(layer(row).empty());
  CHECK(layer(row + "\n" + row) == Lines{"w:4:1: layers = 1 in line 2: here is one more"});
  CHECK(layer("") == Lines{"w:3:1: layers = 1 in line 2: the file has 0"});
  CHECK(layer(row + " DATA") == Lines{"w:3:45: 13 columns: expected 12"});
  CHECK(layer("l0 0 1 NONE 0 1 NONE 0 1 NONE 0 1") == Lines{"w:3:4: dependency = 0: expected -1"});
  CHECK(layer("l0 -1 1 NONE 4 1 NONE 0 1 NONE 0 1") ==
        Lines{"w:3:14: bytes of NONE = \"4\": expected an integer in [0 .. 0]"});
  CHECK(layer("l0 -1 1 GATHER 4 1 NONE 0 1 NONE 0 1") ==
        Lines{"w:3:9: GATHER: expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, the "
              "last four also with _EP or _DP_EP behind"});
  CHECK(layer("l0 -1 1 NONE_EP 0 1 NONE 0 1 NONE 0 1").size() == 1);
  CHECK(layer("l0 -1 -1 NONE 0 1 NONE 0 1 NONE 0 1") ==
        Lines{"w:3:7: compute = \"-1\": expected an integer in [0 .. 1000000000000000]"});
  CHECK(of("MICRO\n0\n") == Lines{"w:2:1: layers = \"0\": expected an integer in [1 .. 16777216]"});
  CHECK(of("MICRO\n") == Lines{"w:1:6: expected a line with the number of layers"});
  CHECK(of("MICRO\n1 2\n") == Lines{"w:2:3: expected a line with the number of layers alone"});
  CHECK(of("") == Lines{"w:1:1: the file is empty: expected a workload of SimAI or ASTRA-sim"});
  CHECK(of("num_ranks 2\n") == Lines{"w:1:1: this seems to be a GOAL schedule: expected a workload "
                                     "of SimAI or ASTRA-sim"});
  CHECK_THAT(of("MACRO\n1\n").at(0), Catch::Matchers::StartsWith("w:1:1: policy MACRO: expected"));
  CHECK(of(std::string("MICRO\n1\nl\0", 10)) == Lines{"w: byte 9: a NUL byte: expected text"});

  CHECK(header("ep: 2 ep: 3") == Lines{"w:1:26: ep is given twice"});
  CHECK(header("ep:") == Lines{"w:1:23: expected a number behind ep:"});
  CHECK_THAT(header("ep 2").at(0),
             Catch::Matchers::StartsWith("w:1:20: unknown word ep: expected"));
  CHECK(header("checkpoints: 3 1 2") ==
        Lines{"w:1:33: checkpoints = \"3\": expected an integer in [0 .. 2]"});
  CHECK(header("pp: 3 all_gpus: 8 pp_comm 1") ==
        Lines{"w:1:1: all_gpus = 8: expected a multiple of TP * pp = 3"});
  CHECK(header("ep: 3 all_gpus: 8") ==
        Lines{"w:1:1: ep = 3: expected a divisor of all_gpus / (TP * pp) = 8"});
}

}  // namespace
}  // namespace paceline::workload
