// Makes operations of a job of the nodes of Chakra traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/workload/jobs/chakra/chakra_node.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

// Nodes of each kind that the user should know about.
struct ChakraRemarks {
  std::uint64_t launches = 0;  // collective nodes without comm_type
  std::uint64_t barriers = 0;
  std::uint64_t unknown_durations = 0;
};

class ChakraOps {
 public:
  // Adds groups and names to the job, which has its number of ranks.
  explicit ChakraOps(Job& job) : job_(job) {}

  // The text of a file of groups. Returns what is wrong with it.
  std::vector<std::string> add_groups(std::string_view text, const std::string& source);

  // The operation of a node of this rank; otherwise what is wrong with the node.
  std::optional<JobOp> make(const ChakraNode& node, std::uint32_t rank, std::string& error);

  const ChakraRemarks& remarks() const { return remarks_; }

 private:
  bool fill(const ChakraNode& node, JobOp& op);
  bool duration(const ChakraNode& node, JobOp& op);
  bool message(const ChakraNode& node, bool send, JobOp& op);
  bool size(const ChakraNode& node, JobOp& op);
  bool collective(const ChakraNode& node, JobOp& op);
  bool group(const ChakraNode& node, JobOp& op);
  std::uint32_t everybody();
  std::uint32_t name(std::string_view text);
  bool wrong(std::string what);

  Job& job_;
  std::string error_;
  ChakraRemarks remarks_;
  std::string groups_source_;
  std::map<std::string, std::uint32_t> groups_;
  std::optional<std::uint32_t> everybody_;  // the group of all ranks
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace paceline::workload
