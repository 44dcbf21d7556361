// The tuner's trial at the service, with which a candidate is put in force, and whether another
// client has one.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"

namespace paceline::daemon {

// How the carrying out of an order, or a part of it, ended.
enum class Carried : std::uint8_t { done, refused, waits, unanswered };

class TunerTrial {
 public:
  // Both outlive it.
  TunerTrial(ControlClient& service, const Clock& clock) : service_(service), clock_(clock) {}

  bool runs() const { return !name_.empty(); }
  // Whether another client's trial runs, as far as is known.
  bool others_run() const { return others_run_; }
  void note_others() { others_run_ = true; }
  // The connection is lost: the service ends the trial by itself.
  void forget() { name_.clear(); }

  // Begins a trial with these parameters, for order `number`, and puts its arm in force. The
  // service ends it `hold_ms` after the last renewal. `why`: of a refusal. waits: another trial is
  // there.
  boost::asio::awaitable<Carried> begin(std::uint64_t number, Json params, std::int64_t hold_ms,
                                        std::string* why);
  // A quarter of `hold_ms` has passed.
  bool renewal_due(std::int64_t now_unix_ns, std::int64_t hold_ms) const;
  // False: the service refuses; the trial may be gone.
  boost::asio::awaitable<bool> renew();
  // False: the service did not answer.
  boost::asio::awaitable<bool> end();

  struct Left {
    bool answered = false;  // by the service, to the end
    // Why the trial has ended. Nothing: none ran.
    std::optional<std::string> ended;
  };
  // Ends the tuner's trials, also those of an earlier daemon, and notes whether others have one.
  boost::asio::awaitable<Left> leave_all();

 private:
  ControlClient& service_;
  const Clock& clock_;
  std::string name_;  // empty: none runs
  bool others_run_ = false;
  std::uint32_t epoch_ = 0;
  std::int64_t renewed_ns_ = 0;  // Unix time
};

}  // namespace paceline::daemon
