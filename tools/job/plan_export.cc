#include "tools/job/plan_export.h"

#include <utility>

#include "tools/workload/exports/flow_export.h"
#include "tools/workload/exports/goal_export.h"
#include "tools/workload/exports/matrix_export.h"

namespace paceline::tools {

namespace {

// Maps NICs back to ranks.
void name_ranks(MessagePlan& plan, const config::FabricConfig& fabric) {
  const workload::Placement nics = workload::place_ranks("packed", config::server_shape(fabric), 0);
  workload::Placement ranks(nics.size());
  for (std::uint32_t rank = 0; rank < nics.size(); ++rank) ranks[nics[rank]] = rank;
  workload::put_on_nics(plan, ranks);
}

}  // namespace

config::Read<PlanExport> export_plan(const PreparedScenario& prepared, const std::string& format,
                                     const workload::PlanDrops& drops) {
  const config::Scenario& scenario = prepared.scenario;
  auto plan = workload::make_plan(scenario, prepared.inputs, scenario.seed);
  if (!plan.ok()) return {{}, std::move(plan.errors)};
  const std::uint32_t hosts = scenario.fabric.hosts;
  name_ranks(plan.value, scenario.fabric);
  config::Read<PlanExport> out;
  if (format == "cm") {
    auto matrix = workload::write_htsim_plan(plan.value, hosts, drops);
    out = {{std::move(matrix.value.text)}, std::move(matrix.errors)};
    out.value.dropped_waits = matrix.value.dropped_waits;
  } else {
    auto text = format == "goal"
                    ? workload::write_goal_plan(plan.value, hosts)
                    : workload::write_flow_plan(plan.value, prepared.inputs.numbers, drops);
    out = {{std::move(text.value)}, std::move(text.errors)};
  }
  for (const PlannedMessage& m : plan.value.messages) {
    if (m.computes) continue;
    ++out.value.messages;
    out.value.bytes += static_cast<double>(m.bytes);
  }
  return out;
}

}  // namespace paceline::tools
