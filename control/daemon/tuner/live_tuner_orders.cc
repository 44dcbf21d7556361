// What the tuner orders, put in force; and what is in force, found out.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "control/daemon/tuner/live_tuner.h"

namespace paceline::daemon {

using boost::asio::awaitable;
using tuner::online::Order;
using tuner::online::Role;

namespace {

constexpr const char* kTrialPrefix = "tuner-";
constexpr std::uint32_t kEpochs = 255;
// Between two tries of an order that is no candidate's and was refused.
constexpr auto kAskAgain = std::chrono::seconds(1);

std::vector<double> values_of_set(const cc::AlgorithmInfo& info, const ParamSet& set) {
  std::vector<double> out;
  for (const cc::ParamSpec& spec : info.params) {
    const auto at = set.values.find(std::string(spec.name));
    out.push_back(at == set.values.end() ? spec.default_value : at->second);
  }
  return out;
}

Json params_that_differ(const cc::AlgorithmInfo& info, const std::vector<double>& from,
                        const std::vector<double>& to) {
  Json out = Json::object();
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (from[i] != to[i]) out[std::string(info.params[i].name)] = to[i];
  }
  return out;
}

std::string words_of_errors(const std::vector<std::string>& errors) {
  return errors.empty() ? "no reason was told" : fmt::format("{}", fmt::join(errors, "; "));
}

void end_of_work(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

void LiveTuner::wake() {
  if (working_ || stopped_ || !ready_) return;
  if (!look_due_ && !renew_due_ && !pending_) return;
  working_ = true;
  boost::asio::co_spawn(context_, work(), end_of_work);
}

// One after the other; what comes meanwhile is done next. Nobody else calls the service for the
// tuner.
awaitable<void> LiveTuner::work() {
  while (ready_ && !stopped_) {
    if (std::exchange(look_due_, false)) {
      co_await look();
      continue;
    }
    if (pending_ && trouble_.empty() && order_) {
      pending_ = false;
      const Order order = *order_;
      std::string why;
      const Outcome outcome = co_await carry_out(order, &why);
      if (outcome == Outcome::unanswered) {
        pending_ = true;
        break;  // attached() goes on
      }
      if (order_->number != order.number || tuner_ == nullptr) continue;  // a newer one
      if (outcome == Outcome::done) done_ = order.number;
      if (outcome == Outcome::refused) {
        take(tuner_->refused(order.number, why));
        if (order.role != Role::candidate) {
          boost::system::error_code woken;
          patience_.expires_after(kAskAgain);
          co_await patience_.async_wait(
              boost::asio::redirect_error(boost::asio::use_awaitable, woken));
        }
      }
      continue;
    }
    if (std::exchange(renew_due_, false)) {
      if (!trial_.empty()) co_await renew();
      continue;
    }
    break;
  }
  working_ = false;
  if (!stopped_ && dirty_) save();
}

awaitable<void> LiveTuner::attached() {
  // Nobody else of ours may be at it: what ran before lost its connection and ends by itself.
  while (working_ && !stopped_) {
    boost::system::error_code woken;
    patience_.expires_after(std::chrono::milliseconds(5));
    co_await patience_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
  }
  if (stopped_) co_return;
  trial_.clear();
  ready_ = true;
  look_due_ = true;
  wake();
}

awaitable<LiveTuner::InForce> LiveTuner::in_force() {
  InForce out;
  Json members = Json::object();
  const ControlAnswer answer = co_await service_.call("parameters", std::move(members));
  if (!answer.ok()) co_return out;
  std::string error;
  out.nics = nic_params_of(answer.body, error);
  out.known = true;
  if (!error.empty() || out.nics.empty()) {
    out.trouble = error.empty() ? "the service has no NIC" : error;
    co_return out;
  }
  const NicParams& first = out.nics.front();
  if (parameters_.catalogue().find(first.set.algorithm) == nullptr) {
    out.trouble =
        fmt::format("{} runs {}, which is not known here", first.nic, first.set.algorithm);
  }
  for (const NicParams& nic : out.nics) {
    if (nic.set.algorithm == first.set.algorithm && nic.set.values == first.set.values) continue;
    out.trouble = fmt::format("{} and {} have different parameters: NICs are tuned as one",
                              first.nic, nic.nic);
    break;
  }
  co_return out;
}

// Ends what is ours, of now or of a daemon before; notes whether others have a trial. False: no
// answer.
awaitable<bool> LiveTuner::leave_trials() {
  Json nothing = Json::object();
  const ControlAnswer answer = co_await service_.call("trials", std::move(nothing));
  if (!answer.ok()) co_return false;
  others_ = false;
  const Json trials = answer.body.value("trials", Json::array());
  for (const Json& trial : trials) {
    if (!trial.is_object()) continue;
    const std::string name = trial.value("name", std::string());
    if (!name.starts_with(kTrialPrefix)) {
      others_ = others_ || trial_state_of(trial) == service::TrialState::running;
      continue;
    }
    const std::string why = trial.value("why", std::string());
    Json members{{"name", name}, {"keep", "champion"}};
    const ControlAnswer ended = co_await service_.call("end_trial", std::move(members));
    if (ended.kind == ControlAnswer::Kind::unanswered) co_return false;
    if (name == trial_ && tuner_ != nullptr && order_) {
      trial_.clear();
      take(tuner_->refused(order_->number, why.empty() ? "its trial was ended" : why));
    }
  }
  if (!std::exchange(trial_, {}).empty() && tuner_ != nullptr && order_) {
    take(tuner_->refused(order_->number, "somebody ended its trial"));
  }
  co_return true;
}

// Something is other than expected, or nothing is known yet.
awaitable<void> LiveTuner::look() {
  looked_ns_ = clock_.unix_ns();
  if (!co_await leave_trials()) co_return;
  const InForce now = co_await in_force();
  // An arm of somebody's trial is not what anybody wants for good.
  if (!now.known || others_) co_return;
  found(now);
}

void LiveTuner::expect(const std::vector<NicParams>& nics) {
  generations_.clear();
  for (const NicParams& nic : nics) generations_[nic.nic] = nic.generation;
}

// No trial is in force.
void LiveTuner::found(const InForce& now) {
  expect(now.nics);
  trouble_ = now.trouble;
  if (!trouble_.empty()) return;
  const ParamSet& set = now.nics.front().set;
  if (tuner_ == nullptr || info_->name != set.algorithm) make(set);
  const std::vector<double> values = values_of_set(*info_, set);
  const bool ordered = order_ && order_->role != Role::candidate && order_->values == values;
  if (values != settled_ && !ordered) {
    tuner_->replace_champion(values, "somebody else changed it");
    pending_ = false;
    done_ = order_ ? order_->number : 0;
    if (order_) *order_ = {done_, Role::champion, values, "champion", "somebody else changed it"};
  } else if (ordered) {
    done_ = order_->number;
    pending_ = false;
  } else if (order_ && order_->role != Role::candidate) {
    pending_ = true;
  } else if (!order_) {
    done_ = 0;
  }
  settled_ = values;
  dirty_ = true;
}

awaitable<LiveTuner::Outcome> LiveTuner::carry_out(Order order, std::string* why) {
  if (!trial_.empty()) {
    Json members{{"name", trial_}, {"keep", "champion"}};
    const ControlAnswer answer = co_await service_.call("end_trial", std::move(members));
    if (answer.kind == ControlAnswer::Kind::unanswered) co_return Outcome::unanswered;
    // One that is not there is out of force, too: the guard or somebody else was faster.
    trial_.clear();
  }
  const InForce now = co_await in_force();
  if (!now.known) co_return Outcome::unanswered;
  const bool candidate = order.role == Role::candidate;
  bool theirs = false;
  for (const NicParams& nic : now.nics) theirs = theirs || nic.arm != 0;
  if (theirs && !candidate && order.values == settled_) {
    others_ = true;  // under their arms it is in force
    expect(now.nics);
    co_return Outcome::done;
  }
  if (!now.trouble.empty() || now.nics.front().set.algorithm != info_->name ||
      values_of_set(*info_, now.nics.front().set) != settled_) {
    look_due_ = true;  // somebody else was here: what was ordered may be of no use any more
    co_return Outcome::waits;
  }
  expect(now.nics);
  if (candidate) co_return co_await try_candidate(std::move(order), why);
  co_return co_await settle_on(std::move(order), why);
}

awaitable<LiveTuner::Outcome> LiveTuner::try_candidate(Order order, std::string* why) {
  Json nothing = Json::object();
  const ControlAnswer trials = co_await service_.call("trials", std::move(nothing));
  if (!trials.ok()) co_return Outcome::unanswered;
  if (!trials.body.value("trials", Json::array()).empty()) {
    look_due_ = true;  // the tuner stands by as soon as it is told
    co_return Outcome::waits;
  }
  const std::string name = fmt::format("{}{}", kTrialPrefix, order.number);
  Json members{{"name", name},
               {"candidate", {{"params", params_that_differ(*info_, settled_, order.values)}}},
               {"hold_ms", settings_.hold_ms}};
  const ControlAnswer begun = co_await service_.call("trial", std::move(members));
  if (begun.kind == ControlAnswer::Kind::unanswered) co_return Outcome::unanswered;
  if (!begun.ok()) {
    *why = words_of_errors(begun.errors);
    co_return Outcome::refused;
  }
  trial_ = name;
  renewed_ns_ = clock_.unix_ns();
  epoch_ = epoch_ % kEpochs + 1;
  Json arm{{"name", name}, {"arm", 1}, {"epoch", epoch_}};
  const ControlAnswer used = co_await service_.call("use_arm", std::move(arm));
  if (used.kind == ControlAnswer::Kind::unanswered) co_return Outcome::unanswered;
  if (!used.ok()) {
    *why = words_of_errors(used.errors);
    co_return Outcome::refused;  // the next order ends the trial
  }
  const InForce now = co_await in_force();
  if (!now.known) co_return Outcome::unanswered;
  expect(now.nics);
  for (const NicParams& nic : now.nics) {
    if (nic.arm == 1 && values_of_set(*info_, nic.set) == order.values) continue;
    *why = fmt::format("{} has other parameters in force than those of the trial", nic.nic);
    co_return Outcome::refused;
  }
  co_return Outcome::done;
}

// The incumbent, or the champion: a change of parameters that lasts.
awaitable<LiveTuner::Outcome> LiveTuner::settle_on(Order order, std::string* why) {
  if (order.values == settled_) co_return Outcome::done;
  Json body{{"params", params_that_differ(*info_, settled_, order.values)},
            {"why", fmt::format("{} {}: {}", order.role == Role::champion ? "back to" : "now",
                                order.name, order.reason)}};
  const Caller tuner{"tuner", true};
  const Reply reply = co_await parameters_.change(tuner, std::move(body), ChangeAction::set);
  if (reply.status == 503 || reply.status == 504) co_return Outcome::unanswered;
  if (reply.status != 200) {
    *why = reply.body.dump();
    co_return Outcome::refused;
  }
  const InForce now = co_await in_force();
  if (!now.known) co_return Outcome::unanswered;
  expect(now.nics);
  for (const NicParams& nic : now.nics) {
    if (values_of_set(*info_, nic.set) == order.values) continue;
    look_due_ = true;
    co_return Outcome::waits;
  }
  settled_ = order.values;
  dirty_ = true;
  co_return Outcome::done;
}

awaitable<void> LiveTuner::renew() {
  renewed_ns_ = clock_.unix_ns();
  Json members{{"name", trial_}};
  const ControlAnswer answer = co_await service_.call("renew", std::move(members));
  if (answer.kind == ControlAnswer::Kind::refused) look_due_ = true;
}

}  // namespace paceline::daemon
