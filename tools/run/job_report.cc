#include "tools/run/job_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "control/diagnosis/robust.h"
#include "tools/run/limiter_shares.h"
#include "tools/run/nic_pace.h"
#include "tools/workload/background.h"

namespace paceline::tools {

namespace {

using diagnosis::divide_by_median;
using diagnosis::largest_of;
using workload::CollectiveOp;
using workload::Job;
using workload::JobOpKind;
using workload::JobPlan;
using workload::kBackgroundTag;

struct Interval {
  Picos begin{0};
  Picos end{0};
};

Picos length(Picos begin, Picos end) { return begin < end ? end - begin : Picos{0}; }

// Sorted, and overlapping ones joined.
void join_overlapping(std::vector<Interval>& list) {
  std::sort(list.begin(), list.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Interval& next : list) {
    if (kept > 0 && next.begin <= list[kept - 1].end) {
      list[kept - 1].end = later(list[kept - 1].end, next.end);
    } else {
      list[kept++] = next;
    }
  }
  list.resize(kept);
}

// The part of the first that is not in the second; both consist of joined intervals.
Picos outside(const std::vector<Interval>& of, const std::vector<Interval>& without) {
  Picos sum{0};
  std::size_t at = 0;
  for (Interval rest : of) {
    while (at < without.size() && without[at].end <= rest.begin) ++at;
    for (std::size_t i = at; i < without.size() && without[i].begin < rest.end; ++i) {
      sum += length(rest.begin, without[i].begin);
      rest.begin = later(rest.begin, without[i].end);
    }
    sum += length(rest.begin, rest.end);
  }
  return sum;
}

double share_of_last_entries(const JobReport& report, std::uint32_t rank) {
  double calls = 0;
  double last = 0;
  for (const CollectiveTime& call : report.calls) {
    if (call.took().count <= 0) continue;
    ++calls;
    if (call.last_rank == rank) ++last;
  }
  return calls == 0 ? 0 : last / calls;
}

void find_late_rank(const JobReport& report, std::vector<Straggler>& out) {
  constexpr double kMuch = 1.1;
  constexpr double kOften = 0.5;
  std::vector<double> computing;
  for (const RankTime& rank : report.ranks) {
    computing.push_back(static_cast<double>(rank.computing.count));
  }
  divide_by_median(computing);
  Straggler late;
  late.number = largest_of(computing);
  late.computing = computing[late.number];
  late.waited_by = share_of_last_entries(report, late.number);
  if (late.computing >= kMuch && late.waited_by >= kOften) out.push_back(late);
}

class JobReader {
 public:
  JobReader(const Job& job, const JobPlan& plan, const PlanTimes& times)
      : job_(job), plan_(plan), times_(times), messages_(*times.plan), records_(*times.records) {}

  JobReport report() {
    JobReport out;
    for (const JobPlan::Span& span : plan_.spans) {
      out.ops.push_back({begin_of(span), end_of(span)});
    }
    read_calls(out);
    if (std::any_of(plan_.spans.begin(), plan_.spans.end(), [this](const JobPlan::Span& span) {
          return records_[span.end].completed.count < 0;
        })) {
      return out;
    }
    out.took = Picos{0};
    std::uint32_t last = kNoMessage;
    for (const JobPlan::Span& span : plan_.spans) {
      if (last == kNoMessage || end_of(span) > out.took) last = span.end;
      out.took = later(out.took, end_of(span));
    }
    read_ranks(out);
    read_kinds(out);
    if (last != kNoMessage) out.path = critical_path(times_, last);
    read_background(out);
    out.first_tokens = first_tokens_of(job_, plan_, records_);
    find_late_rank(out, out.stragglers);
    return out;
  }

 private:
  Picos begin_of(const JobPlan::Span& span) const {
    return span.begin == kNoMessage ? records_[span.end].ready : records_[span.begin].completed;
  }
  Picos end_of(const JobPlan::Span& span) const { return records_[span.end].completed; }

  void read_calls(JobReport& out) const {
    out.calls.resize(plan_.calls.size());
    for (std::size_t c = 0; c < plan_.calls.size(); ++c) {
      CollectiveTime& time = out.calls[c];
      time.ideal = messages_.collectives[c].ideal;
      bool whole = true;
      for (const std::uint32_t op : plan_.calls[c].ops) {
        const Picos entry = begin_of(plan_.spans[op]);
        const Picos end = end_of(plan_.spans[op]);
        whole = whole && end.count >= 0;
        if (entry.count < 0) continue;
        if (time.first_entry.count < 0 || entry < time.first_entry) time.first_entry = entry;
        if (entry > time.last_entry) {
          time.last_entry = entry;
          time.last_rank = job_.ops[op].rank;
        }
        time.end = later(time.end, end);
      }
      if (!whole) time.end = Picos{-1};
    }
  }

  void read_ranks(JobReport& out) const {
    std::vector<std::vector<Interval>> computing(job_.ranks), communicating(job_.ranks),
        waiting(job_.ranks);
    std::vector<Picos> entered(job_.ops.size(), Picos{-1});
    for (std::size_t c = 0; c < plan_.calls.size(); ++c) {
      for (const std::uint32_t op : plan_.calls[c].ops) entered[op] = out.calls[c].last_entry;
    }
    for (std::size_t op = 0; op < job_.ops.size(); ++op) {
      const std::uint32_t rank = job_.ops[op].rank;
      const Interval span{begin_of(plan_.spans[op]), end_of(plan_.spans[op])};
      if (job_.ops[op].kind == JobOpKind::compute) {
        computing[rank].push_back(span);
        continue;
      }
      const Picos from = later(span.begin, earlier(span.end, entered[op]));
      waiting[rank].push_back({span.begin, from});
      communicating[rank].push_back({from, span.end});
    }
    out.ranks.resize(job_.ranks);
    for (std::uint32_t rank = 0; rank < job_.ranks; ++rank) {
      RankTime& time = out.ranks[rank];
      std::vector<Interval>& busy = computing[rank];
      join_overlapping(busy);
      join_overlapping(communicating[rank]);
      join_overlapping(waiting[rank]);
      time.computing = outside(busy, {});
      time.communicating = outside(communicating[rank], busy);
      busy.insert(busy.end(), communicating[rank].begin(), communicating[rank].end());
      join_overlapping(busy);
      time.waiting = outside(waiting[rank], busy);
      time.idle = out.took - time.computing - time.communicating - time.waiting;
    }
  }

  void read_kinds(JobReport& out) const {
    std::map<std::tuple<std::string, CollectiveOp, std::uint64_t, std::size_t>, CollectiveKind> all;
    std::map<const CollectiveKind*, SenderLimits::Times> limits;
    for (std::size_t c = 0; c < plan_.calls.size(); ++c) {
      const JobPlan::Call& call = plan_.calls[c];
      const CollectiveTime& time = out.calls[c];
      const std::string& name = messages_.collectives[c].name;
      CollectiveKind& kind = all[{name, call.op, call.bytes, call.ranks}];
      kind.call = call;
      kind.name = name;
      ++kind.calls;
      const auto micros = [](Picos t) { return static_cast<double>(t.count) / 1e6; };
      if (times_.ideals) kind.ideal_us = kind.ideal_us.value_or(0) + micros(time.ideal);
      kind.took_us += micros(time.took());
      kind.waited_us += micros(time.last_entry - time.first_entry);
      kind.bus_gbytes += time.bus_bandwidth(call) / 1e9;
      if (times_.limits.empty()) continue;
      SenderLimits::Times& sums = limits[&kind];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += times_.limits[c][i];
      kind.limited = shares_of(sums);
    }
    for (auto& [key, kind] : all) {
      const auto n = static_cast<double>(kind.calls);
      if (kind.ideal_us) *kind.ideal_us /= n;
      kind.took_us /= n;
      kind.waited_us /= n;
      kind.bus_gbytes /= n;
      out.kinds.push_back(kind);
    }
    std::stable_sort(out.kinds.begin(), out.kinds.end(),
                     [](const CollectiveKind& a, const CollectiveKind& b) {
                       return a.took_us * a.calls > b.took_us * b.calls;
                     });
  }

  void read_background(JobReport& out) const {
    Picos begin = kNever;
    for (std::uint32_t id = 0; id < messages_.messages.size(); ++id) {
      if (messages_.messages[id].job != kBackgroundTag) continue;
      if (records_[id].completed.count < 0) continue;
      out.background.bytes += messages_.messages[id].bytes;
      begin = earlier(begin, messages_.messages[id].start);
      out.background.took = later(out.background.took, records_[id].completed - begin);
    }
  }

  const Job& job_;
  const JobPlan& plan_;
  const PlanTimes& times_;
  const MessagePlan& messages_;
  const std::vector<MessageRecord>& records_;
};

}  // namespace

double counted_mean_us(const JobReport& report, workload::CollectiveOp op) {
  const bool rooted =
      op == workload::CollectiveOp::broadcast || op == workload::CollectiveOp::reduce;
  std::int64_t took = 0;
  for (std::size_t c = 1; c < report.calls.size(); ++c) {
    const CollectiveTime& call = report.calls[c];
    took += (call.end - (rooted ? call.first_entry : call.last_entry)).count;
  }
  return static_cast<double>(took) / 1e6 / static_cast<double>(report.calls.size() - 1);
}

double bus_factor(const JobPlan::Call& call) {
  const double n = call.ranks;
  switch (call.op) {
    case CollectiveOp::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
    case CollectiveOp::all_to_all:
      return (n - 1) / n;
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      return 1;
  }
  return 1;
}

double CollectiveTime::algorithm_bandwidth(const JobPlan::Call& call) const {
  if (took().count <= 0) return 0;
  return static_cast<double>(call.bytes) * 1e12 / static_cast<double>(took().count);
}

double CollectiveTime::bus_bandwidth(const JobPlan::Call& call) const {
  return algorithm_bandwidth(call) * bus_factor(call);
}

JobReport report_job(const Job& job, const JobPlan& plan, const PlanTimes& times) {
  return JobReader(job, plan, times).report();
}

JobReport report_job(const Job& job, const JobPlan& plan, const VirtualWorld& world) {
  JobReport out = report_job(
      job, plan, {&world.plan(), &world.records(), nullptr, true, collective_limits(world)});
  if (out.took.count < 0) return out;
  out.limited = limiter_shares(world);
  out.nics = NicPaces(world).between(Picos{-1}, kNever, PaceWeight::messages);
  // Requests load NICs as they come: their paces say nothing of the NICs.
  if (job.requests.empty()) find_slow_nic(out.nics, out.stragglers);
  return out;
}

}  // namespace paceline::tools
