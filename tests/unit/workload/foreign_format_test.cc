#include "tools/workload/files/foreign_format.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/workload/cdf.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

struct Known {
  std::string text;
  std::string name;
};

// The beginnings of files that people have.
const Known kFiles[] = {
    {"Nodes 16\nConnections 15\n0->15 start 0 size 2000000\n",
     "a connection matrix of htsim (.cm)"},
    {"# a note\nConnections 1\nNodes 2\n0->1 start 0 size 1\n",
     "a connection matrix of htsim (.cm)"},
    {"Nodes 8\nTiers 3\nPodsize 4\n", "a topology of htsim (.topo)"},
    {"MICRO\n19\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t4096\t1\n",
     "a workload of SimAI or ASTRA-sim"},
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1\n2\n",
     "a workload of SimAI or ASTRA-sim"},
    {"40 8 4 4 68 H100\n32 33 34 35 36 37 38 39 \n0 32 2880Gbps 0.000025ms 0\n",
     "a topology of SimAI"},
    {"num_ranks 2\nrank 0 {\n", "a GOAL schedule"},
    {"<algo name=\"a\">\n", "XML"},
    {"{\"schema\": 1}\n", "JSON"},
    {"[fabric]\nhosts = 4\n", "TOML"},
    {"hosts = 4\n", "TOML"},
    {std::string("\x07\x0a\x05\0\x01", 5), "a binary file"},
};

TEST_CASE("files of other simulators are named", "[workload]") {
  const NodeNumbers star = NodeNumbers::star(4);
  for (const Known& file : kFiles) {
    CAPTURE(file.text);
    CHECK(known_format(file.text) == file.name);
    for (const Lines& errors :
         {parse_hpcc_flows(file.text, "f", star).errors, parse_hpcc_topology(file.text, "f").errors,
          parse_cdf(file.text, "f").errors}) {
      REQUIRE(errors.size() == 1);
      CHECK_THAT(errors[0],
                 Catch::Matchers::Contains(":1: this seems to be " + file.name + ": expected "));
    }
  }
}

TEST_CASE("our own tables are told from each other", "[workload]") {
  const std::string flows = "1\n0 1 3 100 5 0\n";
  const std::string topology = "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
  const std::string sizes = "0 0\n100 1\n";
  const NodeNumbers star = NodeNumbers::star(2);
  CHECK(parse_hpcc_flows(flows, "f", star).ok());
  CHECK(parse_hpcc_topology(topology, "f").ok());
  CHECK(parse_cdf(sizes, "f").ok());
  CHECK(parse_hpcc_flows(topology, "f", star).errors ==
        Lines{"f:1:1: this seems to be a topology of the HPCC simulator: expected a flow list of "
              "the HPCC simulator, whose first line is the number of flows"});
  CHECK(parse_hpcc_topology(sizes, "f").errors ==
        Lines{"f:1:1: this seems to be a distribution of sizes (`size share`): expected a topology "
              "of the HPCC simulator, whose first line is `nodes switches links`"});
  CHECK(parse_cdf(flows, "f").errors ==
        Lines{"f:1:1: this seems to be a flow list of the HPCC simulator: expected lines of `size "
              "share`"});
  // A mistake in the right file is not taken for another kind.
  CHECK(parse_cdf("0 0 1\n100 1\n", "f").errors ==
        Lines{"f:1:1: 3 columns: expected 2, `size share`"});
}

}  // namespace
}  // namespace paceline::workload
