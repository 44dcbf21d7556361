#include "control/daemon/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "control/daemon/config/tuner_options.h"
#include "control/daemon/telemetry/look_endpoint.h"
#include "control/daemon/telemetry/telemetry_endpoints.h"
#include "control/daemon/telemetry/telemetry_json.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::daemon {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr auto kSuperviseEvery = std::chrono::milliseconds(50);
constexpr auto kQuarantineKnown = std::chrono::milliseconds(250);
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kMostEvents = 10'000;

SupervisorSettings supervisor_settings(const DaemonConfig& config, std::uint64_t seed) {
  SupervisorSettings settings;
  settings.starts = !config.dataplane.testbed.empty();
  settings.seed = seed;
  return settings;
}

SamplerSettings sampler_settings(const DaemonSetup& setup) {
  const TelemetryConfig& t = setup.config.telemetry;
  SamplerSettings settings;
  settings.history = {to_nanos(t.interval).count, to_nanos(t.fine_span).count};
  settings.stalled_after = t.stalled_after;
  return settings;
}

ExperimentSettings experiment_settings(const DaemonSetup& setup) {
  ExperimentSettings settings;
  settings.folder = setup.state_folder + "/experiments";
  settings.version = setup.version;
  return settings;
}

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

// An exception in a loop is a bug of the daemon. It ends the daemon, which is then restarted,
// rather than half of it running on.
void no_exception(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

Daemon::Daemon(asio::io_context& context, DaemonSetup setup, Clock clock)
    : context_(context),
      setup_(std::move(setup)),
      clock_(std::move(clock)),
      looks_(context),
      supervision_(context) {
  if (setup_.config.dataplane.socket.empty()) {
    setup_.config.dataplane.socket = setup_.runtime_folder + "/paceline.sock";
  }
  ControlSettings control;
  control.path = service::control_socket_beside(setup_.config.dataplane.socket);
  client_ = std::make_unique<ControlClient>(context_, control);
  guard_ = std::make_unique<ServiceGuard>(*client_);
  sampler_ = std::make_unique<Sampler>(sampler_settings(setup_));
  parameters_ = std::make_unique<Parameters>(context_, *client_, store_, hub_, clock_);
  experiments_ = std::make_unique<Experiments>(
      Experiments::Parts{context_, *client_, *sampler_, store_, hub_, clock_, *parameters_},
      experiment_settings(setup_));
  supervisor_ =
      std::make_unique<Supervisor>(supervisor_settings(setup_.config, setup_.seed), *client_);
  supervisor_->set_launch(launch());
  tuner_ = std::make_unique<LiveTuner>(context_, *client_, *parameters_, *sampler_, store_, hub_,
                                       clock_);
  tuner_->experiment = [this] {
    return std::string(experiments_->running() ? "an experiment runs" : "");
  };
  add_parameter_endpoints(endpoints_, *parameters_);
  add_experiment_endpoints(endpoints_, *experiments_);
  add_tuner_endpoints(endpoints_, *tuner_);
  add_telemetry_endpoints(endpoints_, *sampler_, clock_, [this] { return figures(); });
  probes_ = std::make_unique<Probes>(context_, control);
  add_look_endpoint(endpoints_, *sampler_, *client_, clock_);
  add_probe_endpoints(endpoints_, *probes_);
  add_guard_endpoints(endpoints_, *guard_,
                      [this](std::string_view topic, Json data) { tell(topic, std::move(data)); });
  add_endpoints();
}

Daemon::~Daemon() = default;

std::string Daemon::kill_switch() const {
  const std::string& file = setup_.config.tuner.kill_switch;
  return file.empty() ? setup_.state_folder + "/tuner-stop" : file;
}

Launch Daemon::launch() const {
  const DataplaneConfig& c = setup_.config.dataplane;
  std::string program = c.program;
  // Beside the daemon, as installed, or where a build tree has it.
  for (const char* const folder : {"", "/../bin", "/../../dataplane/service"}) {
    const std::string place = setup_.program_folder + folder + "/paceline-dataplane";
    if (program.empty() && ::access(place.c_str(), X_OK) == 0) program = place;
  }
  if (program.empty()) program = "paceline-dataplane";
  Launch launch;
  launch.arguments = {program, "--foreground", "--testbed", c.testbed, "--socket", c.socket};
  for (const std::string& set : c.set) {
    launch.arguments.emplace_back("--set");
    launch.arguments.push_back(set);
  }
  launch.environment = inherited_environment(setup_.environment);
  launch.log = c.log.empty() ? setup_.state_folder + "/dataplane.log" : c.log;
  return launch;
}

std::string Daemon::open() {
  const std::string file = setup_.state_folder + "/pacelined.db";
  if (std::string wrong = store_.open(file, clock_.unix_ns()); !wrong.empty()) return wrong;
  for (const std::string& note : store_.notes()) spdlog::error("{}", note);
  store_.prune("event", kMostEvents);
  if (std::string wrong = experiments_->open(); !wrong.empty()) return wrong;
  LiveTunerSettings tuner;
  tuner.options = tuner_options(setup_.config, setup_.seed);
  tuner.problems = tuner_problems(setup_.config);
  tuner.presets = setup_.config.tuner.presets;
  tuner.kill_switch = kill_switch();
  tuner.hold_ms = to_nanos(setup_.config.tuner.hold).count / 1'000'000;
  tuner_->begin(std::move(tuner));
  const ApiConfig& c = setup_.config.api;
  ApiSettings api;
  api.socket = c.socket.empty() ? setup_.runtime_folder + "/pacelined.sock" : c.socket;
  api.descriptor = setup_.api_descriptor;
  api.group = c.group;
  api.world_readable = c.world_readable;
  api.version = setup_.version;
  if (!c.address.empty()) {
    api.tcp =
        TcpSettings{c.address, static_cast<std::uint16_t>(c.port), c.certificate, c.key, c.tokens};
  }
  if (c.metrics_port != 0) api.metrics_port = static_cast<std::uint16_t>(c.metrics_port);
  api_ = std::make_unique<ApiServer>(context_, api, endpoints_, hub_);
  if (std::string wrong = api_->start(); !wrong.empty()) return wrong;
  if (!api_->metrics_trouble().empty()) spdlog::error("{}", api_->metrics_trouble());
  if (api_->metrics_port() != 0) {
    spdlog::info("metrics at http://127.0.0.1:{}/metrics", api_->metrics_port());
  }
  spdlog::info("API at {}", setup_.api_descriptor >= 0 ? "the socket of systemd" : api.socket);
  return {};
}

// Logs which service the daemon starts or waits for.
void Daemon::say_what_is_started() const {
  const DataplaneConfig& c = setup_.config.dataplane;
  if (c.testbed.empty()) {
    spdlog::warn(
        "dataplane.testbed is not set in {}: no service is started here; waiting for one at {}",
        setup_.config_file, c.socket);
  } else {
    spdlog::info("attaches to a service that answers at {}; otherwise starts one from {}", c.socket,
                 c.testbed);
  }
}

void Daemon::start() {
  say_what_is_started();
  started_unix_ns_ = clock_.unix_ns();
  client_->up = [this](const Json& hello, std::int32_t pid) {
    supervisor_->attached(pid);
    std::string nics;
    for (const Json& nic : hello.value("nics", Json::array())) {
      if (nic.is_object()) nics += " " + nic.value("name", std::string());
    }
    spdlog::info("attached to the service, process {}, with NICs{}", pid, nics);
    asio::co_spawn(context_, attach(hello), no_exception);
  };
  client_->down = [this] {
    sampler_->close();
    tuner_->lost();
    tell("dataplane", Json{{"event", "lost"}, {"why", client_->trouble()}});
  };
  asio::co_spawn(context_, client_->run(), no_exception);
  supervise();
  // A look that comes often enough does for both: to wake up is most of what either costs.
  const auto interval = std::chrono::nanoseconds(to_nanos(setup_.config.telemetry.interval).count);
  supervises_with_looks_ = interval <= kSuperviseEvery;
  std::string wrong = looks_.start(interval, [this] { look(); });
  if (wrong.empty() && !supervises_with_looks_) {
    wrong = supervision_.start(kSuperviseEvery, [this] { supervise(); });
  }
  if (!wrong.empty()) throw std::runtime_error(wrong);
}

std::string Daemon::what_becomes_of_the_service() {
  const std::int32_t pid = supervisor_->pid();
  if (pid == 0) return "there is no service";
  return setup_.config.dataplane.end_with_daemon
             ? fmt::format("the service, process {}, is ended, too (dataplane.end_with_daemon)",
                           pid)
             : fmt::format("the service, process {}, goes on", pid);
}

void Daemon::stop() {
  if (stopped_) return;
  stopped_ = true;
  experiments_->leave();
  if (setup_.config.dataplane.end_with_daemon) supervisor_->end();
  client_->stop();
  probes_->stop();
  looks_.stop();
  supervision_.stop();
  tuner_->stop();
  if (api_) api_->stop();
}

void Daemon::tell(std::string_view topic, Json data) {
  std::int64_t number = 0;
  const std::string wrong = store_.append("event", topic, data, clock_.unix_ns(), number);
  if (!wrong.empty()) spdlog::error("not in the journal: {}", wrong);
  hub_.publish(topic, data);
}

awaitable<void> Daemon::attach(Json hello) {
  Json members = Json::object();
  const ControlAnswer answer = co_await client_->call("telemetry", std::move(members));
  std::string wrong;
  if (!answer.ok() || answer.descriptors.size() != 1) {
    wrong = answer.errors.empty() ? "it came without a descriptor" : answer.errors.front();
  } else {
    const int fd = ::fcntl(answer.descriptors.front().get(), F_DUPFD_CLOEXEC, 3);
    struct stat facts {};
    attach::SharedMemory segment;
    if (fd < 0 || ::fstat(fd, &facts) != 0 || facts.st_size <= 0 ||
        !segment.open(attach::Descriptor(fd), static_cast<std::size_t>(facts.st_size), false)) {
      wrong = std::strerror(errno);
    } else {
      wrong = sampler_->open(std::move(segment));
    }
  }
  quarantines_.begin(*sampler_);
  if (!wrong.empty() && !stopped_) spdlog::error("no telemetry from the service: {}", wrong);
  for (const std::string& note : sampler_->take_notes()) spdlog::info("{}", note);
  if (wrong.empty()) {
    spdlog::info("telemetry of {} NICs, {} series each; histories take {:.1f} MB",
                 sampler_->nics().size(), sampler_->series().size(),
                 static_cast<double>(sampler_->history_bytes()) / 1e6);
  }
  tell("dataplane", Json{{"event", "attached"},
                         {"pid", hello.value("pid", 0)},
                         {"start_unix_ns", hello.value("start_unix_ns", std::uint64_t{0})},
                         {"version", hello.value("version", std::string())}});
  co_await parameters_->settle(std::move(hello));
  co_await experiments_->attached();
  if (client_->connected()) co_await tuner_->attached();
}

void Daemon::look() {
  if (stopped_) return;
  const std::int64_t now = clock_.unix_ns();
  const bool whole = experiments_->running() || tuner_->looks();
  sampler_->set_detail(whole ? telemetry::MessageDetail::whole : telemetry::MessageDetail::totals);
  sampler_->sample(now);
  notice_changes();
  experiments_->sampled();
  tuner_->sampled(now);
  if (sampled) sampled(now);
  const std::int64_t monotonic = clock_.monotonic_ns();
  if (monotonic >= next_second_ns_) {
    next_second_ns_ = monotonic - monotonic % kSecondNs + kSecondNs;
    each_second(now);
  }
  if (supervises_with_looks_ && monotonic >= next_supervision_ns_) supervise();
}

void Daemon::each_second(std::int64_t now_unix_ns) {
  sampler_->look_at_queue_pairs(now_unix_ns);
  if (hub_.listeners() == 0) return;
  Json nics = Json::array();
  for (std::size_t nic = 0; nic < sampler_->nics().size(); ++nic) {
    nics.push_back(nic_summary(*sampler_, nic, now_unix_ns));
  }
  hub_.publish("sample", Json{{"at_unix_ns", now_unix_ns}, {"nics", std::move(nics)}});
}

void Daemon::notice_changes() {
  bool adopt = false;
  for (const NicChange& change : sampler_->changes()) {
    const std::string& nic = sampler_->nics()[change.nic].name;
    if (change.after.arm != change.before.arm || change.after.epoch != change.before.epoch) {
      hub_.publish("trial", Json{{"nic", nic},
                                 {"arm", change.after.arm},
                                 {"epoch", change.after.epoch},
                                 {"generation", change.after.generation}});
    }
    if (change.after.guard != change.before.guard) {
      if (change.after.guard == 0) {
        tell("guard", Json{{"event", "cleared"}, {"nic", nic}});
      } else {
        asio::co_spawn(context_, tell_trip(nic, change.after.guard), no_exception);
      }
    }
    adopt = adopt || (change.after.generation != change.before.generation &&
                      change.after.arm == 0 && change.after.epoch == 0);
  }
  for (std::string& nic : quarantines_.look(*sampler_)) {
    asio::co_spawn(context_, tell_quarantine(std::move(nic)), no_exception);
  }
  if (adopt && !parameters_->busy()) asio::co_spawn(context_, parameters_->adopt(), no_exception);
}

awaitable<void> Daemon::tell_trip(std::string nic, std::uint32_t number) {
  Json data{{"event", "tripped"}, {"nic", nic}, {"number", number}};
  const Json trip = co_await guard_->trip(nic, number);
  if (!trip.is_null()) data["trip"] = trip;
  spdlog::warn("the guard tripped on {}: {}", nic, data.dump());
  tell("guard", std::move(data));
}

// The figures are read more often than the service looks at them: it needs a moment to find out
// which plug-in it was.
awaitable<void> Daemon::tell_quarantine(std::string nic) {
  asio::steady_timer moment(context_, kQuarantineKnown);
  boost::system::error_code error;
  co_await moment.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (stopped_) co_return;
  Json data{{"event", "quarantined"}, {"nic", nic}};
  if (const auto why = co_await guard_->quarantine(nic)) data["why"] = *why;
  spdlog::warn("a plug-in on {}: {}", nic, data.dump());
  tell("plugin", std::move(data));
}

void Daemon::supervise() {
  const std::int64_t now = clock_.monotonic_ns();
  next_supervision_ns_ = now + std::chrono::nanoseconds(kSuperviseEvery).count();
  for (const std::string& note : supervisor_->step(now)) {
    spdlog::warn("{}", note);
    tell("dataplane", Json{{"event", "supervisor"}, {"note", note}});
  }
  const auto every = static_cast<std::int64_t>(setup_.watchdog_us) * 1000 / 2;
  if (setup_.alive && every > 0 && now - told_alive_ns_ >= every) {
    told_alive_ns_ = now;
    setup_.alive();
  }
}

DaemonFigures Daemon::figures() const {
  DaemonFigures figures;
  figures.connected = client_->connected();
  figures.service_starts = supervisor_->plan().starts();
  figures.samples = sampler_->samples();
  figures.store_trouble = !store_.trouble().empty();
  figures.api_requests = api_ ? api_->counts().requests : 0;
  figures.history_bytes = sampler_->history_bytes();
  figures.build = setup_.build;
  return figures;
}

// --- what the API offers of the daemon itself ---

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
  Endpoint get_status = endpoint_of("GET", "/v1/status", "daemon",
                                    "The daemon, and the services and NICs that it watches",
                                    "version, dataplane, telemetry, store, api");
  get_status.handle = [this](Request) -> awaitable<Reply> { co_return status(); };
  endpoints_.add(std::move(get_status));

  Endpoint healthz = endpoint_of("GET", "/healthz", "daemon", "Whether all is well",
                                 "healthy; 503 with errors where something is not");
  healthz.handle = [this](Request) -> awaitable<Reply> { co_return health(); };
  endpoints_.add(std::move(healthz));

  Endpoint replace = endpoint_of("POST", "/v1/dataplane/upgrade", "daemon",
                                 "Restart the service; parameters are put back",
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
    spdlog::info("reload requested by {}", request.caller.name);
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
