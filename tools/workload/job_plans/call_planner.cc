#include "tools/workload/job_plans/call_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/workload/job_plans/plan_messages.h"
#include "tools/workload/job_plans/sender_degrees.h"
#include "tools/workload/job_plans/uneven_exchange.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kClearToSendBytes = 64;
constexpr std::uint32_t kClearToSendLane = 1U << 31;

std::uint16_t hint_kind(CollectiveOp op, std::uint16_t degree) {
  if (op == CollectiveOp::all_to_all) return kHintAllToAll;
  return degree == 1 ? kHintRing : std::uint16_t{0};
}

}  // namespace

std::vector<std::string> CallPlanner::add(const CollectiveCall& call) {
  number_ = static_cast<std::uint32_t>(out_.calls.size());
  ranks_ = job_.groups[call.group];
  const JobOp& any = job_.ops[call.ops[0]];
  out_.plan.collectives.push_back(
      {any.name == kNoName ? std::string(to_string(call.op)) : job_.names[any.name], Picos{0}});
  out_.calls.push_back({call.op, static_cast<std::uint32_t>(ranks_.size()), call.bytes, call.ops});
  if (ranks_.size() < 2 || call.bytes == 0) return {};  // each op ends where it begins
  const Schedule* const schedule = schedule_of(call);
  if (errors_.empty()) split_unevenly(call, *schedule);
  if (!errors_.empty()) return std::move(errors_);
  const std::uint64_t parts = parts_of_call(call, *schedule);
  const std::uint64_t each = schedule->transfers.size() * (settings_.clear_to_send ? 2 : 1);
  if (parts > most_ || out_.plan.messages.size() + parts * (each + ranks_.size()) > most_) {
    errors_.push_back(
        fmt::format("{}: about {:.3g} messages: at most {} fit; larger chunks make fewer",
                    op_text(job_, call.ops[0]),
                    static_cast<double>(parts) * static_cast<double>(each + ranks_.size()), most_));
    return std::move(errors_);
  }
  const std::uint64_t window = std::uint64_t{settings_.channels} * settings_.window;
  gates_.assign(std::min(parts, window), call.ops);
  const std::vector<std::uint16_t>& degrees = degrees_of(*schedule, parts > 1);
  for (std::uint64_t p = 0; p < parts; ++p) {
    const Part part{static_cast<std::uint32_t>(out_.plan.messages.size()),
                    static_cast<std::uint32_t>(p % settings_.channels),
                    (p + 1) * call.bytes / parts - p * call.bytes / parts,
                    static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(parts)};
    add_part(*schedule, degrees, part);
    add_ends(*schedule, part);
    std::rotate(gates_.begin(), gates_.begin() + 1, gates_.end());
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::uint32_t end = add_join(out_.plan, ranks_[i], number_);
    for (const auto& ends : gates_) add_wait(out_.plan, end, ends[i]);
    out_.spans[call.ops[i]].end = end;
  }
  return {};
}

// The server of each rank of the call.
std::vector<std::uint32_t> CallPlanner::servers_of_ranks() const {
  std::vector<std::uint32_t> servers;
  for (const std::uint32_t rank : ranks_) servers.push_back(servers_[rank]);
  return servers;
}

const std::vector<std::uint16_t>& CallPlanner::degrees_of(const Schedule& schedule,
                                                          bool pipelined) {
  std::vector<std::uint32_t> servers = servers_of_ranks();
  std::map<std::uint32_t, std::uint32_t> numbers;  // in the order in which they first occur
  for (std::uint32_t& server : servers) {
    server = numbers.try_emplace(server, static_cast<std::uint32_t>(numbers.size())).first->second;
  }
  const auto [at, added] = degrees_.try_emplace({&schedule, pipelined, servers});
  if (added) at->second = sender_degrees(schedule, servers, pipelined);
  return at->second;
}

const Schedule* CallPlanner::schedule_of(const CollectiveCall& call) {
  const GroupShape shape = group_shape(servers_of_ranks());
  const Schedule* const custom = settings_.custom;
  if (custom != nullptr && custom->op == call.op && custom->ranks == shape.ranks) {
    custom_used_ = true;
    return custom;
  }
  const auto [at, added] = schedules_.try_emplace({call.op, shape.ranks, shape.per_server});
  if (added) {
    const std::string& name = settings_.algorithms[static_cast<std::size_t>(call.op)];
    ScheduleOptions options;
    options.aggregation = settings_.aggregation;
    options.window = settings_.peers;
    options.in_turn = settings_.step_overhead > Picos{0};
    auto made = make_schedule(call.op, name.empty() ? schedule_names(call.op).front() : name, shape,
                              options);
    for (std::string& error : made.errors) errors_.push_back(std::move(error));
    at->second = std::move(made.value);
  }
  return &at->second;
}

void CallPlanner::split_unevenly(const CollectiveCall& call, const Schedule& schedule) {
  cells_.clear();
  if (settings_.skew == 0 || call.op != CollectiveOp::all_to_all) return;
  if (!is_direct_exchange(schedule)) {
    const std::string& name = settings_.algorithms[static_cast<std::size_t>(call.op)];
    errors_.push_back(fmt::format(
        "workload.job.skew = {}: {} does not send each block straight to its receiver in one "
        "message; allowed with skew are {}",
        settings_.skew,
        &schedule == settings_.custom ? "the all_to_all of workload.job.schedule_file"
                                      : fmt::format("workload.job.all_to_all = \"{}\"", name),
        config::list_names(direct_exchange_names())));
    return;
  }
  if (call.bytes > kMostUnevenBytes) {
    errors_.push_back(fmt::format("{}: with workload.job.skew, at most {} B fit",
                                  op_text(job_, call.ops[0]), kMostUnevenBytes));
    return;
  }
  cells_ = uneven_bytes(schedule, call.bytes, {settings_.skew, settings_.seed, call.draw},
                        call.transposed);
}

std::uint64_t CallPlanner::parts_of_call(const CollectiveCall& call,
                                         const Schedule& schedule) const {
  if (cells_.empty()) return parts_of(schedule, call.bytes, settings_.chunk_bytes);
  const std::uint64_t largest = *std::ranges::max_element(cells_);
  return (largest + settings_.chunk_bytes - 1) / settings_.chunk_bytes;
}

std::uint64_t CallPlanner::bytes_of(const Schedule& schedule, std::uint32_t transfer,
                                    const Part& part) const {
  if (cells_.empty()) return transfer_bytes(schedule, schedule.transfers[transfer], part.bytes);
  return block_bytes(cells_[transfer], part.count, part.number);
}

// gates_.front() holds what the ranks must have ended before they begin this part.
void CallPlanner::add_part(const Schedule& schedule, const std::vector<std::uint16_t>& degrees,
                           const Part& part) {
  const std::vector<std::uint32_t>& gate = gates_.front();
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    if (t.from == t.to) {
      add_join(out_.plan, ranks_[t.from], number_);
      continue;
    }
    PlannedMessage m;
    m.src = ranks_[t.from];
    m.dst = ranks_[t.to];
    m.bytes = bytes_of(schedule, i, part);
    m.lane = part.channel * settings_.queue_pairs + i % settings_.queue_pairs;
    m.collective = number_;
    m.gap = settings_.step_overhead;
    m.hint_degree = degrees[i];
    m.hint_kind = hint_kind(schedule.op, m.hint_degree);
    add_message(out_.plan, m);
  }
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    bool later = false;  // than another of this rank
    for (const std::uint32_t w : schedule.waits_of(t)) {
      add_wait(out_.plan, part.first + i, part.first + w);
      later = later || schedule.transfers[w].from == t.from;
    }
    if (!later) add_wait(out_.plan, part.first + i, gate[t.from]);
    if (!settings_.clear_to_send || servers_[ranks_[t.from]] == servers_[ranks_[t.to]]) continue;
    PlannedMessage ready;
    ready.src = ranks_[t.to];
    ready.dst = ranks_[t.from];
    ready.bytes = kClearToSendBytes;
    ready.lane = kClearToSendLane | part.channel;
    ready.collective = number_;
    const std::uint32_t told = add_message(out_.plan, ready);
    add_wait(out_.plan, told, gate[t.to]);
    add_wait(out_.plan, part.first + i, told);
  }
}

// A rank ends a part when it has received everything and everything that it sent is acknowledged.
// The ends replace the gates.
void CallPlanner::add_ends(const Schedule& schedule, const Part& part) {
  std::vector<bool> arrival_awaited(schedule.transfers.size());
  std::vector<bool> completion_awaited(schedule.transfers.size());
  for (const Transfer& t : schedule.transfers) {
    for (const std::uint32_t w : schedule.waits_of(t)) {
      const bool own = schedule.transfers[w].from == t.from;
      (own ? completion_awaited : arrival_awaited)[w] = true;
    }
  }
  std::vector<std::uint32_t> ends;
  for (const std::uint32_t rank : ranks_) ends.push_back(add_join(out_.plan, rank, number_));
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    if (!completion_awaited[i]) add_wait(out_.plan, ends[t.from], part.first + i);
    if (!arrival_awaited[i] && t.to != t.from) add_wait(out_.plan, ends[t.to], part.first + i);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    add_wait(out_.plan, ends[i], gates_.front()[i]);  // also a rank that neither sends nor receives
  }
  gates_.front() = std::move(ends);
}

}  // namespace paceline::workload
