// pacelined itself: makes its parts, connects them and keeps them running. One Asio thread; main()
// reads the clock. Rooms that offer something of their own add endpoints before start() and use
// what is here.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/api/server/api_server.h"
#include "control/daemon/config/daemon_config.h"
#include "control/daemon/experiments/experiments.h"
#include "control/daemon/parameters/parameters.h"
#include "control/daemon/probes.h"
#include "control/daemon/process/supervisor.h"
#include "control/daemon/service_guard.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"
#include "control/daemon/service_link/periodic_timer.h"
#include "control/daemon/store/store.h"
#include "control/daemon/telemetry/metrics_text.h"
#include "control/daemon/telemetry/quarantine_watch.h"
#include "control/daemon/telemetry/sampler.h"
#include "control/daemon/tuner/live_tuner.h"

namespace paceline::daemon {

struct DaemonSetup {
  DaemonConfig config;
  std::string config_file;
  std::string version;
  std::string build;           // the version with the commit, where that is known
  std::string runtime_folder;  // made by main()
  std::string state_folder;    // likewise
  std::string program_folder;  // where pacelined itself is
  std::vector<std::string> environment;
  int api_descriptor = -1;  // of socket activation
  std::uint64_t seed = 1;
  std::uint64_t watchdog_us = 0;
  std::function<void()> alive;  // called while the loops run, within the watchdog's time
};

class Daemon {
 public:
  Daemon(boost::asio::io_context& context, DaemonSetup setup, Clock clock);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Opens the store and the sockets. Returns an error, or an empty text.
  std::string open();
  // Begins to work; the context's run() does the rest.
  void start();
  // Ends the loops and the API; run() returns when the last request is answered. The service
  // continues, unless the configuration says otherwise.
  void stop();

  // For the log, before stop(): says what happens to the service.
  std::string what_becomes_of_the_service();

  // Reads the configuration file again: all of it takes effect, or nothing does.
  Reply reload();

  boost::asio::io_context& context() { return context_; }
  const Clock& clock() const { return clock_; }
  Endpoints& endpoints() { return endpoints_; }
  EventHub& hub() { return hub_; }
  Store& store() { return store_; }
  Sampler& sampler() { return *sampler_; }
  ControlClient& service() { return *client_; }
  Parameters& parameters() { return *parameters_; }
  Experiments& experiments() { return *experiments_; }
  LiveTuner& tuner() { return *tuner_; }
  const DaemonConfig& config() const { return setup_.config; }
  // Called after each round of samples, with Unix time: for the tuner and experiments.
  std::function<void(std::int64_t)> sampled;
  // Writes restarts and trips of the guard into the journal and to listeners.
  void tell(std::string_view topic, Json data);

 private:
  Launch launch() const;
  void say_what_is_started() const;
  std::string kill_switch() const;
  void add_endpoints();
  Reply status();
  Reply health();
  Reply upgrade(const Caller& caller, const Json& body);
  DaemonFigures figures() const;
  boost::asio::awaitable<void> attach(Json hello);
  void look();
  void supervise();
  void notice_changes();
  boost::asio::awaitable<void> tell_trip(std::string nic, std::uint32_t number);
  boost::asio::awaitable<void> tell_quarantine(std::string nic);
  void each_second(std::int64_t now_unix_ns);

  boost::asio::io_context& context_;
  DaemonSetup setup_;
  Clock clock_;
  EventHub hub_;
  Endpoints endpoints_;
  Store store_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<ControlClient> client_;
  std::unique_ptr<ServiceGuard> guard_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Experiments> experiments_;
  std::unique_ptr<LiveTuner> tuner_;
  std::unique_ptr<Probes> probes_;
  std::unique_ptr<ApiServer> api_;
  PeriodicTimer looks_;
  PeriodicTimer supervision_;
  bool supervises_with_looks_ = false;
  std::int64_t next_supervision_ns_ = 0;
  std::int64_t told_alive_ns_ = 0;
  QuarantineWatch quarantines_;
  std::int64_t started_unix_ns_ = 0;
  std::int64_t next_second_ns_ = 0;
  bool stopped_ = false;
};

}  // namespace paceline::daemon
