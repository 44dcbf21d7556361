#include "control/daemon/tuner/tuner_trial.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "control/daemon/parameters/parameters.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

constexpr const char* kPrefix = "tuner-";
constexpr std::uint32_t kEpochs = 255;

std::string words_of_errors(const std::vector<std::string>& errors) {
  return errors.empty() ? "no reason given" : fmt::format("{}", fmt::join(errors, "; "));
}

}  // namespace

awaitable<Carried> TunerTrial::begin(std::uint64_t number, Json params, std::int64_t hold_ms,
                                     std::string* why) {
  Json nothing = Json::object();
  const ControlAnswer trials = co_await service_.call("trials", std::move(nothing));
  if (!trials.ok()) co_return Carried::unanswered;
  if (!trials.body.value("trials", Json::array()).empty()) co_return Carried::waits;
  const std::string name = fmt::format("{}{}", kPrefix, number);
  Json members{
      {"name", name}, {"candidate", {{"params", std::move(params)}}}, {"hold_ms", hold_ms}};
  const ControlAnswer begun = co_await service_.call("trial", std::move(members));
  if (begun.kind == ControlAnswer::Kind::unanswered) co_return Carried::unanswered;
  if (!begun.ok()) {
    *why = words_of_errors(begun.errors);
    co_return Carried::refused;
  }
  name_ = name;
  renewed_ns_ = clock_.unix_ns();
  epoch_ = epoch_ % kEpochs + 1;
  Json arm{{"name", name}, {"arm", 1}, {"epoch", epoch_}};
  const ControlAnswer used = co_await service_.call("use_arm", std::move(arm));
  if (used.kind == ControlAnswer::Kind::unanswered) co_return Carried::unanswered;
  if (!used.ok()) {
    *why = words_of_errors(used.errors);
    co_return Carried::refused;  // the next order ends the trial
  }
  co_return Carried::done;
}

bool TunerTrial::renewal_due(std::int64_t now_unix_ns, std::int64_t hold_ms) const {
  const std::int64_t since = now_unix_ns - renewed_ns_;
  return runs() && (since < 0 || since > hold_ms * 250'000);
}

awaitable<bool> TunerTrial::renew() {
  renewed_ns_ = clock_.unix_ns();
  Json members{{"name", name_}};
  const ControlAnswer answer = co_await service_.call("renew", std::move(members));
  co_return answer.kind != ControlAnswer::Kind::refused;
}

awaitable<bool> TunerTrial::end() {
  Json members{{"name", name_}, {"keep", "champion"}};
  const ControlAnswer answer = co_await service_.call("end_trial", std::move(members));
  if (answer.kind == ControlAnswer::Kind::unanswered) co_return false;
  // If the service refuses, the trial is gone: the guard or another client has ended it.
  name_.clear();
  co_return true;
}

awaitable<TunerTrial::Left> TunerTrial::leave_all() {
  Left left;
  Json nothing = Json::object();
  const ControlAnswer answer = co_await service_.call("trials", std::move(nothing));
  if (!answer.ok()) co_return left;
  others_run_ = false;
  const Json trials = answer.body.value("trials", Json::array());
  for (const Json& trial : trials) {
    if (!trial.is_object()) continue;
    const std::string name = trial.value("name", std::string());
    if (!name.starts_with(kPrefix)) {
      others_run_ = others_run_ || trial_state_of(trial) == service::TrialState::running;
      continue;
    }
    const std::string why = trial.value("why", std::string());
    Json members{{"name", name}, {"keep", "champion"}};
    const ControlAnswer ended = co_await service_.call("end_trial", std::move(members));
    if (ended.kind == ControlAnswer::Kind::unanswered) co_return left;
    if (name == name_) {
      name_.clear();
      left.ended = why.empty() ? "the trial was ended" : why;
    }
  }
  left.answered = true;
  if (!std::exchange(name_, {}).empty()) left.ended = "somebody ended the trial";
  co_return left;
}

}  // namespace paceline::daemon
