#include "tools/diagnose/rank_evidence.h"

#include <algorithm>
#include <utility>

#include "control/diagnosis/robust.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;
using workload::JobOpKind;

double micros(Picos t) { return static_cast<double>(t.count) / 1e6; }

class RankReader {
 public:
  RankReader(const workload::Job& job, const workload::JobPlan& plan, const JobReport& report)
      : job_(job), plan_(plan), report_(report) {}

  void read(Evidence& out, const workload::Placement& nics) const {
    out.ranks.resize(job_.ranks);
    for (std::uint32_t r = 0; r < job_.ranks; ++r) out.ranks[r].nic = nics[r];
    std::vector<double> usual_entry;
    std::vector<std::vector<std::pair<Picos, std::uint32_t>>> entries(job_.ranks);  // time, call
    for (std::uint32_t c = 0; c < plan_.calls.size(); ++c) {
      std::vector<double> times;
      for (const std::uint32_t op : plan_.calls[c].ops) {
        const Picos begin = report_.ops[op].begin;
        if (begin.count < 0) continue;
        times.push_back(micros(begin));
        entries[job_.ops[op].rank].emplace_back(begin, c);
      }
      usual_entry.push_back(diagnosis::median(times));
    }
    for (std::uint32_t r = 0; r < job_.ranks; ++r) {
      std::sort(entries[r].begin(), entries[r].end());
      read_rank(r, entries[r], usual_entry, out.ranks[r]);
    }
  }

 private:
  void read_rank(std::uint32_t rank, const std::vector<std::pair<Picos, std::uint32_t>>& entries,
                 const std::vector<double>& usual_entry, diagnosis::RankEvidence& out) const {
    std::vector<std::pair<Picos, Picos>> computing;  // end, how long
    for (std::uint32_t op = 0; op < job_.ops.size(); ++op) {
      const OpTime& time = report_.ops[op];
      if (job_.ops[op].rank != rank || job_.ops[op].kind != JobOpKind::compute) continue;
      if (time.begin.count >= 0 && time.end.count >= 0) {
        computing.emplace_back(time.end, time.end - time.begin);
      }
    }
    std::sort(computing.begin(), computing.end());
    std::size_t next = 0;
    for (const auto& [at, call] : entries) {
      Picos sum{0};
      for (; next < computing.size() && computing[next].first <= at; ++next) {
        sum = sum + computing[next].second;
      }
      out.steps.push_back({call, micros(sum), micros(at) - usual_entry[call]});
    }
  }

  const workload::Job& job_;
  const workload::JobPlan& plan_;
  const JobReport& report_;
};

}  // namespace

void read_ranks(const workload::Job& job, const workload::JobPlan& plan, const JobReport& report,
                const workload::Placement& nics, Evidence& out) {
  RankReader(job, plan, report).read(out, nics);
}

}  // namespace paceline::tools
