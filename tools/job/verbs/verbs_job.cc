#include "tools/job/verbs/verbs_job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "control/diagnosis/diagnosis.h"
#include "dataplane/config/toml/quantity.h"
#include "tools/collective/rank_group.h"
#include "tools/collective/testbed_ranks.h"
#include "tools/diagnose/diagnosis_text.h"
#include "tools/diagnose/rank_evidence.h"
#include "tools/job/verbs/plan_cut.h"
#include "tools/run/job_text.h"
#include "tools/workload/workload.h"

namespace paceline::tools {

namespace {

using workload::JobPlan;

// Shows progress as well.
class WatchedResults final : public RankListener {
 public:
  WatchedResults(PlanResults& results, const std::function<void(double)>& progress)
      : results_(results), progress_(progress) {}

  void greet(std::uint32_t rank, rank::JsonLines& lines) override { results_.greet(rank, lines); }
  void take(std::uint32_t rank, const nlohmann::json& message) override {
    results_.take(rank, message);
  }
  bool complete(std::uint32_t rank) const override { return results_.complete(rank); }
  std::vector<std::string> obstacles() override {
    progress_(results_.share_done());
    return results_.obstacles();
  }

 private:
  PlanResults& results_;
  const std::function<void(double)>& progress_;
};

// By NIC: "rank 3 on h5"; for storage and idle NICs "NIC 7 on h7".
std::vector<std::string> rank_names(const PreparedScenario& prepared, const VerbsJob& options,
                                    std::uint32_t nics) {
  std::vector<std::string> names;
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    names.push_back(fmt::format("NIC {} on {}", nic, options.nics[nic]));
  }
  const workload::Placement placement =
      placement_of(prepared.scenario, prepared.inputs, prepared.scenario.seed);
  for (std::uint32_t rank = 0; rank < prepared.inputs.job.ranks; ++rank) {
    const std::uint32_t nic = placement[rank];
    if (nic < nics) names[nic] = fmt::format("rank {} on {}", rank, options.nics[nic]);
  }
  return names;
}

std::string message_name(const MessagePlan& plan, const std::vector<std::string>& ranks,
                         std::uint32_t id) {
  const PlannedMessage& m = plan.messages.at(id);
  const std::string& what =
      m.collective < plan.collectives.size() ? plan.collectives[m.collective].name : "send";
  return fmt::format("message {} ({}, {} bytes from {} to {})", id, what, m.bytes, ranks[m.src],
                     ranks[m.dst]);
}

// Returns the failures.
std::vector<std::string> run_ranks(const VerbsJob& options, const std::vector<std::string>& names,
                                   RankListener& listener, const std::atomic<bool>& stop) {
  RankGroup group(listener);
  for (std::size_t nic = 0; nic < names.size(); ++nic) {
    const std::string error =
        group.start(names[nic], rank_command(options.testbed, options.nics[nic],
                                             {"--plan", fmt::format("--rank={}", nic),
                                              fmt::format("--ranks={}", names.size()),
                                              fmt::format("--meet={}", group.socket())}));
    if (!error.empty()) throw std::runtime_error(error);
  }
  return group.run(stop);
}

std::vector<std::string> size_errors(std::uint32_t nics, const VerbsJob& options) {
  if (nics < 2)
    return {fmt::format("the job has {} NICs: over verbs expected are 2 or more", nics)};
  if (nics <= options.nics.size()) return {};
  return {fmt::format("the job needs {} NICs: testbed {} has {}", nics, options.testbed,
                      options.nics.size())};
}

VerbsJobResult result_of(const PreparedScenario& prepared, const JobPlan& plan,
                         const PlanResults& results) {
  VerbsJobResult out;
  out.totals = results.totals();
  out.failures = results.wrong();
  if (!out.failures.empty()) return out;
  const PlanTimes times{&plan.plan, &results.records(), &results.causes(), false};
  out.job = report_job(prepared.inputs.job, plan, times);
  read_ranks(prepared.inputs.job, plan, out.job,
             workload::placement_of(prepared.scenario, prepared.inputs, prepared.scenario.seed),
             out.evidence);
  return out;
}

}  // namespace

config::Read<VerbsJobResult> run_verbs_job(const PreparedScenario& prepared,
                                           const VerbsJob& options, const std::atomic<bool>& stop,
                                           const std::function<void(double share)>& progress) {
  auto plan = make_job_plan(prepared.scenario, prepared.inputs, prepared.scenario.seed);
  if (!plan.ok()) return {{}, std::move(plan.errors)};
  const MessagePlan& messages = plan.value.plan;
  const std::uint32_t nics = plan_nics(messages);
  config::Read<VerbsJobResult> out;
  out.errors = size_errors(nics, options);
  if (out.ok()) out.errors = rank_program_errors();
  if (!out.ok()) return out;
  auto parts = cut_plan(messages, options.data);
  if (!parts.ok()) return {{}, std::move(parts.errors)};
  const std::vector<std::string> names = rank_names(prepared, options, nics);
  PlanResults results(std::move(parts.value), messages.messages.size(),
                      {[&](std::uint32_t nic) { return names[nic]; },
                       [&](std::uint32_t id) { return message_name(messages, names, id); }},
                      options.patience);
  WatchedResults watched(results, progress);
  try {
    out.value.failures = run_ranks(options, names, watched, stop);
  } catch (const std::runtime_error& error) {
    return {{}, {error.what()}};
  }
  if (!out.value.failures.empty()) {
    const std::vector<std::string> waits =
        results.stalled() ? std::vector<std::string>{} : results.waits();
    out.value.failures.insert(out.value.failures.end(), waits.begin(), waits.end());
  } else if (!stop.load(std::memory_order_relaxed)) {
    out.value = result_of(prepared, plan.value, results);
  }
  out.value.nics = nics;
  return out;
}

std::string verbs_job_text(const PreparedScenario& prepared, const VerbsJob& options,
                           const VerbsJobResult& result) {
  return fmt::format(
             "scenario   {}: {} NICs over verbs, testbed {}, {} to {}, seed {}\n"
             "run        ok: {} messages of {}; {}; times include this machine's scheduling\n",
             prepared.scenario.name, result.nics, options.testbed, options.nics.front(),
             options.nics[result.nics - 1], prepared.scenario.seed, result.totals.messages,
             config::format_bytes(result.totals.bytes),
             options.data ? "every byte is right" : "lengths are right, data was not compared") +
         job_text(result.job) +
         (options.diagnose ? diagnosis_text(result.evidence, diagnosis::diagnose(result.evidence))
                           : "");
}

std::string verbs_job_json(const PreparedScenario& prepared, const VerbsJob& options,
                           const VerbsJobResult& result) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["kind"] = "paceline job run";
  json["scenario"] = prepared.scenario.name;
  json["seed"] = prepared.scenario.seed;
  json["testbed"] = options.testbed;
  json["nics"] = result.nics;
  json["totals"] = {{"messages", result.totals.messages},
                    {"bytes", result.totals.bytes},
                    {"data_compared", options.data}};
  json["job"] = job_json(result.job);
  if (options.diagnose) {
    json["verdicts"] = verdicts_json(diagnosis::diagnose(result.evidence));
  }
  return json.dump(2) + "\n";
}

}  // namespace paceline::tools
