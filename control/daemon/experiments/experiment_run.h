// A running live experiment. It carries out the runner's requests through the control protocol,
// reports telemetry and the service's answers to the runner, and stores results before they count.
//
// Each cluster of the plan has its own trial in the service. If the daemon stops renewing the
// trial, the service puts the champion back by itself (the trial's hold). Clusters of receivers'
// ports have one trial together, because every sender must know all of them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/experiments/experiment_edges.h"
#include "control/daemon/experiments/experiment_entry.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"
#include "control/daemon/store/store.h"
#include "control/daemon/telemetry/sampler.h"
#include "control/experiment/live/experiment_folder.h"
#include "control/experiment/live/runner.h"

namespace paceline::daemon {

struct ExperimentSettings {
  std::string folder;  // of all experiments
  // The time between two looks in a block; how long telemetry may be missing before the experiment
  // waits for it; and how long it must be back to be trusted again.
  std::chrono::nanoseconds look = std::chrono::milliseconds(50);
  std::chrono::nanoseconds blink = std::chrono::milliseconds(200);
  std::chrono::nanoseconds well_for = std::chrono::seconds(1);
  std::string version;
};

class ExperimentRun {
 public:
  struct Parts {  // all outlive it
    boost::asio::io_context& context;
    ControlClient& service;
    const Sampler& sampler;
    Store& store;
    EventHub& hub;
    const Clock& clock;
    const ExperimentSettings& settings;
  };
  ExperimentRun(const Parts& parts, ExperimentEntry entry, experiment::live::ExperimentFiles files);

  // Until the experiment is over, or left() is called. Spawn it once.
  boost::asio::awaitable<void> drive();
  // Asks the service for the trials, to be driven from the first block. Errors: nothing has begun.
  boost::asio::awaitable<std::vector<std::string>> begin();
  // For an experiment that an earlier daemon began: looks whether its trials still run.
  boost::asio::awaitable<void> take_up();

  void sampled();
  void stop(const std::string& who, const std::string& why);
  // The daemon ends; the experiment stays as it is, for the next one.
  void leave();

  const ExperimentEntry& entry() const { return entry_; }
  void set_promoted(std::int64_t change);
  const experiment::live::Runner& runner() const { return runner_; }
  Json progress() const;
  std::string folder() const;

 private:
  using Action = experiment::live::Action;
  enum class Put : std::uint8_t { done, refused, unanswered };

  bool by_receiver() const {
    return runner_.plan().design == experiment::live::Design::receiver_ports;
  }
  std::size_t trial_count() const { return by_receiver() ? 1 : entry_.nics.size(); }
  std::string trial_name(std::size_t trial) const;
  Json trial_members(std::size_t trial) const;
  Json arm_members(std::size_t trial, const Action& action) const;
  boost::asio::awaitable<Put> put_arms(Action action);
  boost::asio::awaitable<void> use_arms(Action action);
  boost::asio::awaitable<void> pause(Action action);
  boost::asio::awaitable<void> wait(std::uint64_t until_ns);
  boost::asio::awaitable<void> renew();
  boost::asio::awaitable<void> look_at_trials();
  boost::asio::awaitable<void> end_trials();
  boost::asio::awaitable<void> look(std::chrono::nanoseconds at_most);
  void watch();
  void record(const Action& action);
  void finish();
  void fail(const std::string& why);
  void keep_entry();
  void tell(const char* event);
  std::uint64_t now() const { return static_cast<std::uint64_t>(parts_.clock.monotonic_ns()); }

  Parts parts_;
  ExperimentEntry entry_;
  experiment::live::Runner runner_;
  ExperimentEdges edges_;
  boost::asio::steady_timer timer_;
  std::uint64_t renewed_ns_ = 0;
  std::uint64_t block_began_ns_ = 0;
  std::uint32_t block_ = 0;
  const char* doing_ = "beginning";
  bool left_ = false;
  bool well_ = true;     // as the runner was told
  bool paused_ = false;  // the champion is in force everywhere
  bool failed_ = false;  // it ended for a reason that is not a finding
  bool guard_seen_ = false;
};

}  // namespace paceline::daemon
