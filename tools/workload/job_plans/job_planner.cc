#include "tools/workload/job_plans/job_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "tools/workload/job_plans/sender_degrees.h"
#include "tools/workload/job_plans/uneven_exchange.h"
#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kClearToSendBytes = 64;
constexpr std::uint32_t kClearToSendLane = 1U << 31;
constexpr std::uint32_t kNoCall = 0xFFFF'FFFF;

PlannedMessage compute_message(std::uint32_t rank, Picos duration, std::uint32_t call) {
  PlannedMessage m;
  m.src = m.dst = rank;
  m.gap = duration;
  m.computes = true;
  m.collective = call;
  return m;
}

std::uint16_t hint_kind(CollectiveOp op, std::uint16_t degree) {
  if (op == CollectiveOp::all_to_all) return kHintAllToAll;
  return degree == 1 ? kHintRing : std::uint16_t{0};
}

// The most blocks that one transfer moves.
std::uint32_t largest_transfer(const Schedule& schedule) {
  std::uint32_t most = 1;
  for (const Transfer& t : schedule.transfers) {
    if (t.from != t.to) most = std::max(most, t.pieces);
  }
  return most;
}

}  // namespace

std::uint32_t JobPlanner::add(const PlannedMessage& message) {
  out_.plan.messages.push_back(message);
  return static_cast<std::uint32_t>(out_.plan.messages.size() - 1);
}

std::uint32_t JobPlanner::add_join(std::uint32_t rank, std::uint32_t call) {
  return add(compute_message(rank, Picos{0}, call));
}

void JobPlanner::wait(std::uint32_t message, std::uint32_t after) {
  PlannedMessage& m = out_.plan.messages[message];
  if (m.after == kNoMessage) {
    m.after = after;
  } else {
    out_.plan.joins.push_back({message, after});
  }
}

config::Read<JobPlan> JobPlanner::plan() {
  out_.plan.connected = true;
  auto calls = collective_calls(job_);
  calls_ = std::move(calls.value);
  errors_ = std::move(calls.errors);
  add_heads();
  if (errors_.empty()) match_messages();
  for (std::uint32_t call = 0; call < calls_.size() && errors_.empty(); ++call) add_call(call);
  if (settings_.custom != nullptr && !custom_used_ && errors_.empty()) {
    errors_.push_back(
        fmt::format("workload.job.schedule_file: it is for {} of {} ranks; the job has none",
                    to_string(settings_.custom->op), settings_.custom->ranks));
  }
  if (errors_.empty()) {
    add_waits();
    check_ends();
  }
  return {std::move(out_), std::move(errors_)};
}

// One message for every op: computing, what is sent, or the place where the op begins.
void JobPlanner::add_heads() {
  for (std::uint32_t id = 0; id < job_.ops.size(); ++id) {
    const JobOp& op = job_.ops[id];
    PlannedMessage m = compute_message(op.rank, op.duration, kNoCall);
    // What a rank sends to itself has no cost.
    if (op.kind == JobOpKind::send && op.peer != op.rank) {
      m = PlannedMessage{};
      m.src = op.rank;
      m.dst = op.peer;
      m.bytes = op.bytes;
      m.collective = kNoCall;
    }
    m.start = op.start;
    add(m);
    const bool whole = op.kind == JobOpKind::compute || op.kind == JobOpKind::send;
    out_.spans.push_back({whole ? kNoMessage : id, id});
  }
}

// Receives wait for the sends they belong to, by source and tag, in the order of the ops; those
// from anybody take the first that is left.
void JobPlanner::match_messages() {
  // Sends that nobody has received yet, by receiver, source and tag.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::deque<std::uint32_t>> sent;
  std::vector<std::uint32_t> receives;
  for (std::uint32_t id = 0; id < job_.ops.size(); ++id) {
    const JobOp& op = job_.ops[id];
    if (op.kind == JobOpKind::send) sent[{op.peer, op.rank, op.tag}].push_back(id);
    if (op.kind == JobOpKind::receive) receives.push_back(id);
  }
  std::stable_partition(receives.begin(), receives.end(), [this](std::uint32_t id) {
    return job_.ops[id].peer != kAnyRank && job_.ops[id].tag != kAnyTag;
  });
  for (const std::uint32_t id : receives) {
    const JobOp& op = job_.ops[id];
    auto found = sent.end();
    if (op.peer != kAnyRank && op.tag != kAnyTag) {
      found = sent.find({op.rank, op.peer, op.tag});
    } else {
      for (auto at = sent.lower_bound({op.rank, 0, 0});
           at != sent.end() && std::get<0>(at->first) == op.rank; ++at) {
        const auto& [to, from, tag] = at->first;
        const bool fits = (op.peer == kAnyRank || op.peer == from) &&
                          (op.tag == kAnyTag || op.tag == tag) && !at->second.empty();
        if (fits && (found == sent.end() || at->second.front() < found->second.front())) found = at;
      }
    }
    if (found == sent.end() || found->second.empty()) {
      errors_.push_back(fmt::format("{}: nobody sends it", op_text(job_, id)));
      continue;
    }
    add_receive(id, found->second.front());
    found->second.pop_front();
  }
  for (const auto& [key, ids] : sent) {
    for (const std::uint32_t id : ids) {
      errors_.push_back(fmt::format("{}: nobody receives it", op_text(job_, id)));
    }
  }
}

void JobPlanner::add_receive(std::uint32_t receive, std::uint32_t send) {
  if (job_.ops[send].bytes != job_.ops[receive].bytes) {
    errors_.push_back(fmt::format("{} and {} are one message: expected the same size",
                                  op_text(job_, send), op_text(job_, receive)));
  }
  const std::uint32_t end = add_join(job_.ops[receive].rank, kNoCall);
  out_.spans[receive].end = end;
  wait(end, receive);
  wait(end, send);
}

void JobPlanner::add_waits() {
  for (const auto& [op, before] : job_.waits) wait(op, out_.spans[before].end);
}

std::vector<std::uint32_t> JobPlanner::servers_of(const std::vector<std::uint32_t>& ranks) const {
  std::vector<std::uint32_t> servers;
  for (const std::uint32_t rank : ranks) servers.push_back(servers_[rank]);
  return servers;
}

const Schedule* JobPlanner::schedule_of(const CollectiveCall& call) {
  const GroupShape shape = group_shape(servers_of(job_.groups[call.group]));
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

void JobPlanner::split_unevenly(const CollectiveCall& call, const Schedule& schedule) {
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

std::uint64_t JobPlanner::parts_of_call(const CollectiveCall& call,
                                        const Schedule& schedule) const {
  if (cells_.empty()) return parts_of(schedule, call.bytes, settings_.chunk_bytes);
  const std::uint64_t largest = *std::ranges::max_element(cells_);
  return (largest + settings_.chunk_bytes - 1) / settings_.chunk_bytes;
}

std::uint64_t JobPlanner::bytes_of(const Schedule& schedule, std::uint32_t transfer,
                                   const Part& part) const {
  if (cells_.empty()) return transfer_bytes(schedule, schedule.transfers[transfer], part.bytes);
  return block_bytes(cells_[transfer], part.count, part.number);
}

void JobPlanner::add_call(std::uint32_t number) {
  const CollectiveCall& call = calls_[number];
  const std::vector<std::uint32_t>& ranks = job_.groups[call.group];
  first_of_call_.push_back(static_cast<std::uint32_t>(out_.plan.messages.size()));
  const JobOp& any = job_.ops[call.ops[0]];
  out_.plan.collectives.push_back(
      {any.name == kNoName ? std::string(to_string(call.op)) : job_.names[any.name], Picos{0}});
  out_.calls.push_back({call.op, static_cast<std::uint32_t>(ranks.size()), call.bytes, call.ops});
  if (ranks.size() < 2 || call.bytes == 0) return;  // each op ends where it begins
  const Schedule* const schedule = schedule_of(call);
  if (errors_.empty()) split_unevenly(call, *schedule);
  if (!errors_.empty()) return;
  const std::uint64_t parts = parts_of_call(call, *schedule);
  const std::uint64_t each = schedule->transfers.size() * (settings_.clear_to_send ? 2 : 1);
  if (parts > most_ || out_.plan.messages.size() + parts * (each + ranks.size()) > most_) {
    errors_.push_back(
        fmt::format("{}: about {:.3g} messages: at most {} fit; larger chunks make fewer",
                    op_text(job_, call.ops[0]),
                    static_cast<double>(parts) * static_cast<double>(each + ranks.size()), most_));
    return;
  }
  const std::uint64_t window = std::uint64_t{settings_.channels} * settings_.window;
  gates_.assign(std::min(parts, window), call.ops);
  degrees_ = sender_degrees(*schedule, servers_of(ranks), parts > 1);
  for (std::uint64_t p = 0; p < parts; ++p) {
    const Part part{static_cast<std::uint32_t>(out_.plan.messages.size()),
                    static_cast<std::uint32_t>(p % settings_.channels),
                    (p + 1) * call.bytes / parts - p * call.bytes / parts,
                    static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(parts)};
    add_part(number, *schedule, part);
    add_ends(number, *schedule, part);
    std::rotate(gates_.begin(), gates_.begin() + 1, gates_.end());
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t end = add_join(ranks[i], number);
    for (const auto& ends : gates_) wait(end, ends[i]);
    out_.spans[call.ops[i]].end = end;
  }
}

// gates_.front() has what the ranks must have ended before they begin this part.
void JobPlanner::add_part(std::uint32_t number, const Schedule& schedule, const Part& part) {
  const std::vector<std::uint32_t>& ranks = job_.groups[calls_[number].group];
  const std::vector<std::uint32_t>& gate = gates_.front();
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    if (t.from == t.to) {
      add_join(ranks[t.from], number);
      continue;
    }
    PlannedMessage m;
    m.src = ranks[t.from];
    m.dst = ranks[t.to];
    m.bytes = bytes_of(schedule, i, part);
    m.lane = part.channel * settings_.queue_pairs + i % settings_.queue_pairs;
    m.collective = number;
    m.gap = settings_.step_overhead;
    m.hint_degree = degrees_[i];
    m.hint_kind = hint_kind(schedule.op, m.hint_degree);
    add(m);
  }
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    bool later = false;  // than another of this rank
    for (const std::uint32_t w : schedule.waits_of(t)) {
      wait(part.first + i, part.first + w);
      later = later || schedule.transfers[w].from == t.from;
    }
    if (!later) wait(part.first + i, gate[t.from]);
    if (!settings_.clear_to_send || servers_[ranks[t.from]] == servers_[ranks[t.to]]) continue;
    PlannedMessage ready;
    ready.src = ranks[t.to];
    ready.dst = ranks[t.from];
    ready.bytes = kClearToSendBytes;
    ready.lane = kClearToSendLane | part.channel;
    ready.collective = number;
    const std::uint32_t told = add(ready);
    wait(told, gate[t.to]);
    wait(part.first + i, told);
  }
}

// A rank ends a part when it has received everything and what it sent is acknowledged. Puts the
// ends in the place of the gates.
void JobPlanner::add_ends(std::uint32_t number, const Schedule& schedule, const Part& part) {
  const std::vector<std::uint32_t>& ranks = job_.groups[calls_[number].group];
  std::vector<bool> arrival_awaited(schedule.transfers.size());
  std::vector<bool> completion_awaited(schedule.transfers.size());
  for (const Transfer& t : schedule.transfers) {
    for (const std::uint32_t w : schedule.waits_of(t)) {
      const bool own = schedule.transfers[w].from == t.from;
      (own ? completion_awaited : arrival_awaited)[w] = true;
    }
  }
  std::vector<std::uint32_t> ends;
  for (const std::uint32_t rank : ranks) ends.push_back(add_join(rank, number));
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    if (!completion_awaited[i]) wait(ends[t.from], part.first + i);
    if (!arrival_awaited[i] && t.to != t.from) wait(ends[t.to], part.first + i);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    wait(ends[i], gates_.front()[i]);  // also a rank that neither sends nor receives
  }
  gates_.front() = std::move(ends);
}

// The op that a message belongs to.
std::uint32_t JobPlanner::owner_of(std::uint32_t message) const {
  if (message < job_.ops.size()) return message;
  const auto after = std::upper_bound(first_of_call_.begin(), first_of_call_.end(), message);
  if (after == first_of_call_.begin()) {  // the end of a receive
    return out_.plan.messages[message].after;
  }
  const CollectiveCall& call = calls_[static_cast<std::size_t>(after - first_of_call_.begin() - 1)];
  const std::vector<std::uint32_t>& ranks = job_.groups[call.group];
  const auto rank = std::find(ranks.begin(), ranks.end(), out_.plan.messages[message].src);
  return call.ops[static_cast<std::size_t>(rank - ranks.begin())];
}

// Every message must be able to begin.
void JobPlanner::check_ends() {
  const auto count = static_cast<std::uint32_t>(out_.plan.messages.size());
  const std::vector<OpPair> waits = waits_of(out_.plan);
  std::vector<std::uint32_t> circle;  // ops, each waiting for the next
  for (const std::uint32_t message : find_circle(count, waits, issue_order(count, waits))) {
    if (circle.empty() || circle.back() != owner_of(message)) circle.push_back(owner_of(message));
  }
  if (circle.empty()) return;
  while (circle.size() > 1 && circle.front() == circle.back()) circle.pop_back();
  constexpr std::size_t kMostNamed = 8;
  std::string text = "the job cannot end: ";
  for (std::size_t i = 0; i < std::min(circle.size(), kMostNamed); ++i) {
    text += op_text(job_, circle[i]) + " waits for ";
  }
  if (circle.size() > kMostNamed)
    text += fmt::format("{} others and then for ", circle.size() - kMostNamed);
  errors_.push_back(text + op_text(job_, circle.front()));
}

GroupShape group_shape(std::span<const std::uint32_t> servers) {
  const auto n = static_cast<std::uint32_t>(servers.size());
  std::uint32_t run = 1;
  while (run < n && servers[run] == servers[0]) ++run;
  if (n % run != 0) return {n, 1};
  for (std::uint32_t i = 1; i < n; ++i) {
    const bool begins = i % run == 0;
    if (begins == (servers[i] == servers[i - 1])) return {n, 1};
  }
  return {n, run};
}

std::uint64_t parts_of(const Schedule& schedule, std::uint64_t bytes, std::uint64_t chunk_bytes) {
  const std::uint64_t block = std::max<std::uint64_t>(1, chunk_bytes / largest_transfer(schedule));
  const std::uint64_t part_bytes = block * schedule.blocks;
  return (bytes + part_bytes - 1) / part_bytes;
}

std::vector<OpPair> waits_of(const MessagePlan& plan) {
  std::vector<OpPair> waits;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const std::uint32_t after = plan.messages[id].after;
    if (after != kNoMessage) waits.emplace_back(id, after);
  }
  for (const Join& join : plan.joins) waits.emplace_back(join.message, join.after);
  sort_once(waits);
  return waits;
}

config::Read<JobPlan> plan_job(const Job& job, std::span<const std::uint32_t> servers,
                               const CollectiveSettings& settings, std::uint64_t most) {
  return JobPlanner(job, servers, settings, most).plan();
}

}  // namespace paceline::workload
