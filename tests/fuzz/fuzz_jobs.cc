// Jobs and algorithms of collectives in files of others: what is accepted obeys the rules of Job
// and Schedule.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tools/workload/jobs/chakra_trace.h"
#include "tools/workload/jobs/goal_file.h"
#include "tools/workload/jobs/msccl_file.h"
#include "tools/workload/jobs/simai_workload.h"

namespace {

using namespace paceline::workload;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_job(const Job& job) {
  require(job.ranks != 0);
  for (const JobOp& op : job.ops) {
    require(op.rank < job.ranks && op.duration.count >= 0);
    require(op.name == kNoName || op.name < job.names.size());
    if (op.kind == JobOpKind::send) require(op.peer < job.ranks);
    if (op.kind == JobOpKind::receive) require(op.peer < job.ranks || op.peer == kAnyRank);
    if (op.kind == JobOpKind::collective) {
      const auto& ranks = job.groups.at(op.group);
      require(std::find(ranks.begin(), ranks.end(), op.rank) != ranks.end());
    }
  }
  require(std::is_sorted(job.waits.begin(), job.waits.end()));
  require(std::adjacent_find(job.waits.begin(), job.waits.end()) == job.waits.end());
  for (const auto& [op, before] : job.waits) {
    require(before < op && op < job.ops.size() && job.ops[op].rank == job.ops[before].rank);
  }
}

void read_goal(std::string_view text) {
  const auto read = parse_goal(text, "fuzz");
  if (read.ok()) check_job(read.value);
}

// The bytes of all ranks are the same.
void read_chakra(std::string_view bytes, const ChakraOptions& options) {
  const std::vector<ChakraFile> traces = {{"fuzz.0", bytes}, {"fuzz.1", bytes}};
  const auto read = parse_chakra_traces(traces, {"groups", R"({"0": [0, 1]})"}, options);
  if (read.ok()) check_job(read.value);
}

void read_groups(std::string_view text) {
  const std::string_view trace("\0", 1);
  const auto read =
      parse_chakra_traces(std::vector<ChakraFile>(3, {"fuzz", trace}), {"groups", text});
  for (const auto& group : read.value.groups) {
    require(!group.empty() && group.size() <= 3);
    for (const std::uint32_t rank : group) require(rank < 3);
  }
}

void read_simai(std::string_view text) {
  const auto read = parse_simai_workload(text, "fuzz", {text.size() % 2 == 0});
  if (!read.ok()) return;
  require(!read.value.layers.empty() && read.value.tp != 0 && read.value.pp != 0);
  for (const SimaiLayer& layer : read.value.layers) {
    for (const SimaiPhase* phase :
         {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
      require(phase->op || phase->bytes == 0);
    }
  }
}

std::uint32_t places(const Schedule& schedule, ScheduleBuffer buffer) {
  return buffer == ScheduleBuffer::scratch ? schedule.scratch : schedule.blocks;
}

void read_msccl(std::string_view text) {
  const auto read = parse_msccl(text, "fuzz");
  if (!read.ok()) return;
  const Schedule& schedule = read.value.schedule;
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    require(t.from < schedule.ranks && t.to < schedule.ranks && t.pieces != 0);
    require(t.first_piece + t.pieces <= schedule.pieces.size());
    require(t.first_wait + t.waits <= schedule.waits.size());
    for (const Piece& piece : schedule.pieces_of(t)) {
      require(piece.block < schedule.blocks);
      require(piece.source < places(schedule, piece.source_buffer));
      require(piece.target < places(schedule, piece.target_buffer));
    }
    for (const std::uint32_t other : schedule.waits_of(t)) {
      require(other < i);
      require(schedule.transfers[other].from == t.from || schedule.transfers[other].to == t.from);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // The first byte, '0' to '5', chooses the reader.
  switch (data[0] % 6) {
    case 0:
      read_goal(text);
      break;
    case 1:
      read_chakra(text, {});
      break;
    case 2:
      read_chakra(text, {.drop_missing = true, .drop_circular = true});
      break;
    case 3:
      read_groups(text);
      break;
    case 4:
      read_simai(text);
      break;
    default:
      read_msccl(text);
      break;
  }
  return 0;
}
