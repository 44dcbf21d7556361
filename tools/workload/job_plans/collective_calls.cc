#include "tools/workload/job_plans/collective_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::workload {

namespace {

std::string what_of(const JobOp& op) {
  switch (op.kind) {
    case JobOpKind::compute:
      return "compute";
    case JobOpKind::send:
      return fmt::format("send of {} B to rank {}", op.bytes, op.peer);
    case JobOpKind::receive:
      return op.peer == kAnyRank ? fmt::format("receive of {} B from any rank", op.bytes)
                                 : fmt::format("receive of {} B from rank {}", op.bytes, op.peer);
    case JobOpKind::collective:
      return fmt::format("{} of {} B", to_string(op.op), op.bytes);
  }
  return {};
}

// Collects the calls of one group.
class GroupCalls {
 public:
  GroupCalls(const Job& job, std::uint32_t group) : job_(job), ranks_(job.groups[group]) {
    of_rank_.resize(ranks_.size());
    group_ = group;
  }

  void add(std::uint32_t op, std::vector<std::string>& errors) {
    const auto at = std::find(ranks_.begin(), ranks_.end(), job_.ops[op].rank);
    if (at == ranks_.end()) {
      errors.push_back(fmt::format("{}: the rank is not in the group", op_text(job_, op)));
      return;
    }
    of_rank_[static_cast<std::size_t>(at - ranks_.begin())].push_back(op);
  }

  void finish(std::vector<CollectiveCall>& calls, std::vector<std::string>& errors) const {
    for (std::size_t i = 1; i < of_rank_.size(); ++i) {
      if (of_rank_[i].size() == of_rank_[0].size()) continue;
      errors.push_back(fmt::format(
          "rank {} takes part in {} collectives of a group, rank {} in {}: expected the same",
          ranks_[0], of_rank_[0].size(), ranks_[i], of_rank_[i].size()));
      return;
    }
    for (std::size_t k = 0; !of_rank_.empty() && k < of_rank_[0].size(); ++k) {
      const JobOp& first = job_.ops[of_rank_[0][k]];
      CollectiveCall call{group_, first.op, first.bytes, first.draw, first.transposed, {}};
      for (const auto& ops : of_rank_) {
        const JobOp& op = job_.ops[ops[k]];
        if (op.op != first.op || op.bytes != first.bytes) {
          errors.push_back(fmt::format("{} and {} are one call: expected the same",
                                       op_text(job_, of_rank_[0][k]), op_text(job_, ops[k])));
          return;
        }
        if (op.draw != first.draw || op.transposed != first.transposed) {
          errors.push_back(
              fmt::format("{} and {} are one call: expected the same draw and direction",
                          op_text(job_, of_rank_[0][k]), op_text(job_, ops[k])));
          return;
        }
        call.ops.push_back(ops[k]);
      }
      calls.push_back(std::move(call));
    }
  }

 private:
  const Job& job_;
  const std::vector<std::uint32_t>& ranks_;
  std::uint32_t group_;
  std::vector<std::vector<std::uint32_t>> of_rank_;  // ops, by position in the group
};

}  // namespace

std::string op_text(const Job& job, std::uint32_t op) {
  const JobOp& o = job.ops[op];
  const std::string line = o.line == 0 ? std::string() : fmt::format("line {}: ", o.line);
  const std::string name = o.name == kNoName ? std::string() : job.names[o.name] + ", ";
  return fmt::format("rank {} ({}{}{})", o.rank, line, name, what_of(o));
}

config::Read<std::vector<CollectiveCall>> collective_calls(const Job& job) {
  config::Read<std::vector<CollectiveCall>> out;
  std::vector<GroupCalls> groups;
  for (std::uint32_t group = 0; group < job.groups.size(); ++group) groups.emplace_back(job, group);
  for (std::uint32_t op = 0; op < job.ops.size(); ++op) {
    if (job.ops[op].kind == JobOpKind::collective) groups[job.ops[op].group].add(op, out.errors);
  }
  for (const GroupCalls& group : groups) group.finish(out.value, out.errors);
  std::sort(out.value.begin(), out.value.end(),
            [](const CollectiveCall& a, const CollectiveCall& b) { return a.ops[0] < b.ops[0]; });
  return out;
}

}  // namespace paceline::workload
