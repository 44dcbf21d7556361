#include "tools/workload/job_plans/job_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "tools/workload/job_plans/call_planner.h"
#include "tools/workload/job_plans/plan_messages.h"
#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

config::Read<JobPlan> JobPlanner::plan() {
  out_.plan.connected = true;
  auto calls = collective_calls(job_);
  calls_ = std::move(calls.value);
  errors_ = std::move(calls.errors);
  add_heads();
  if (errors_.empty()) match_messages();
  if (errors_.empty()) add_calls();
  if (errors_.empty()) {
    add_waits();
    check_ends();
  }
  return {std::move(out_), std::move(errors_)};
}

void JobPlanner::add_calls() {
  CallPlanner calls(job_, servers_, settings_, most_, out_);
  for (const CollectiveCall& call : calls_) {
    first_of_call_.push_back(static_cast<std::uint32_t>(out_.plan.messages.size()));
    errors_ = calls.add(call);
    if (!errors_.empty()) return;
  }
  if (settings_.custom == nullptr || calls.custom_used()) return;
  errors_.push_back(
      fmt::format("workload.job.schedule_file: it is for {} of {} ranks; the job has none",
                  to_string(settings_.custom->op), settings_.custom->ranks));
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
    add_message(out_.plan, m);
    const bool whole = op.kind == JobOpKind::compute || op.kind == JobOpKind::send;
    out_.spans.push_back({whole ? kNoMessage : id, id});
  }
}

// Receives wait for the sends that they belong to, by source and tag, in the order of the ops. A
// receive from any source takes the first send that is left.
void JobPlanner::match_messages() {
  // Sends that are not received yet, by receiver, source and tag.
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
      errors_.push_back(fmt::format("{}: no rank sends it", op_text(job_, id)));
      continue;
    }
    add_receive(id, found->second.front());
    found->second.pop_front();
  }
  for (const auto& [key, ids] : sent) {
    for (const std::uint32_t id : ids) {
      errors_.push_back(fmt::format("{}: no rank receives it", op_text(job_, id)));
    }
  }
}

void JobPlanner::add_receive(std::uint32_t receive, std::uint32_t send) {
  if (job_.ops[send].bytes != job_.ops[receive].bytes) {
    errors_.push_back(fmt::format("{} and {} are one message: expected the same size",
                                  op_text(job_, send), op_text(job_, receive)));
  }
  const std::uint32_t end = add_join(out_.plan, job_.ops[receive].rank, kNoCall);
  out_.spans[receive].end = end;
  add_wait(out_.plan, end, receive);
  add_wait(out_.plan, end, send);
}

void JobPlanner::add_waits() {
  for (const auto& [op, before] : job_.waits) add_wait(out_.plan, op, out_.spans[before].end);
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

config::Read<JobPlan> plan_job(const Job& job, std::span<const std::uint32_t> servers,
                               const CollectiveSettings& settings, std::uint64_t most) {
  return JobPlanner(job, servers, settings, most).plan();
}

}  // namespace paceline::workload
