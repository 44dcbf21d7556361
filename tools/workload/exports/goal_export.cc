#include "tools/workload/exports/goal_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "tools/workload/exports/plan_order.h"

namespace paceline::workload {

namespace {

constexpr std::uint32_t kMostCpusOfGoal = 65'536;

std::int64_t rounded_nanos(Picos time) { return (time.count + 500) / 1000; }

class GoalWriter {
 public:
  GoalWriter(const MessagePlan& plan, std::uint32_t ranks)
      : plan_(plan), order_(plan), ranks_(ranks), cpu_of_(plan.messages.size()) {}

  config::Read<std::string> write() {
    find_cpus();
    find_starts();
    if (!errors_.empty()) return {{}, std::move(errors_)};
    for (Rank& rank : ranks_) clock(rank);
    for (std::uint32_t id = 0; id < plan_.messages.size(); ++id) message(id);
    std::string out = fmt::format("num_ranks {}\n", ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      out += fmt::format("rank {} {{\n{}{}}}\n", r, ranks_[r].ops, ranks_[r].waits);
    }
    return {std::move(out), {}};
  }

 private:
  struct Rank {
    std::string ops;
    std::string waits;
    std::uint32_t cpus = 1;                        // cpu 0 is the clock
    std::map<std::int64_t, std::uint32_t> starts;  // the number of its b, by nanoseconds
    std::map<std::uint32_t, std::uint32_t> tags;   // the next one, by receiver
  };

  // The calcs of a cpu run one after the other: a calc shares the cpu of another only if it waits
  // for it anyway.
  void find_cpus() {
    std::vector<bool> followed(plan_.messages.size());
    for (const std::uint32_t id : order_.order()) {
      const PlannedMessage& m = plan_.messages[id];
      if (!m.computes) {
        if (m.gap.count != 0) cpu_of_[id] = new_cpu(m.src);
        continue;
      }
      const auto waits = order_.waits_of(id);
      const auto before = std::find_if(waits.begin(), waits.end(), [&](std::uint32_t after) {
        return plan_.messages[after].computes && !followed[after];
      });
      if (before == waits.end()) {
        cpu_of_[id] = new_cpu(m.src);
      } else {
        followed[*before] = true;
        cpu_of_[id] = cpu_of_[*before];
      }
    }
  }

  std::uint32_t new_cpu(std::uint32_t rank) {
    const std::uint32_t cpu = ranks_[rank].cpus++;
    if (cpu == kMostCpusOfGoal) {
      errors_.push_back(fmt::format("rank {} computes up to {} times at once: GOAL has cpus for {}",
                                    rank, cpu, kMostCpusOfGoal - 1));
    }
    return cpu;
  }

  bool has_start(std::uint32_t id) const {
    return plan_.messages[id].start > order_.awaited_start(id);
  }

  void find_starts() {
    for (std::uint32_t id = 0; id < plan_.messages.size(); ++id) {
      const PlannedMessage& m = plan_.messages[id];
      if (has_start(id)) ranks_[m.src].starts.emplace(rounded_nanos(m.start), 0);
    }
  }

  static void clock(Rank& rank) {
    std::int64_t last = 0;
    std::uint32_t number = 0;
    for (auto& [nanos, label] : rank.starts) {
      label = ++number;
      fmt::format_to(std::back_inserter(rank.ops), "b{}: calc {}\n", label, nanos - last);
      if (label > 1) {
        fmt::format_to(std::back_inserter(rank.waits), "b{} requires b{}\n", label, label - 1);
      }
      last = nanos;
    }
  }

  void message(std::uint32_t id) {
    const PlannedMessage& m = plan_.messages[id];
    Rank& rank = ranks_[m.src];
    const auto ops = std::back_inserter(rank.ops);
    const bool gap = !m.computes && m.gap.count != 0;
    if (m.computes) {
      fmt::format_to(ops, "c{}: calc {} cpu {}\n", id, rounded_nanos(m.gap), cpu_of_[id]);
    } else {
      if (gap) fmt::format_to(ops, "g{}: calc {} cpu {}\n", id, rounded_nanos(m.gap), cpu_of_[id]);
      const std::uint32_t tag = rank.tags[m.dst]++;
      fmt::format_to(ops, "s{}: send {}b to {} tag {}\n", id, m.bytes, m.dst, tag);
      fmt::format_to(std::back_inserter(ranks_[m.dst].ops), "r{}: recv {}b from {} tag {}\n", id,
                     m.bytes, m.src, tag);
    }
    waits(id, gap ? 'g' : m.computes ? 'c' : 's');
    if (gap) fmt::format_to(std::back_inserter(rank.waits), "s{} requires g{}\n", id, id);
  }

  void waits(std::uint32_t id, char kind) {
    const PlannedMessage& m = plan_.messages[id];
    Rank& rank = ranks_[m.src];
    const auto to = std::back_inserter(rank.waits);
    for (const std::uint32_t after : order_.waits_of(id)) {
      const PlannedMessage& awaited = plan_.messages[after];
      const char end = awaited.computes ? 'c' : awaited.src == m.src ? 's' : 'r';
      fmt::format_to(to, "{}{} requires {}{}\n", kind, id, end, after);
    }
    if (has_start(id)) {
      fmt::format_to(to, "{}{} requires b{}\n", kind, id, rank.starts.at(rounded_nanos(m.start)));
    }
  }

  const MessagePlan& plan_;
  PlanOrder order_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> cpu_of_;  // of computing and gaps
  std::vector<std::string> errors_;
};

}  // namespace

config::Read<std::string> write_goal_plan(const MessagePlan& plan, std::uint32_t ranks) {
  return GoalWriter(plan, ranks).write();
}

}  // namespace paceline::workload
