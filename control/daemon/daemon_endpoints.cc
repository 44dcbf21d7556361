// /v1/status, /healthz, the guard, the service's process, the journal of events and reload.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/daemon/config/tuner_options.h"
#include "control/daemon/daemon.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

constexpr double kMostNumber = 9e15;

Endpoint endpoint_of(std::string method, std::string path, std::string tag, std::string summary,
                     std::string answer) {
  Endpoint endpoint;
  endpoint.method = std::move(method);
  endpoint.path = std::move(path);
  endpoint.tag = std::move(tag);
  endpoint.summary = std::move(summary);
  endpoint.answer = std::move(answer);
  endpoint.writes = endpoint.method != "GET";
  return endpoint;
}

}  // namespace

Reply Daemon::status() {
  Reply reply;
  const SupervisorPlan& plan = supervisor_->plan();
  reply.body = Json{
      {"version", setup_.version},
      {"started_unix_ns", started_unix_ns_},
      {"config", setup_.config_file},
      {"dataplane",
       {{"state", supervisor_state_name(plan.state())},
        {"connected", client_->connected()},
        {"trouble", client_->trouble()},
        {"pid", supervisor_->pid()},
        {"supervised", !setup_.config.dataplane.testbed.empty()},
        {"testbed", setup_.config.dataplane.testbed},
        {"socket", setup_.config.dataplane.socket},
        {"starts", plan.starts()},
        {"failures", plan.failures()}}},
      {"telemetry",
       {{"fresh", sampler_->fresh()},
        {"nics", sampler_->nics().size()},
        {"samples", sampler_->samples()},
        {"interval_ns", sampler_->settings().history.slot_ns},
        {"queue_pairs_followed", sampler_->queue_pair_history().followed()},
        {"history_bytes", sampler_->history_bytes()}}},
      {"store", {{"path", store_.path()}, {"trouble", store_.trouble()}}},
      {"api",
       {{"requests", figures().api_requests}, {"connections", api_ ? api_->connections() : 0}}}};
  return reply;
}

Reply Daemon::health() {
  std::vector<std::string> wrong;
  if (!client_->connected()) wrong.push_back("no service: " + client_->trouble());
  for (std::size_t nic = 0; client_->connected() && nic < sampler_->nics().size(); ++nic) {
    if (!sampler_->fresh(nic)) {
      wrong.push_back(fmt::format("telemetry of {} is {}", sampler_->nics()[nic].name,
                                  telemetry_state_name(sampler_->state(nic))));
    }
  }
  if (!store_.trouble().empty()) wrong.push_back(store_.trouble());
  if (!wrong.empty()) return refusal(503, wrong);
  Reply reply;
  reply.body = Json{{"healthy", true}};
  return reply;
}

awaitable<Reply> Daemon::guard() {
  Json members = Json::object();
  const ControlAnswer answer = co_await client_->call("guard", std::move(members));
  if (!answer.ok()) co_return refusal(503, answer.errors);
  Reply reply;
  reply.body["nics"] = answer.body.value("nics", Json::array());
  co_return reply;
}

awaitable<Reply> Daemon::clear_guard(Caller caller, Json body) {
  Json members = Json::object();
  if (body.contains("nics")) members["nics"] = body["nics"];
  const ControlAnswer answer = co_await client_->call("clear_guard", std::move(members));
  if (answer.kind == ControlAnswer::Kind::refused) co_return refusal(409, answer.errors);
  if (!answer.ok()) co_return refusal(503, answer.errors);
  tell("guard", Json{{"event", "clear"},
                     {"who", caller.name},
                     {"why", body.value("why", std::string())},
                     {"nics", body.value("nics", Json("all"))}});
  co_return Reply{};
}

Reply Daemon::upgrade(const Caller& caller, const Json& body) {
  if (!body.value("force", false)) {
    const auto sessions = sampler_->find_series("sessions");
    if (!sampler_->fresh() || !sessions) {
      return refusal(409, {"whether programs are attached cannot be told: no fresh telemetry; "
                           "\"force\" does it all the same"});
    }
    std::uint64_t most = 0;
    for (std::size_t nic = 0; nic < sampler_->nics().size(); ++nic) {
      most = std::max(most, sampler_->values(nic)[*sessions]);
    }
    if (most > 0) {
      return refusal(409,
                     {fmt::format("programs are attached ({} to one NIC) and would be cut off; "
                                  "\"force\" does it all the same",
                                  most)});
    }
  }
  if (!supervisor_->replace(clock_.monotonic_ns())) {
    return refusal(409, {fmt::format("the service is {}, not running under this daemon, or not "
                                     "started by it (dataplane.testbed)",
                                     supervisor_state_name(supervisor_->plan().state()))});
  }
  tell("dataplane",
       Json{{"event", "upgrade"}, {"who", caller.name}, {"why", body.value("why", "")}});
  Reply reply;
  reply.status = 202;
  reply.body = Json{{"state", "ending"}};
  return reply;
}

Reply Daemon::reload() {
  config::Read<DaemonConfig> read = read_daemon_file(setup_.config_file);
  std::vector<std::string> errors = std::move(read.errors);
  DaemonConfig& next = read.value;
  if (errors.empty()) {
    if (next.dataplane.socket.empty())
      next.dataplane.socket = setup_.runtime_folder + "/paceline.sock";
    for (const std::string& key : fixed_changes(setup_.config, next)) {
      errors.push_back(fmt::format("{}: {} cannot change while pacelined runs; start it again",
                                   setup_.config_file, key));
    }
  }
  if (!errors.empty()) {
    for (const std::string& error : errors) spdlog::error("{}", error);
    spdlog::error("the configuration stays as it was");
    return refusal(400, errors);
  }
  setup_.config = std::move(next);
  supervisor_->set_launch(launch());
  tuner_->reconfigure(tuner_options(setup_.config, setup_.seed).mode, kill_switch());
  sampler_->set_stalled_after(setup_.config.telemetry.stalled_after);
  spdlog::set_level(spdlog::level::from_str(setup_.config.daemon.log_level));
  spdlog::info("{}: read again, in force", setup_.config_file);
  Reply reply;
  reply.body = Json{{"config", setup_.config_file}};
  return reply;
}

void Daemon::add_endpoints() {
  Endpoint get_status =
      endpoint_of("GET", "/v1/status", "daemon", "The daemon, and what it watches",
                  "version, dataplane, telemetry, store, api");
  get_status.handle = [this](Request) -> awaitable<Reply> { co_return status(); };
  endpoints_.add(std::move(get_status));

  Endpoint healthz = endpoint_of("GET", "/healthz", "daemon", "Whether all is well",
                                 "healthy; 503 with errors where something is not");
  healthz.handle = [this](Request) -> awaitable<Reply> { co_return health(); };
  endpoints_.add(std::move(healthz));

  Endpoint get_guard =
      endpoint_of("GET", "/v1/guard", "guard", "Limits of the guard, and its trips",
                  "nics: limits, trips, latched");
  get_guard.handle = [this](Request) -> awaitable<Reply> { co_return co_await guard(); };
  endpoints_.add(std::move(get_guard));

  Endpoint clear =
      endpoint_of("DELETE", "/v1/guard", "guard", "Let what is latched be tried again", "nothing");
  clear.body = {{"nics", FieldType::list, false, "names of NICs; absent: all"},
                {"why", FieldType::text, false, "the reason, for the journal"}};
  clear.handle = [this](Request request) -> awaitable<Reply> {
    co_return co_await clear_guard(request.caller, request.body);
  };
  endpoints_.add(std::move(clear));

  Endpoint replace =
      endpoint_of("POST", "/v1/dataplane/upgrade", "daemon",
                  "End the service and start its program anew; parameters are put back",
                  "state; 409 where programs are attached");
  replace.body = {{"force", FieldType::flag, false, "cut attached programs off"},
                  {"why", FieldType::text, true, "the reason, for the journal"}};
  replace.handle = [this](Request request) -> awaitable<Reply> {
    co_return upgrade(request.caller, request.body);
  };
  endpoints_.add(std::move(replace));

  Endpoint again = endpoint_of("POST", "/v1/reload", "daemon", "Read the configuration file again",
                               "config; 400 with all errors where it stays as it was");
  again.handle = [this](Request request) -> awaitable<Reply> {
    spdlog::info("reload asked for by {}", request.caller.name);
    co_return reload();
  };
  endpoints_.add(std::move(again));

  Endpoint journal =
      endpoint_of("GET", "/v1/journal", "daemon", "What happened: restarts, trips of the guard",
                  "events: oldest first, each with number, at_unix_ns, topic and data");
  journal.query = {
      {"topic", FieldType::text, false, "of this topic only"},
      {"after", FieldType::whole, false, "after this number only", {}, 0, kMostNumber},
      {"limit", FieldType::whole, false, "at most so many, by default 100", {}, 1, 1000}};
  journal.handle = [this](Request request) -> awaitable<Reply> {
    Json events = Json::array();
    const std::string topic = request.in_query("topic");
    for (const StoredEntry& entry : store_.entries(
             "event", topic, static_cast<std::int64_t>(request.number_in_query("after", 0)),
             static_cast<std::size_t>(request.number_in_query("limit", 100)))) {
      events.push_back({{"number", entry.number},
                        {"at_unix_ns", entry.at_unix_ns},
                        {"topic", entry.key},
                        {"data", entry.body}});
    }
    Reply reply;
    reply.body["events"] = std::move(events);
    co_return reply;
  };
  endpoints_.add(std::move(journal));
}

}  // namespace paceline::daemon
