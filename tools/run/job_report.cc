#include "tools/run/job_report.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "dataplane/driver/traffic/fabric_ideal.h"
#include "tools/workload/background.h"

namespace paceline::tools {

namespace {

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

// What of the first is not in the second; both joined.
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

// Of shorter messages latency decides.
constexpr std::uint64_t kLeastToJudge = 16 * 1024;

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Each over the median of those that are not 0, which take no part.
void divide_by_median(std::vector<double>& values) {
  std::vector<double> some = values;
  std::erase(some, 0.0);
  const double middle = median(some);
  for (double& value : values) value = middle == 0 ? 0 : value / middle;
}

std::uint32_t largest_of(const std::vector<double>& values) {
  return static_cast<std::uint32_t>(std::max_element(values.begin(), values.end()) -
                                    values.begin());
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

void find_slow_nic(const JobReport& report, std::vector<Straggler>& out) {
  constexpr double kMuch = 1.5;
  constexpr double kAlike = 0.9;
  std::vector<double> sent, received, both;
  for (const NicPace& nic : report.nics) {
    sent.push_back(nic.sent);
    received.push_back(nic.received);
  }
  divide_by_median(sent);
  divide_by_median(received);
  for (std::size_t i = 0; i < sent.size(); ++i) both.push_back(sent[i] * received[i]);
  if (both.empty()) return;
  Straggler slow;
  slow.kind = Straggler::Kind::nic;
  slow.number = largest_of(both);
  slow.pace = {sent[slow.number], received[slow.number]};
  if (std::max(slow.pace.sent, slow.pace.received) < kMuch) return;
  const double most = std::exchange(both[slow.number], 0);
  const std::uint32_t next = largest_of(both);
  if (both[next] >= kAlike * most) slow.or_else = next;
  out.push_back(slow);
}

class JobReader {
 public:
  JobReader(const Job& job, const JobPlan& plan, const VirtualWorld& world)
      : job_(job), plan_(plan), records_(world.records()), world_(world) {}

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
    if (last != kNoMessage) out.path = critical_path(world_, last);
    read_background(out);
    out.first_tokens = first_tokens_of(job_, plan_, world_);
    read_limiters(out);
    read_nics(out);
    find_late_rank(out, out.stragglers);
    find_slow_nic(out, out.stragglers);
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
      time.ideal = world_.plan().collectives[c].ideal;
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
    for (std::size_t c = 0; c < plan_.calls.size(); ++c) {
      const JobPlan::Call& call = plan_.calls[c];
      const CollectiveTime& time = out.calls[c];
      const std::string& name = world_.plan().collectives[c].name;
      CollectiveKind& kind = all[{name, call.op, call.bytes, call.ranks}];
      kind.call = call;
      kind.name = name;
      ++kind.calls;
      const auto micros = [](Picos t) { return static_cast<double>(t.count) / 1e6; };
      kind.ideal_us += micros(time.ideal);
      kind.took_us += micros(time.took());
      kind.waited_us += micros(time.last_entry - time.first_entry);
      kind.bus_gbytes += time.bus_bandwidth(call) / 1e9;
    }
    for (auto& [key, kind] : all) {
      const auto n = static_cast<double>(kind.calls);
      kind.ideal_us /= n;
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
    const MessagePlan& plan = world_.plan();
    Picos begin = kNever;
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      if (plan.messages[id].job != kBackgroundTag) continue;
      if (records_[id].completed.count < 0) continue;
      out.background.bytes += plan.messages[id].bytes;
      begin = earlier(begin, plan.messages[id].start);
      out.background.took = later(out.background.took, records_[id].completed - begin);
    }
  }

  void read_limiters(JobReport& out) const {
    double all = 0;
    for (std::uint32_t nic = 0; nic < world_.hosts(); ++nic) {
      const auto picos = world_.engine(nic).view().limiter_picos(world_.now());
      for (unsigned i = 0; i < cc::kLimiters; ++i) {
        if (static_cast<cc::Limiter>(i) == cc::Limiter::application) continue;
        out.limited[i] += static_cast<double>(picos[i]);
        all += static_cast<double>(picos[i]);
      }
    }
    for (double& share : out.limited) share = all == 0 ? 0 : share / all;
  }

  void read_nics(JobReport& out) const {
    const std::uint32_t nics = world_.hosts();
    std::vector<std::vector<std::uint32_t>> sent(nics), received(nics);  // messages
    const FabricIdeal ideal(world_.scenario(), world_.network().spec(),
                            world_.network().topology());
    const MessagePlan& plan = world_.plan();
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      const PlannedMessage& m = plan.messages[id];
      if (m.computes || m.nvlink || m.bytes < kLeastToJudge || m.job == kBackgroundTag) continue;
      sent[m.src].push_back(id);
      received[m.dst].push_back(id);
    }
    std::vector<double> paces(plan.messages.size(), std::numeric_limits<double>::infinity());
    for (std::uint32_t nic = 0; nic < nics; ++nic) {
      lower_paces(sent[nic], ideal, paces);
      lower_paces(received[nic], ideal, paces);
    }
    const auto middle = [&paces](const std::vector<std::uint32_t>& ids) {
      std::vector<double> some;
      for (const std::uint32_t id : ids) some.push_back(paces[id]);
      return median(some);
    };
    for (std::uint32_t nic = 0; nic < nics; ++nic) {
      out.nics.push_back({middle(sent[nic]), middle(received[nic])});
    }
  }

  // Of the messages of a NIC one way: those that follow one another without a pause share it, and
  // until one of them is complete the NIC had all to carry that had begun.
  void lower_paces(std::vector<std::uint32_t>& ids, const FabricIdeal& ideal,
                   std::vector<double>& paces) const {
    std::sort(ids.begin(), ids.end(), [this](std::uint32_t a, std::uint32_t b) {
      return std::pair(records_[a].ready, a) < std::pair(records_[b].ready, b);
    });
    for (std::size_t i = 0, next = 0; i < ids.size(); i = next) {
      const Picos begin = records_[ids[i]].ready;
      Picos end = begin;
      do {
        end = later(end, records_[ids[next]].completed);
      } while (++next < ids.size() && records_[ids[next]].ready < end);
      std::vector<std::uint32_t> by_end(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                        ids.begin() + static_cast<std::ptrdiff_t>(next));
      std::sort(by_end.begin(), by_end.end(), [this](std::uint32_t a, std::uint32_t b) {
        return std::pair(records_[a].completed, a) < std::pair(records_[b].completed, b);
      });
      std::uint64_t begun = 0;  // bytes of those before `i`
      for (const std::uint32_t id : by_end) {
        const Picos until = records_[id].completed;
        for (; i < next && records_[ids[i]].ready < until; ++i) {
          begun += world_.plan().messages[ids[i]].bytes;
        }
        const PlannedMessage& m = world_.plan().messages[id];
        const double pace = static_cast<double>((until - begin).count) /
                            static_cast<double>(ideal.fct(m.src, m.dst, begun).count);
        paces[id] = std::min(paces[id], pace);
      }
    }
  }

  const Job& job_;
  const JobPlan& plan_;
  const std::vector<MessageRecord>& records_;
  const VirtualWorld& world_;
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

JobReport report_job(const Job& job, const JobPlan& plan, const VirtualWorld& world) {
  return JobReader(job, plan, world).report();
}

}  // namespace paceline::tools
