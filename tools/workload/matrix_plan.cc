#include "tools/workload/matrix_plan.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

// From triggers to messages that wait for one another.
class MatrixPlan {
 public:
  MatrixPlan(const HtsimMatrix& matrix, const std::string& source)
      : matrix_(matrix), source_(source) {}

  config::Read<MessagePlan> plan() {
    for (const std::uint32_t line : matrix_.failures) {
      refuse(line, "a failed link; allowed is an [[event]] of the scenario");
    }
    for (std::uint32_t i = 0; i < matrix_.flows.size(); ++i) {
      const HtsimFlow& f = matrix_.flows[i];
      if (f.recv_done != 0) firing_[f.recv_done].push_back(i);
      if (f.send_done != 0) firing_[f.send_done].push_back(i);
      if (f.trigger != 0) ++waiting_[f.trigger];
    }
    for (const HtsimTrigger& t : matrix_.triggers) trigger(t);
    for (std::uint32_t i = 0; i < matrix_.flows.size() && !errors_.full(); ++i) {
      message(matrix_.flows[i]);
    }
    if (errors_.empty()) check_beginnings();
    config::Read<MessagePlan> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(plan_);
    return out;
  }

 private:
  void refuse(std::uint32_t line, const std::string& message) {
    errors_.add({source_, line, 1}, message);
  }

  void trigger(const HtsimTrigger& t) {
    const auto waiting = waiting_.find(t.id);
    if (waiting == waiting_.end()) return;
    const std::size_t fired = firing_[t.id].size();
    if (fired == 0) {
      refuse(t.line, fmt::format("trigger {} starts flows and no flow fires it", t.id));
    } else if (t.kind == HtsimTriggerKind::barrier && (t.count > 1 || fired > 1)) {
      refuse(t.line,
             fmt::format("trigger {} waits for {} firings of {} flows; a message here waits "
                         "for one: allowed is count 1 and one flow",
                         t.id, t.count, fired));
    } else if (t.kind != HtsimTriggerKind::barrier && fired > 1) {
      refuse(t.line,
             fmt::format("{} flows fire trigger {}; a message here waits for one", fired, t.id));
    } else if (t.kind == HtsimTriggerKind::multishot && waiting->second > 1) {
      refuse(t.line, fmt::format("trigger {} starts one flow for each firing: {} wait, one flow "
                                 "fires it",
                                 t.id, waiting->second));
    }
  }

  void message(const HtsimFlow& f) {
    PlannedMessage m{
        .src = f.src, .dst = f.dst, .bytes = f.bytes, .start = f.start, .lane = kNoMessage};
    if (f.message) {
      const auto next = static_cast<std::uint32_t>(lanes_.size());
      m.lane = lanes_.try_emplace(f.id, next).first->second;
    }
    if (f.trigger != 0) {
      const std::vector<std::uint32_t>& firing = firing_[f.trigger];
      if (firing.size() == 1) wait_for(f, firing[0], m);
    }
    plan_.messages.push_back(m);
  }

  void wait_for(const HtsimFlow& f, std::uint32_t before, PlannedMessage& m) {
    const HtsimFlow& first = matrix_.flows[before];
    if (first.send_done == f.trigger) {
      refuse(first.line, fmt::format("send_done_trigger {} starts the flow of line {}; a message "
                                     "here waits for one that its sender received: allowed is "
                                     "recv_done_trigger",
                                     f.trigger, f.line));
    } else if (first.dst != f.src) {
      refuse(f.line, fmt::format("{}->{} waits for {}->{} of line {}; a message here waits for one "
                                 "that its sender received: allowed is a flow to {}",
                                 f.src, f.dst, first.src, first.dst, first.line, f.src));
    }
    m.after = before;
  }

  // Messages that wait for one another in a circle never begin.
  void check_beginnings() {
    const auto& messages = plan_.messages;
    std::vector<std::uint32_t> seen(messages.size(), kNoMessage);  // in the walk from this message
    for (std::uint32_t i = 0; i < messages.size(); ++i) {
      std::uint32_t at = i;
      while (at != kNoMessage && seen[at] == kNoMessage) {
        seen[at] = i;
        at = messages[at].after;
      }
      if (at == kNoMessage || seen[at] != i) continue;
      refuse(matrix_.flows[at].line, "this flow waits for itself, by the triggers of others");
    }
  }

  const HtsimMatrix& matrix_;
  const std::string& source_;
  TableErrors errors_;
  MessagePlan plan_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> firing_;  // flows, by trigger
  std::unordered_map<std::uint32_t, std::uint32_t> waiting_;              // how many, by trigger
  std::unordered_map<std::uint32_t, std::uint32_t> lanes_;                // by id
};

}  // namespace

config::Read<MessagePlan> plan_of_matrix(const HtsimMatrix& matrix, const std::string& source) {
  return MatrixPlan(matrix, source).plan();
}

config::Read<MessagePlan> read_htsim_plan(const std::string& path, std::string_view unit,
                                          std::uint32_t hosts) {
  const config::Read<HtsimMatrix> matrix = read_htsim_matrix(path, unit);
  if (!matrix.ok()) return {{}, matrix.errors};
  if (matrix.value.nodes != hosts) {
    return {{},
            {fmt::format("{}: Nodes = {}: expected {}, as many as the fabric has hosts", path,
                         matrix.value.nodes, hosts)}};
  }
  return plan_of_matrix(matrix.value, path);
}

}  // namespace paceline::workload
