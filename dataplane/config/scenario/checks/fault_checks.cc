// Rules between [[fault]] tables and the rest of a scenario.
#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/checks/key_checks.h"
#include "dataplane/config/scenario/checks/scenario_checks.h"
#include "dataplane/config/scenario/link_group.h"
#include "dataplane/config/server_shape.h"

namespace paceline::config {

namespace {

class FaultChecks : private KeyChecks {
 public:
  using KeyChecks::KeyChecks;

  void run() {
    std::size_t curves = 0;
    for (const FaultConfig& fault : s_.faults) {
      const FaultKindInfo& kind = *find_fault_kind(fault.kind);
      check(fault, kind);
      if (kind.kind == FaultKind::ecn_wrong && ++curves > kMostCurves) {
        fail(fault, fmt::format("at most {} faults of kind \"ecn_wrong\"", kMostCurves));
      }
    }
  }

 private:
  static constexpr std::size_t kMostCurves = 100;

  void fail(const FaultConfig& fault, const std::string& why) {
    context_.errors->add({fault.where, 0, 0},
                         fmt::format("fault.target = \"{}\": {}", fault.target, why));
  }

  void check(const FaultConfig& fault, const FaultKindInfo& kind) {
    if (kind.target == FaultTarget::rank) return check_rank(fault);
    if (kind.kind == FaultKind::dead_port && s_.fabric.ports == 1) {
      fail(fault, "fault.kind = \"dead_port\" needs NICs of several ports, fabric.ports");
    }
    if (const auto what = lacking(kind, s_.fabric, has_one_path(s_)); !what.empty()) {
      fail(fault, fmt::format("fault.kind = \"{}\" needs {}", kind.name, what));
    }
    if (kind.of_clock && !s_.probing.enabled && given_.usable({"probing.enabled"})) {
      fail(fault, fmt::format("fault.kind = \"{}\" needs probing.enabled = true", kind.name));
    }
    if (!hosts_known() || !given_.usable({"fabric.topology"})) return;
    const FoundLinks found = find_links(s_.fabric, fault.target);
    if (!found.error.empty()) return fail(fault, found.error);
    const bool of_host = found.links.front() < s_.fabric.endpoints();
    const std::string wrong = target_error(kind, fault.target, found.links.size(), of_host);
    if (!wrong.empty()) fail(fault, wrong);
  }

  void check_rank(const FaultConfig& fault) {
    if (!given_.usable({"workload.kind"})) return;
    if (!context_.has_workload || s_.workload.kind != "job") {
      return fail(fault, "a rank is of workload.kind = \"job\"");
    }
    if (!hosts_known()) return;
    const std::uint32_t ranks = std::max(1U, job_ranks(s_));
    if (fault.rank >= ranks) {
      fail(fault, fmt::format("no such rank, allowed is \"rank0\" .. \"rank{}\"", ranks - 1));
    }
  }
};

}  // namespace

void check_faults(const Scenario& scenario, const GivenKeys& given, const Where& start,
                  ReadContext& context) {
  FaultChecks(scenario, given, start, context).run();
}

}  // namespace paceline::config
