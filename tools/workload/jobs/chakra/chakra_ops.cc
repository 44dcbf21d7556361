#include "tools/workload/jobs/chakra/chakra_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tools/workload/jobs/chakra/chakra_groups.h"
#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

// Values of comm_type in a collective node.
enum ChakraCollective : std::int64_t {
  kChakraAllReduce = 0,
  kChakraReduce = 1,
  kChakraAllGather = 2,
  kChakraGather = 3,
  kChakraScatter = 4,
  kChakraBroadcast = 5,
  kChakraAllToAll = 6,
  kChakraReduceScatter = 7,
  kChakraReduceScatterBlock = 8,
  kChakraBarrier = 9,
};

const std::map<std::int64_t, CollectiveOp> kChakraOps = {
    {kChakraAllReduce, CollectiveOp::all_reduce},
    {kChakraReduce, CollectiveOp::reduce},
    {kChakraAllGather, CollectiveOp::all_gather},
    {kChakraBroadcast, CollectiveOp::broadcast},
    {kChakraAllToAll, CollectiveOp::all_to_all},
    {kChakraReduceScatter, CollectiveOp::reduce_scatter},
    {kChakraReduceScatterBlock, CollectiveOp::reduce_scatter},
    {kChakraBarrier, CollectiveOp::all_reduce},
};

// "key = value", or the key alone where it is not given.
std::string given(const char* key, const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{} = {}", key, *value) : key;
}

}  // namespace

std::vector<std::string> ChakraOps::add_groups(std::string_view text, const std::string& source) {
  groups_source_ = source;
  const auto groups = parse_chakra_groups(text, source, job_.ranks);
  for (const auto& [name, ranks] : groups.value) {
    groups_.emplace(name, static_cast<std::uint32_t>(job_.groups.size()));
    job_.groups.push_back(ranks);
  }
  return groups.errors;
}

std::optional<JobOp> ChakraOps::make(const ChakraNode& node, std::uint32_t rank,
                                     std::string& error) {
  JobOp op;
  op.rank = rank;
  if (!fill(node, op)) {
    error = std::move(error_);
    return {};
  }
  op.name = name(node.name);
  return op;
}

bool ChakraOps::wrong(std::string what) {
  error_ = std::move(what);
  return false;
}

bool ChakraOps::fill(const ChakraNode& node, JobOp& op) {
  if (node.type == 0 || node.type >= kChakraTypes) {
    return wrong(fmt::format("type {}: expected 1 to {}", node.type, kChakraTypes - 1));
  }
  switch (static_cast<ChakraType>(node.type)) {
    case ChakraType::send:
    case ChakraType::receive:
      return message(node, static_cast<ChakraType>(node.type) == ChakraType::send, op);
    case ChakraType::collective:
      if (node.comm_type) return collective(node, op);
      ++remarks_.launches;
      return duration(node, op);
    default:
      if (node.counts_operations && node.duration_us == 0) ++remarks_.unknown_durations;
      return duration(node, op);
  }
}

bool ChakraOps::duration(const ChakraNode& node, JobOp& op) {
  constexpr std::uint64_t kMostMicros = kMostJobNanos / 1'000;
  if (node.duration_us > kMostMicros) {
    return wrong(
        fmt::format("duration_micros = {}: expected at most {}", node.duration_us, kMostMicros));
  }
  op.duration = picos_from_micros(static_cast<std::int64_t>(node.duration_us));
  return true;
}

bool ChakraOps::message(const ChakraNode& node, bool send, JobOp& op) {
  op.kind = send ? JobOpKind::send : JobOpKind::receive;
  const auto& peer = send ? node.comm_dst : node.comm_src;
  const auto& own = send ? node.comm_src : node.comm_dst;
  if (!peer || *peer < 0 || *peer >= job_.ranks) {
    return wrong(fmt::format("{}: expected a rank in [0 .. {}]",
                             given(send ? "comm_dst" : "comm_src", peer), job_.ranks - 1));
  }
  if (own && *own != op.rank) {
    return wrong(fmt::format("{}: expected {}, the rank of the file",
                             given(send ? "comm_src" : "comm_dst", own), op.rank));
  }
  if (node.comm_tag < 0 || node.comm_tag > std::numeric_limits<std::int32_t>::max()) {
    return wrong(fmt::format("comm_tag = {}: expected 0 or more, of 31 bits", node.comm_tag));
  }
  op.peer = static_cast<std::uint32_t>(*peer);
  op.tag = static_cast<std::uint32_t>(node.comm_tag);
  return size(node, op);
}

bool ChakraOps::size(const ChakraNode& node, JobOp& op) {
  if (!node.comm_size || *node.comm_size < 0 ||
      static_cast<std::uint64_t>(*node.comm_size) > kMostJobBytes) {
    return wrong(fmt::format("{}: expected 0 to {} bytes", given("comm_size", node.comm_size),
                             kMostJobBytes));
  }
  op.bytes = static_cast<std::uint64_t>(*node.comm_size);
  return true;
}

bool ChakraOps::collective(const ChakraNode& node, JobOp& op) {
  op.kind = JobOpKind::collective;
  const std::int64_t type = *node.comm_type;
  const auto known = kChakraOps.find(type);
  if (known == kChakraOps.end()) {
    const bool known_elsewhere = type == kChakraGather || type == kChakraScatter;
    return wrong(fmt::format("comm_type = {}{}: expected 0, 1, 2 or 5 to 9", type,
                             known_elsewhere ? ", gather or scatter" : ""));
  }
  op.op = known->second;
  if (type == kChakraBarrier) {
    ++remarks_.barriers;
    op.bytes = 1;
    return group(node, op);
  }
  return size(node, op) && group(node, op);
}

bool ChakraOps::group(const ChakraNode& node, JobOp& op) {
  if (!node.group || node.group->empty()) {
    if (node.some_dimensions) {
      return wrong("involved_dim leaves a dimension out: expected pg_name");
    }
    op.group = everybody();
    return true;
  }
  const auto known = groups_.find(*node.group);
  if (known == groups_.end()) {
    return wrong(fmt::format("pg_name = \"{}\": expected a group of {}", *node.group,
                             groups_source_.empty() ? "a file of groups" : groups_source_));
  }
  op.group = known->second;
  const auto& ranks = job_.groups[op.group];
  if (std::find(ranks.begin(), ranks.end(), op.rank) != ranks.end()) return true;
  return wrong(
      fmt::format("pg_name = \"{}\": expected a group with rank {} in it", *node.group, op.rank));
}

std::uint32_t ChakraOps::everybody() {
  if (!everybody_) {
    everybody_ = static_cast<std::uint32_t>(job_.groups.size());
    std::vector<std::uint32_t>& all = job_.groups.emplace_back(job_.ranks);
    for (std::uint32_t rank = 0; rank < job_.ranks; ++rank) all[rank] = rank;
  }
  return *everybody_;
}

std::uint32_t ChakraOps::name(std::string_view text) {
  if (text.empty()) return kNoName;
  const auto [at, added] =
      names_.try_emplace(std::string(text), static_cast<std::uint32_t>(job_.names.size()));
  if (added) job_.names.emplace_back(text);
  return at->second;
}

}  // namespace paceline::workload
