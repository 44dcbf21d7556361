// Execution traces of Chakra (mlcommons/chakra): a file for each rank, NAME.RANK.et, in which each
// message has its length before it: one GlobalMetadata, then the Nodes.
//
// Compute, memory and metadata nodes become computations of their duration. A collective node
// without `comm_type` is the launch of a collective on the CPU, which another node carries out:
// a computation, too. A barrier becomes an all-reduce of one byte, which is how libraries make it;
// reduce-scatter-block is reduce-scatter of equal blocks, the only one here. Gather and scatter are
// refused: there is no such operation here.
//
// The group of a collective is its `pg_name` in the file of groups, JSON { "pg_name": [ranks] }, or
// all ranks. Where `involved_dim` leaves a dimension of their topology out, pg_name must be there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

struct ChakraOptions {
  // Dependencies on nodes that the file does not have: dropped, else an error.
  bool drop_missing = false;
  // Nodes that wait for themselves, directly or through others, and nodes that wait for those:
  // dependencies on themselves and on later nodes are dropped; else they are an error.
  bool drop_circular = false;
};

struct ChakraFile {
  std::string source;  // the name in errors
  std::string_view bytes;
};

// Traces in the order of ranks. No bytes of groups: none are named.
Imported<Job> parse_chakra_traces(std::span<const ChakraFile> traces, const ChakraFile& groups,
                                  const ChakraOptions& options = {});

// The same of files, one at a time. groups_path "": none.
Imported<Job> read_chakra_traces(std::span<const std::string> paths,
                                 const std::string& groups_path = "",
                                 const ChakraOptions& options = {});

// The files PREFIX.0.et up to PREFIX.(n - 1).et; a number that is left out is an error.
Imported<std::vector<std::string>> find_chakra_traces(const std::string& prefix);

}  // namespace paceline::workload
