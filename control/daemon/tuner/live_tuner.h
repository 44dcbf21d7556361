// The tuner at work on the service: takes windows from the sampler, carries out orders over the
// control socket, and keeps state in the store (tuner_records.h). control/tuner/online makes the
// decisions; this class knows what is really in force and tells it.
//
// A candidate is put in force as a trial (arm 1). The service ends the trial by itself when the
// daemon is silent for `hold`, and its guard ends it within 300 ms. Ending the trial restores the
// incumbent. So arm 0 is always what was accepted last, and only that is journalled as a change of
// parameters, by "tuner". While a candidate is in force, the service refuses other trials and
// changes.
//
// All NICs are tuned as one: NICs of a service that do not run the same parameters are an error.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/parameters/parameters.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"
#include "control/daemon/store/store.h"
#include "control/daemon/telemetry/sampler.h"
#include "control/daemon/tuner/last_order.h"
#include "control/daemon/tuner/tuner_orders.h"
#include "control/daemon/tuner/tuner_records.h"
#include "control/daemon/tuner/tuner_trial.h"
#include "control/daemon/tuner/tuner_windows.h"
#include "control/tuner/online/tuner.h"

namespace paceline::daemon {

struct LiveTunerSettings {
  tuner::online::TunerOptions options;  // `mode`: as configured
  std::vector<std::string> problems;    // with these options; only mode off is allowed then
  std::string presets;                  // folder; empty: none
  std::string kill_switch;              // file
  std::int64_t hold_ms = 30'000;
};

class LiveTuner {
 public:
  // All arguments outlive it.
  LiveTuner(boost::asio::io_context& context, ControlClient& service, Parameters& parameters,
            const Sampler& sampler, Store& store, EventHub& hub, const Clock& clock);
  ~LiveTuner();

  // Call it before the first attached(), with the store open: restores the stored mode.
  void begin(LiveTunerSettings settings);
  // The configuration was read again: the mode, where it is another, and the kill switch.
  void reconfigure(tuner::online::Mode mode, std::string kill_switch);
  // After each connection, once Parameters::settle() is done. Ends trials that an earlier daemon
  // left, reads what is in force, and continues.
  boost::asio::awaitable<void> attached();
  void lost();
  // Whether sampled() will look at messages, and at all of them.
  bool looks() const { return tuner_ != nullptr && mode_ != tuner::online::Mode::off; }
  // After each round of samples.
  void sampled(std::int64_t now_unix_ns);
  void stop();

  // The experiment that runs or waits to; empty: none. While there is one the tuner stands by, and
  // it may begin once holds() is false.
  std::function<std::string()> experiment;
  bool holds() const { return trial_.runs() || working_; }
  // It talks to the service.
  bool busy() const { return working_; }

  Reply show();
  boost::asio::awaitable<Reply> set_mode(Caller caller, std::string mode, std::string why);
  Reply journal(std::int64_t after, std::size_t most);

 private:
  tuner::online::Surroundings surroundings();
  std::string guard_words() const;
  void make(const ParamSet& set);
  void restore(const cc::AlgorithmInfo& info);
  void take(std::optional<tuner::online::Order> order);
  void save();
  bool as_expected() const;
  void apply_mode(tuner::online::Mode mode);
  void wake();
  boost::asio::awaitable<void> work();
  boost::asio::awaitable<void> look();
  boost::asio::awaitable<bool> leave_trials();
  boost::asio::awaitable<Carried> carry_out(tuner::online::Order order, std::string* why);
  boost::asio::awaitable<Carried> try_candidate(tuner::online::Order order, std::string* why);
  boost::asio::awaitable<Carried> settle_on(tuner::online::Order order, std::string* why);
  void found(const TunedNics& now);
  void expect(const std::vector<NicParams>& nics);

  boost::asio::io_context& context_;
  ControlClient& service_;
  Parameters& parameters_;
  const Sampler& sampler_;
  const Clock& clock_;
  boost::asio::steady_timer patience_;
  LiveTunerSettings settings_;

  tuner::online::Mode mode_ = tuner::online::Mode::off;
  const cc::AlgorithmInfo* info_ = nullptr;
  std::unique_ptr<tuner::online::PresetLibrary> presets_;  // outlives tuner_
  std::unique_ptr<tuner::online::Tuner> tuner_;
  TunerWindows windows_;
  TunerRecords records_;
  LastOrder order_;
  TunerTrial trial_;  // ours that is in force

  std::vector<double> settled_;                       // values of arm 0; empty: not known
  std::map<std::string, std::uint64_t> generations_;  // by NIC, with what is in force
  std::string trouble_;   // the NICs cannot be tuned as one, or the algorithm is unknown
  bool ready_ = false;    // what is in force is known
  bool working_ = false;  // work() runs
  bool look_due_ = false;
  bool renew_due_ = false;
  bool stopped_ = false;
  std::int64_t looked_ns_ = 0;  // Unix time
};

// GET and PUT /v1/tuner, GET /v1/tuner/journal.
void add_tuner_endpoints(Endpoints& endpoints, LiveTuner& tuner);

}  // namespace paceline::daemon
