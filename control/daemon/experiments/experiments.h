// Live experiments of this host: started, driven, resumed after a crash of the daemon, and stored.
// One at a time per NIC.
//
// Before the first block the schedule is drawn and registered: its digest is in the store, in the
// answer and in the name of the trial. An experiment ends with the champion in force; a candidate
// that is to stay is promoted afterwards, which is a change of parameters like any other: in the
// journal, and reverted the same way.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon/experiments/experiment_run.h"
#include "control/daemon/parameters/parameters.h"
#include "control/daemon/service_link/async_mutex.h"

namespace paceline::daemon {

class Experiments {
 public:
  struct Parts {  // all outlive it
    boost::asio::io_context& context;
    ControlClient& service;
    const Sampler& sampler;
    Store& store;
    EventHub& hub;
    const Clock& clock;
    Parameters& parameters;
  };
  Experiments(const Parts& parts, ExperimentSettings settings);

  // Before the first connection. Returns an error, or an empty text.
  std::string open();
  // After each connection: an experiment that was running continues, or is found to have ended.
  boost::asio::awaitable<void> attached();
  // After each round of samples.
  void sampled();
  // The daemon ends; what runs is for the next one to take up.
  void leave();

  // Body: plan, why, file?, aa?, promote?, dry_run?
  boost::asio::awaitable<Reply> start(Caller caller, Json body);
  Reply list(std::size_t most);
  Reply show(std::string_view id);
  Reply stop(const Caller& caller, std::string_view id, const Json& body);
  Reply report(std::string_view id, bool page);
  // Body: why, override?
  boost::asio::awaitable<Reply> promote(Caller caller, std::string id, Json body);

  bool running() const { return !runs_.empty(); }

 private:
  using Run = std::shared_ptr<ExperimentRun>;
  struct Places {
    std::vector<std::vector<std::string>> nics;  // by cluster
    std::vector<std::string> errors;
    std::vector<std::string> warnings;
    bool unanswered = false;
  };
  boost::asio::awaitable<Places> places_of(const experiment::live::Plan& plan,
                                           const std::string& file);
  boost::asio::awaitable<void> drive(Run run);
  std::optional<ExperimentEntry> find(std::string_view id);
  std::vector<ExperimentEntry> entries();
  Run run_of(std::int64_t number) const;
  std::string check_calibration(const experiment::live::Plan& plan);
  std::int64_t next_number();
  void keep(const ExperimentEntry& entry);
  ExperimentRun::Parts run_parts() const;
  std::string folder_of(std::int64_t number) const;

  Parts parts_;
  ExperimentSettings settings_;
  AsyncMutex turns_;
  std::vector<Run> runs_;
};

// /v1/experiments
void add_experiment_endpoints(Endpoints& endpoints, Experiments& experiments);

}  // namespace paceline::daemon
