#include "control/daemon/experiments/experiments.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "control/experiment/live/plan/moment.h"
#include "control/experiment/live/plan/plan_reader.h"
#include "control/experiment/live/report/live_report.h"

namespace paceline::daemon {

namespace live = experiment::live;
using boost::asio::awaitable;

namespace {

constexpr const char* kExperiments = "experiment";  // documents, by experiment_key()
constexpr std::int64_t kLeastHoldPs = 500'000'000'000;
constexpr std::int64_t kMostHoldPs = 3'600'000'000'000'000;

void rethrow_experiment(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

// Errors of a plan that asks for more than this service supports.
std::vector<std::string> plan_errors(const live::Plan& plan,
                                     const config::AlgorithmCatalogue& known) {
  std::vector<std::string> errors;
  if (plan.design == live::Design::receiver_ports) {
    const cc::AlgorithmInfo* const champion = known.find(plan.arms[0].cc.algorithm);
    const cc::AlgorithmInfo* const candidate = known.find(plan.arms[1].cc.algorithm);
    if (champion != nullptr && candidate != nullptr && champion != candidate &&
        champion->proactive && candidate->proactive) {
      errors.push_back(fmt::format(
          "design = \"receiver_ports\": {} and {} both grant, and each shares out the "
          "uplink by itself, so a sender to both arms would exceed it; allowed are arms "
          "of one algorithm, or of which one at most is proactive (a switchback takes any)",
          champion->name, candidate->name));
    }
  }
  if (plan.hold.count < kLeastHoldPs || plan.hold.count > kMostHoldPs) {
    errors.push_back(
        fmt::format("blocks.hold = {} ms: the service holds a trial for 500 ms to an "
                    "hour (two blocks when not given)",
                    plan.hold.count / 1'000'000'000));
  }
  return errors;
}

config::CongestionChange change_of(const config::CcConfig& cc) {
  config::CongestionChange request;
  request.algorithm = cc.algorithm;
  request.profile = cc.profile;
  for (const auto& param : cc.params) request.params[param.name] = param.value;
  return request;
}

// The experiment compares with what the host runs: the champion's arm must be the same.
void check_arms(const live::Plan& plan, const NicParams& nic, std::uint64_t rate_mbps,
                const config::AlgorithmCatalogue& known, std::vector<std::string>& errors,
                std::vector<std::string>& warnings) {
  std::vector<std::string> wrong;
  for (const config::Arm& arm : plan.arms) {
    const ParamSet set = resolve(change_of(arm.cc), nic.set, rate_mbps, wrong, known);
    if (!wrong.empty() || &arm != &plan.arms.front()) continue;
    if (set.algorithm == nic.set.algorithm && set.values == nic.set.values) continue;
    std::string values;
    for (const auto& param : arm.cc.params)
      values += fmt::format(" {}={}", param.name, param.value);
    errors.push_back(fmt::format(
        "{}: the first arm, \"{}\", is the champion and must be what is in force ({}): paceline "
        "params set --algorithm {} --profile {}{} --why ...",
        nic.nic, arm.name, fmt::join(differences(nic.set, set), ", "), arm.cc.algorithm,
        arm.cc.profile, values));
  }
  for (const std::string& error : wrong) errors.push_back(nic.nic + ": " + error);
  const cc::AlgorithmInfo* const candidate = known.find(plan.arms[1].cc.algorithm);
  if (candidate == nullptr || !candidate->proactive || !nic.fallback.is_object()) return;
  const std::string fallback = nic.fallback.value("algorithm", std::string());
  if (fallback != plan.arms[1].cc.fallback) {
    warnings.push_back(
        fmt::format("{}: towards peers that do not speak {} it falls back on {}, as "
                    "the testbed says, not on {}",
                    nic.nic, candidate->name, fallback, plan.arms[1].cc.fallback));
  }
}

// Traffic to NICs outside all clusters runs the champion and counts for no arm. Traffic from them
// shares the clusters' ports and also runs the champion, whatever the port's arm.
void warn_of_outsiders(const std::vector<NicParams>& in_force,
                       const std::vector<std::vector<std::string>>& clusters,
                       std::vector<std::string>& warnings) {
  std::vector<std::string> outside;
  for (const NicParams& nic : in_force) {
    const bool inside =
        std::any_of(clusters.begin(), clusters.end(), [&](const std::vector<std::string>& cluster) {
          return std::find(cluster.begin(), cluster.end(), nic.nic) != cluster.end();
        });
    if (!inside) outside.push_back(nic.nic);
  }
  if (outside.empty()) return;
  warnings.push_back(
      fmt::format("{} in no cluster: what goes there has the champion and is counted for no arm, "
                  "and what comes from there has the champion at the ports of both arms",
                  fmt::join(outside, ", ")));
}

std::string report_replay(std::int64_t number, const std::string& folder) {
  return fmt::format("paceline experiment report {}   # experiment {}", folder, number);
}

}  // namespace

Experiments::Experiments(const Parts& parts, ExperimentSettings settings)
    : parts_(parts), settings_(std::move(settings)), turns_(parts.context) {}

std::string Experiments::open() {
  std::error_code error;
  std::filesystem::create_directories(settings_.folder, error);
  return error ? settings_.folder + ": " + error.message() : std::string();
}

ExperimentRun::Parts Experiments::run_parts() const {
  return {parts_.context, parts_.service, parts_.sampler, parts_.store,
          parts_.hub,     parts_.clock,   settings_};
}

std::string Experiments::folder_of(std::int64_t number) const {
  return settings_.folder + "/" + experiment_key(number);
}

void Experiments::sampled() {
  for (const Run& run : runs_) run->sampled();
}

void Experiments::leave() {
  for (const Run& run : runs_) run->leave();
}

std::vector<ExperimentEntry> Experiments::entries() {
  std::vector<ExperimentEntry> out;
  for (const StoredDocument& document : parts_.store.list(kExperiments)) {
    out.push_back(experiment_entry_of(document.body));
  }
  return out;
}

std::optional<ExperimentEntry> Experiments::find(std::string_view id) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || number <= 0) return std::nullopt;
  if (const Run run = run_of(number)) return run->entry();
  const std::optional<Json> body = parts_.store.get(kExperiments, experiment_key(number));
  if (!body) return std::nullopt;
  return experiment_entry_of(*body);
}

Experiments::Run Experiments::run_of(std::int64_t number) const {
  const auto at = std::find_if(runs_.begin(), runs_.end(),
                               [&](const Run& run) { return run->entry().number == number; });
  return at == runs_.end() ? nullptr : *at;
}

// If the store was lost, folders of earlier experiments are left alone.
std::int64_t Experiments::next_number() {
  std::int64_t number = 1;
  for (const ExperimentEntry& entry : entries()) number = std::max(number, entry.number + 1);
  std::error_code ignored;
  while (std::filesystem::exists(folder_of(number), ignored)) ++number;
  return number;
}

void Experiments::keep(const ExperimentEntry& entry) {
  const std::string wrong = parts_.store.put(kExperiments, experiment_key(entry.number),
                                             json_of(entry), parts_.clock.unix_ns());
  if (!wrong.empty()) spdlog::error("cannot save experiment {}: {}", entry.number, wrong);
}

// The NICs of each cluster, and whether the arms fit what is in force on them.
awaitable<Experiments::Places> Experiments::places_of(const live::Plan& plan,
                                                      const std::string& file) {
  Places out;
  Json members = Json::object();
  const ControlAnswer answer = co_await parts_.service.call("parameters", std::move(members));
  if (!answer.ok()) {
    out.errors = answer.errors;
    out.unanswered = true;
    co_return out;
  }
  std::string wrong;
  const std::vector<NicParams> in_force = nic_params_of(answer.body, wrong);
  if (!wrong.empty()) out.errors.push_back(wrong);
  for (const live::Cluster& cluster : plan.clusters) {
    std::vector<std::string> names = cluster.nics;
    for (const NicParams& nic : in_force) {
      if (cluster.nics.empty()) names.push_back(nic.nic);
    }
    for (const std::string& name : names) {
      const auto nic = std::find_if(in_force.begin(), in_force.end(),
                                    [&](const NicParams& n) { return n.nic == name; });
      if (nic == in_force.end()) {
        std::vector<std::string> there;
        for (const NicParams& n : in_force) there.push_back(n.nic);
        const std::string place =
            cluster.line == 0
                ? std::string()
                : fmt::format("{}:{}: [[cluster]] \"{}\": ", file, cluster.line, cluster.name);
        out.errors.push_back(fmt::format("{}there is no NIC \"{}\"; this service has {}", place,
                                         name, fmt::join(there, ", ")));
        continue;
      }
      const auto facts = parts_.parameters.nics().find(name);
      const std::uint64_t rate =
          facts == parts_.parameters.nics().end() ? 0 : facts->second.rate_mbps;
      check_arms(plan, *nic, rate, parts_.parameters.catalogue(), out.errors, out.warnings);
      for (const Run& run : runs_) {
        for (const auto& taken : run->entry().nics) {
          if (std::find(taken.begin(), taken.end(), name) == taken.end()) continue;
          out.errors.push_back(
              fmt::format("{}: experiment {} is running", name, run->entry().number));
        }
      }
    }
    out.nics.push_back(std::move(names));
  }
  if (plan.design == live::Design::receiver_ports) {
    warn_of_outsiders(in_force, out.nics, out.warnings);
  }
  co_return out;
}

// The A/A run that a plan refers to, by number or name, must be of the same design.
std::string Experiments::check_calibration(const live::Plan& plan) {
  if (plan.calibration.empty()) return {};
  for (const ExperimentEntry& entry : entries()) {
    const bool named =
        entry.name == plan.calibration || std::to_string(entry.number) == plan.calibration;
    if (!named || !entry.null_experiment || entry.verdict != live::Verdict::calibrated) continue;
    const auto files = live::read_experiment_folder(folder_of(entry.number),
                                                    parts_.parameters.catalogue().algorithms());
    if (!files.ok()) continue;
    const live::Plan& other = files.value.plan;
    if (other.design == plan.design && other.primary == plan.primary && other.block == plan.block &&
        other.washout == plan.washout && other.clusters.size() == plan.clusters.size()) {
      return {};
    }
  }
  return fmt::format(
      "calibration.results = \"{}\": no calibrated A/A run of that number or name with the same "
      "design, primary metric, blocks and clusters (run the plan with aa first)",
      plan.calibration);
}

awaitable<Reply> Experiments::start(Caller caller, Json body) {
  const std::string text = body.at("plan").get<std::string>();
  const std::string file = body.value("file", std::string("plan"));
  const bool null_experiment = body.value("aa", false);
  const bool dry_run = body.value("dry_run", false);
  // Plug-ins first: without their tables the plan cannot be read.
  const config::AlgorithmCatalogue& known = parts_.parameters.catalogue();
  for (std::string& path : live::plugin_paths(text)) {
    const Parameters::Loaded loaded =
        co_await parts_.parameters.load_plugin(std::move(path), std::string());
    if (loaded.refused) co_return *loaded.refused;
  }
  config::Read<live::Plan> read = live::read_plan_text(
      text, file, known.algorithms(), [&known](const std::string& path) { return known.at(path); });
  if (!read.ok()) co_return refusal(400, read.errors);
  live::ExperimentFiles files;
  files.plan =
      null_experiment ? live::null_experiment_of(std::move(read.value)) : std::move(read.value);
  files.null_experiment = live::is_null_experiment(files.plan);
  live::note_plugins(files.plan, known);
  std::vector<std::string> errors = plan_errors(files.plan, known);
  if (!errors.empty()) co_return refusal(400, errors);

  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  const Places places = co_await places_of(files.plan, file);
  errors = places.errors;
  const std::int64_t now = parts_.clock.unix_ns();
  if (files.plan.begin_unix_ns != 0 && files.plan.begin_unix_ns <= now) {
    errors.push_back(fmt::format("blocks.begin = \"{}\": is over; this host has {}",
                                 live::moment_text(files.plan.begin_unix_ns),
                                 live::moment_text(now)));
  }
  if (std::string wrong = check_calibration(files.plan); !wrong.empty()) errors.push_back(wrong);
  if (!errors.empty()) co_return refusal(places.unanswered ? 503 : 409, errors);
  files.circumstances.calibrated = !files.plan.calibration.empty();
  files.schedule = live::make_schedule(files.plan);

  ExperimentEntry entry;
  entry.number = next_number();
  entry.name = files.plan.name;
  entry.who = caller.name;
  entry.why = body.value("why", std::string());
  entry.digest = files.schedule.digest;
  entry.null_experiment = files.null_experiment;
  entry.promote = body.value("promote", false);
  entry.nics = places.nics;
  entry.started_unix_ns = parts_.clock.unix_ns();
  Reply reply;
  reply.body["experiment"] = json_of(entry);
  if (!places.warnings.empty()) reply.body["warnings"] = places.warnings;
  if (dry_run) {
    reply.body["experiment"]["state"] = "dry run";
    reply.body["experiment"].erase("id");
    co_return reply;
  }

  // Registered first: it is on disk, with its digest, before the service is told.
  const std::string folder = folder_of(entry.number);
  std::string wrong =
      live::write_experiment_folder(folder, text, files.schedule, files.null_experiment);
  if (wrong.empty()) wrong = live::write_plugin_tables(folder, files.plan, known);
  if (wrong.empty()) {
    wrong = live::write_circumstances(folder, files.circumstances, files.null_experiment);
  }
  if (wrong.empty()) {
    wrong = parts_.store.put(kExperiments, experiment_key(entry.number), json_of(entry),
                             entry.started_unix_ns);
  }
  if (!wrong.empty()) co_return refusal(500, {"the schedule cannot be registered: " + wrong});

  const std::int64_t number = entry.number;
  auto run = std::make_shared<ExperimentRun>(run_parts(), std::move(entry), std::move(files));
  // Taken from now on: another connection must not start it meanwhile.
  runs_.push_back(run);
  errors = co_await run->begin();
  if (!errors.empty()) {
    ExperimentEntry refused = run->entry();
    std::erase(runs_, run);
    refused.state = ExperimentState::refused;
    refused.ended = fmt::format("{}", fmt::join(errors, "; "));
    refused.ended_unix_ns = parts_.clock.unix_ns();
    keep(refused);
    co_return refusal(409, errors);
  }
  spdlog::info("experiment {} ({}) by {}: schedule {}", number, run->entry().name, run->entry().who,
               run->entry().digest);
  boost::asio::co_spawn(parts_.context, drive(run), rethrow_experiment);
  reply.status = 201;
  reply.body["experiment"]["progress"] = run->progress();
  co_return reply;
}

awaitable<void> Experiments::drive(Run run) {
  co_await run->drive();
  if (run->entry().running()) co_return;  // left
  if (run->entry().promote && run->entry().verdict == live::Verdict::ship) {
    Json body{{"why", "the verdict was to ship it"}};
    Caller caller{run->entry().who, true};
    std::string id = std::to_string(run->entry().number);
    const Reply reply = co_await promote(std::move(caller), std::move(id), std::move(body));
    if (reply.status != 200) {
      spdlog::error("experiment {} is not promoted: {}", run->entry().number, reply.body.dump());
    }
  }
  std::erase(runs_, run);
}

awaitable<void> Experiments::attached() {
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  for (ExperimentEntry& entry : entries()) {
    if (!entry.running() || run_of(entry.number)) continue;
    const std::string folder = folder_of(entry.number);
    config::Read<live::ExperimentFiles> files =
        live::read_experiment_folder(folder, parts_.parameters.catalogue().algorithms());
    std::string wrong = files.ok() ? std::string() : files.errors.front();
    if (files.ok() && files.value.schedule.digest != entry.digest) {
      wrong = folder + ": the schedule is not the one that was registered";
    }
    if (wrong.empty() && files.value.blocks.cut_off) {
      wrong = live::cut_blocks(folder, files.value.blocks.whole_bytes);
    }
    if (!wrong.empty()) {
      spdlog::error("experiment {} cannot continue: {}", entry.number, wrong);
      entry.state = ExperimentState::failed;
      entry.ended = wrong;
      entry.ended_unix_ns = parts_.clock.unix_ns();
      keep(entry);
      continue;
    }
    auto run =
        std::make_shared<ExperimentRun>(run_parts(), std::move(entry), std::move(files.value));
    runs_.push_back(run);
    co_await run->take_up();
    boost::asio::co_spawn(parts_.context, drive(run), rethrow_experiment);
  }
}

Reply Experiments::list(std::size_t most) {
  Json out = Json::array();
  std::vector<ExperimentEntry> all = entries();
  std::reverse(all.begin(), all.end());
  for (const ExperimentEntry& entry : all) {
    if (out.size() >= most) break;
    out.push_back(json_of(entry));
  }
  Reply reply;
  reply.body["experiments"] = std::move(out);
  return reply;
}

Reply Experiments::show(std::string_view id) {
  const std::optional<ExperimentEntry> entry = find(id);
  if (!entry) return refusal(404, {fmt::format("there is no experiment \"{}\"", id)});
  Json body = json_of(*entry);
  if (const Run run = run_of(entry->number)) body["progress"] = run->progress();
  Reply reply;
  reply.body["experiment"] = std::move(body);
  return reply;
}

Reply Experiments::stop(const Caller& caller, std::string_view id, const Json& body) {
  const std::optional<ExperimentEntry> entry = find(id);
  if (!entry) return refusal(404, {fmt::format("there is no experiment \"{}\"", id)});
  const Run run = run_of(entry->number);
  if (!run || !entry->running()) {
    return refusal(409,
                   {fmt::format("experiment {} does not run here: {}", id, to_text(entry->state))});
  }
  run->stop(caller.name, body.value("why", std::string()));
  Reply reply;
  reply.status = 202;
  reply.body["experiment"] = json_of(*entry);
  return reply;
}

Reply Experiments::report(std::string_view id, bool page) {
  const std::optional<ExperimentEntry> entry = find(id);
  if (!entry) return refusal(404, {fmt::format("there is no experiment \"{}\"", id)});
  const std::string replay = report_replay(entry->number, folder_of(entry->number));
  Reply reply;
  const auto write = [&](const live::Plan& plan, const live::Schedule& schedule,
                         std::span<const live::BlockRecord> records,
                         const live::Circumstances& circumstances,
                         const live::LiveAnalysis& analysis) {
    const live::LiveReport report{plan,     schedule,          records, circumstances,
                                  analysis, settings_.version, replay};
    reply.text = page ? live_report_page(report) : live_report_json(report);
  };
  if (const Run run = run_of(entry->number)) {
    const live::Runner& runner = run->runner();
    write(runner.plan(), runner.schedule(), runner.records(), runner.circumstances(),
          runner.analysis());
  } else {
    const auto files = live::read_experiment_folder(folder_of(entry->number),
                                                    parts_.parameters.catalogue().algorithms());
    if (!files.ok()) return refusal(409, files.errors);
    const live::ExperimentFiles& f = files.value;
    write(f.plan, f.schedule, f.blocks.records, f.circumstances,
          live::analyse_live(f.plan, f.schedule, f.blocks.records, f.circumstances));
  }
  if (page) reply.content_type = "text/html; charset=utf-8";
  return reply;
}

awaitable<Reply> Experiments::promote(Caller caller, std::string id, Json body) {
  std::optional<ExperimentEntry> entry = find(id);
  if (!entry) co_return refusal(404, {fmt::format("there is no experiment \"{}\"", id)});
  if (entry->running()) co_return refusal(409, {fmt::format("experiment {} still runs", id)});
  if (entry->verdict != live::Verdict::ship && !body.value("override", false)) {
    std::vector<std::string> errors{fmt::format(
        "experiment {} is {}, its verdict \"{}\": only \"ship\" is promoted without override", id,
        to_text(entry->state), verdict_text(*entry))};
    for (const std::string& reason : entry->reasons) errors.push_back(reason);
    co_return refusal(409, std::move(errors));
  }
  const auto files = live::read_experiment_folder(folder_of(entry->number),
                                                  parts_.parameters.catalogue().algorithms());
  if (!files.ok()) co_return refusal(409, files.errors);
  const config::CcConfig& cc = files.value.plan.arms[1].cc;
  Json params = Json::object();
  for (const auto& param : cc.params) params[param.name] = param.value;
  std::vector<std::string> nics;
  for (const auto& cluster : entry->nics) nics.insert(nics.end(), cluster.begin(), cluster.end());
  Json change{{"nics", nics},
              {"algorithm", cc.algorithm},
              {"profile", cc.profile},
              {"params", std::move(params)},
              {"why", fmt::format("experiment {}, schedule {}: {}", id, entry->digest.substr(0, 16),
                                  body.value("why", std::string()))}};
  Reply reply = co_await parts_.parameters.change(std::move(caller), std::move(change),
                                                  ChangeAction::promote);
  if (reply.status != 200) co_return reply;
  const std::int64_t number = reply.body["change"].value("number", std::int64_t{0});
  if (const Run run = run_of(entry->number)) {
    run->set_promoted(number);
  } else {
    entry->promoted = number;
    keep(*entry);
    parts_.hub.publish("experiment", Json{{"event", "promoted"}, {"id", id}, {"change", number}});
  }
  co_return reply;
}

}  // namespace paceline::daemon
