#include "tools/workload/matrix_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/workload/files/text_table.h"
#include "tools/workload/job_plans/job_plan.h"
#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

namespace {

// The event that fires a trigger: the arrival of a flow, or its completion at the sender.
struct Firing {
  std::uint32_t flow = 0;
  bool sent = false;  // completion
};

// Turns triggers into dependencies between messages.
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
      if (f.recv_done != 0) uses_[f.recv_done].firings.push_back({i, false});
      if (f.send_done != 0) uses_[f.send_done].firings.push_back({i, true});
      if (f.trigger != 0) uses_[f.trigger].started.push_back(i);
      message(f);
    }
    for (const HtsimTrigger& t : matrix_.triggers) {
      if (!errors_.full()) trigger(t, uses_[t.id]);
    }
    if (errors_.empty()) check_beginnings();
    config::Read<MessagePlan> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(plan_);
    return out;
  }

 private:
  struct Uses {
    std::vector<Firing> firings;
    std::vector<std::uint32_t> started;  // flows
  };

  void refuse(std::uint32_t line, const std::string& message) {
    errors_.add({source_, line, 1}, message);
  }

  void message(const HtsimFlow& f) {
    PlannedMessage m{
        .src = f.src, .dst = f.dst, .bytes = f.bytes, .start = f.start, .lane = kNoMessage};
    if (f.message) {
      const auto next = static_cast<std::uint32_t>(lanes_.size());
      m.lane = lanes_.try_emplace(f.id, next).first->second;
    }
    plan_.messages.push_back(m);
  }

  void trigger(const HtsimTrigger& t, Uses& uses) {
    const std::size_t fired = uses.firings.size();
    if (fired == 0) {
      if (uses.started.empty()) return;
      refuse(t.line, fmt::format("trigger {} starts flows and no flow fires it; allowed is one "
                                 "with recv_done_trigger {} or send_done_trigger {}",
                                 t.id, t.id, t.id));
    } else if (t.kind == HtsimTriggerKind::barrier && t.count != fired) {
      refuse(t.line, fmt::format("trigger {}: count = {}, and the flows fire it {} times; allowed "
                                 "is count {}",
                                 t.id, t.count, fired, fired));
    } else if (t.kind == HtsimTriggerKind::oneshot && fired > 1) {
      refuse(t.line, fmt::format("trigger {}: the flows fire it {} times; allowed is once for "
                                 "oneshot, or barrier count {}",
                                 t.id, fired, fired));
    } else if (t.kind == HtsimTriggerKind::multishot) {
      start_each(t, uses);
    } else if (!uses.started.empty()) {
      start_all(uses);
    }
  }

  // One flow begins for each firing. Which firing is the first, the second and so on is known
  // where there is one, and where each starts the flow that fires next.
  void start_each(const HtsimTrigger& t, Uses& uses) {
    const std::size_t fired = uses.firings.size();
    if (uses.started.empty()) return;
    if (uses.started.size() > fired) {
      refuse(t.line, fmt::format("trigger {} starts one flow for each firing: {} wait, and the "
                                 "flows fire it {} times; allowed are as many firings",
                                 t.id, uses.started.size(), fired));
      return;
    }
    if (fired > 1 && !put_in_order(uses)) {
      refuse(t.line, fmt::format("trigger {}: multishot, and only a run tells the order of its {} "
                                 "firings; allowed are one firing, firings of which each starts "
                                 "the flow that fires next, or barrier count {}",
                                 t.id, fired, fired));
      return;
    }
    for (std::size_t i = 0; i < uses.started.size(); ++i) {
      const std::uint32_t flow = uses.started[i];
      if (is_at_host(flow, uses.firings[i])) plan_.messages[flow].after = uses.firings[i].flow;
    }
  }

  // False: at least one firing does not start the flow that fires next.
  bool put_in_order(Uses& uses) const {
    std::vector<Firing> order;
    std::unordered_map<std::uint32_t, Firing> by_flow;
    for (const Firing& firing : uses.firings) {
      if (matrix_.flows[firing.flow].trigger != trigger_of(firing)) order.push_back(firing);
      by_flow[firing.flow] = firing;
    }
    if (order.size() != 1) return false;
    for (std::size_t i = 0; i + 1 < uses.firings.size(); ++i) {
      if (i == uses.started.size()) return false;
      const auto next = by_flow.find(uses.started[i]);
      if (next == by_flow.end()) return false;
      order.push_back(next->second);
    }
    uses.firings = std::move(order);
    return true;
  }

  std::uint32_t trigger_of(const Firing& firing) const {
    const HtsimFlow& f = matrix_.flows[firing.flow];
    return firing.sent ? f.send_done : f.recv_done;
  }

  std::uint32_t host_of(const Firing& firing) const {
    const HtsimFlow& f = matrix_.flows[firing.flow];
    return firing.sent ? f.src : f.dst;
  }

  // All flows begin when the last firing has happened: by way of a join if there are several of
  // both.
  void start_all(Uses& uses) {
    drop_implied(uses.firings);
    if (!are_at_one_host(uses)) return;
    const std::vector<Firing>& firings = uses.firings;
    std::uint32_t last = firings[0].flow;
    if (firings.size() > 1) {
      last = uses.started[0];
      if (uses.started.size() > 1) {
        last = static_cast<std::uint32_t>(plan_.messages.size());
        const std::uint32_t host = host_of(firings[0]);
        plan_.messages.push_back({.src = host, .dst = host, .computes = true});
      }
      plan_.messages[last].after = firings[0].flow;
      for (std::size_t i = 1; i < firings.size(); ++i) {
        plan_.joins.push_back({last, firings[i].flow});
      }
      if (uses.started.size() == 1) return;
    }
    for (const std::uint32_t flow : uses.started) plan_.messages[flow].after = last;
  }

  bool are_at_one_host(const Uses& uses) {
    const Firing& first = uses.firings[0];
    const auto other =
        std::find_if(uses.firings.begin(), uses.firings.end(),
                     [&](const Firing& firing) { return host_of(firing) != host_of(first); });
    bool all = true;
    for (const std::uint32_t flow : uses.started) {
      if (errors_.full()) break;
      const bool good =
          is_at_host(flow, first) && (other == uses.firings.end() || is_at_host(flow, *other));
      all = all && good;
    }
    return all;
  }

  // A flow that is complete has arrived. Firings of one flow follow one another, its arrival first.
  static void drop_implied(std::vector<Firing>& firings) {
    std::vector<Firing> kept;
    for (const Firing& firing : firings) {
      if (!kept.empty() && kept.back().flow == firing.flow) kept.pop_back();
      kept.push_back(firing);
    }
    firings = std::move(kept);
  }

  // Triggers of htsim work across hosts at once; a host here learns of others only by what arrives.
  bool is_at_host(std::uint32_t flow, const Firing& firing) {
    const HtsimFlow& f = matrix_.flows[flow];
    const HtsimFlow& awaited = matrix_.flows[firing.flow];
    const std::uint32_t host = host_of(firing);
    if (f.src == host) return true;
    std::string allowed = fmt::format("a flow from host {}", host);
    if (f.src == (firing.sent ? awaited.dst : awaited.src)) {
      allowed += fmt::format(", or {} in line {}",
                             firing.sent ? "recv_done_trigger" : "send_done_trigger", awaited.line);
    }
    refuse(f.line, fmt::format("{}->{} waits for the {} of {}->{} of line {}, which host {} knows "
                               "of and host {} does not; allowed is {}",
                               f.src, f.dst, firing.sent ? "completion" : "arrival", awaited.src,
                               awaited.dst, awaited.line, host, f.src, allowed));
    return false;
  }

  // Messages that wait for one another in a circle never begin.
  void check_beginnings() {
    const auto count = static_cast<std::uint32_t>(plan_.messages.size());
    const std::vector<OpPair> waits = waits_of(plan_);
    const auto circle = find_circle(count, waits, issue_order(count, waits));
    if (circle.empty()) return;
    // Joins have the highest numbers, and no join waits for another.
    std::uint32_t next = circle[1 % circle.size()];
    if (next >= matrix_.flows.size()) next = circle[2 % circle.size()];
    const HtsimFlow& first = matrix_.flows[circle[0]];
    refuse(first.line,
           fmt::format("{}->{} waits for itself, by way of line {}; allowed are triggers without "
                       "a circle",
                       first.src, first.dst, matrix_.flows[next].line));
  }

  const HtsimMatrix& matrix_;
  const std::string& source_;
  TableErrors errors_;
  MessagePlan plan_;
  std::unordered_map<std::uint32_t, Uses> uses_;            // by trigger
  std::unordered_map<std::uint32_t, std::uint32_t> lanes_;  // by id
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
