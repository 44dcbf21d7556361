#include "tools/collective/tune/nccl_table.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tools/collective/tune/collective_tune.h"

namespace paceline::tools {

namespace {

using workload::CollectiveOp;

struct TableLine {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string_view algorithm;
  std::uint32_t channels = 1;
};

std::uint64_t geometric_mean(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(a)) *
                                    std::sqrt(static_cast<double>(b)));
}

// NCCL counts each ring.
std::uint32_t channels_of(const TuneSetting& setting, const workload::GroupShape& shape) {
  return setting.channels * (setting.schedule == "rail_rings" ? shape.per_server : 1);
}

std::vector<TableLine> lines_of(const CollectiveTunePlan& plan,
                                const std::vector<TuneCell>& cells) {
  std::vector<TableLine> lines;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TuneCell& cell = cells[i];
    const bool begins = i == 0 || cells[i - 1].op != cell.op;
    const bool ends = i + 1 == cells.size() || cells[i + 1].op != cell.op;
    TableLine line{cell.op, begins ? 0 : lines.back().last + 1,
                   ends ? std::numeric_limits<std::uint64_t>::max()
                        : geometric_mean(cell.bytes, cells[i + 1].bytes),
                   nccl_algorithm(cell.op, cell.nccl->setting.schedule, plan.group.shape),
                   channels_of(cell.nccl->setting, plan.group.shape)};
    const bool same = !begins && lines.back().algorithm == line.algorithm &&
                      lines.back().channels == line.channels;
    if (same) {
      lines.back().last = line.last;
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace

std::string_view nccl_collective(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "allreduce";
    case CollectiveOp::reduce_scatter:
      return "reducescatter";
    case CollectiveOp::all_gather:
      return "allgather";
    case CollectiveOp::broadcast:
      return "broadcast";
    case CollectiveOp::reduce:
      return "reduce";
    case CollectiveOp::all_to_all:
      break;
  }
  return {};
}

std::string_view nccl_algorithm(CollectiveOp op, std::string_view schedule,
                                const workload::GroupShape& shape) {
  if (nccl_collective(op).empty()) return {};
  if (schedule == "chain") return "ring";
  if (schedule == (shape.per_server == 1 ? "ring" : "rail_rings")) return "ring";
  if (schedule == "double_tree") return "tree";
  if (schedule == "pat" && shape.per_server == 1) return "pat";
  return {};
}

std::string nccl_table(const CollectiveTunePlan& plan, const std::vector<TuneCell>& cells) {
  const config::FabricConfig& fabric = plan.group.scenario.fabric;
  std::string text =
      "# Written by paceline collective tune, for NCCL's example tuner plug-in.\n"
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n";
  for (const TableLine& line : lines_of(plan, cells)) {
    text += fmt::format("{},{},{},{},simple,{},{},{}\n", nccl_collective(line.op), line.first,
                        line.last, line.algorithm, line.channels, fabric.hosts / fabric.nics,
                        fabric.hosts);
  }
  return text;
}

}  // namespace paceline::tools
