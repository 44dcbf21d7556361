#include "control/daemon/experiments/experiment_run.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>
#include <utility>

namespace paceline::daemon {

namespace live = experiment::live;
using boost::asio::awaitable;

namespace {

// Part of the trial's hold after which the trial is renewed.
constexpr std::uint64_t kRenewals = 4;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string joined_errors(const ControlAnswer& answer) {
  return fmt::format("{}", fmt::join(answer.errors, "; "));
}

}  // namespace

ExperimentRun::ExperimentRun(const Parts& parts, ExperimentEntry entry, live::ExperimentFiles files)
    : parts_(parts),
      entry_(std::move(entry)),
      runner_(std::move(files.plan), std::move(files.schedule), std::move(files.blocks.records),
              files.circumstances.calibrated),
      edges_(parts.sampler, entry_.nics, by_receiver()),
      timer_(parts.context) {
  edges_.set_patience(parts.settings.blink.count(), parts.settings.well_for.count());
}

std::string ExperimentRun::folder() const {
  return parts_.settings.folder + "/" + experiment_key(entry_.number);
}

// Not only the number: a daemon whose store is new must not take up another's trial.
std::string ExperimentRun::trial_name(std::size_t trial) const {
  return fmt::format("experiment-{}-{}-{}", entry_.number, entry_.digest.substr(0, 8), trial);
}

Json ExperimentRun::trial_members(std::size_t trial) const {
  const live::Plan& plan = runner_.plan();
  const config::CcConfig& candidate = plan.arms[1].cc;
  Json params = Json::object();
  for (const auto& param : candidate.params) params[param.name] = param.value;
  const Json places = by_receiver() ? Json(entry_.nics) : Json(entry_.nics[trial]);
  return {{"name", trial_name(trial)},
          {by_receiver() ? "clusters" : "nics", places},
          {"candidate",
           {{"algorithm", candidate.algorithm},
            {"profile", candidate.profile},
            {"params", std::move(params)}}},
          {"guard",
           {{"retransmitted_share", plan.hard.retransmitted_share},
            {"retransmitted_packets", plan.hard.retransmitted_packets},
            {"pause_share", plan.hard.pause_share},
            {"stall_ms", plan.hard.stall_ms},
            {"drops_packets", plan.hard.drops_packets}}},
          {"hold_ms", to_nanos(plan.hold).count / 1'000'000}};
}

Json ExperimentRun::arm_members(std::size_t trial, const Action& action) const {
  Json out{{"name", trial_name(trial)}, {"epoch", action.epoch}};
  if (by_receiver()) {
    out["arms"] = action.arms;
  } else {
    out["arm"] = action.arms[trial];
  }
  return out;
}

awaitable<std::vector<std::string>> ExperimentRun::begin() {
  std::vector<std::string> errors;
  std::size_t begun = 0;
  for (; begun < trial_count(); ++begun) {
    Json members = trial_members(begun);
    const ControlAnswer answer = co_await parts_.service.call("trial", std::move(members));
    if (answer.ok()) continue;
    errors = answer.errors;
    // One that was not answered may have begun.
    if (answer.kind == ControlAnswer::Kind::unanswered) ++begun;
    break;
  }
  if (errors.empty()) {
    renewed_ns_ = now();
    co_return errors;
  }
  for (std::size_t c = 0; c < begun; ++c) {
    Json members{{"name", trial_name(c)}, {"keep", "champion"}};
    co_await parts_.service.call("end_trial", std::move(members));
  }
  co_return errors;
}

awaitable<void> ExperimentRun::take_up() {
  spdlog::info("experiment {} continues at block {} of {}", entry_.number, runner_.records().size(),
               runner_.schedule().blocks());
  co_await look_at_trials();
  renewed_ns_ = now();
  tell("taken up");
}

awaitable<void> ExperimentRun::drive() {
  while (!left_ && !runner_.over()) {
    watch();
    if (edges_.guard_tripped() && !guard_seen_) {
      guard_seen_ = true;
      co_await look_at_trials();
    }
    // Anew each time: the host's clock may be adjusted meanwhile.
    const std::int64_t begin = runner_.plan().begin_unix_ns;
    if (begin != 0) {
      runner_.align(parts_.clock.monotonic_ns() + begin - parts_.clock.unix_ns());
    }
    Action action = runner_.next(now());
    doing_ = live::to_text(action.kind).data();
    switch (action.kind) {
      case Action::Kind::use_arms:
        co_await use_arms(std::move(action));
        break;
      case Action::Kind::wait:
        co_await wait(action.until_ns);
        break;
      case Action::Kind::sample:
        runner_.sampled(edges_.take(static_cast<std::int64_t>(now())));
        break;
      case Action::Kind::record:
        record(action);
        break;
      case Action::Kind::pause:
        co_await pause(std::move(action));
        break;
      case Action::Kind::conclude:
        co_await end_trials();
        if (!left_) runner_.concluded();
        break;
      case Action::Kind::done:
        break;
    }
  }
  if (!left_) finish();
}

void ExperimentRun::sampled() { edges_.sampled(parts_.clock.monotonic_ns()); }

void ExperimentRun::leave() {
  left_ = true;
  timer_.cancel();
}

void ExperimentRun::stop(const std::string& who, const std::string& why) {
  runner_.stop(fmt::format("stopped by {}: {}", who, why));
  timer_.cancel();
}

void ExperimentRun::fail(const std::string& why) {
  failed_ = true;
  runner_.stop(why);
}

awaitable<void> ExperimentRun::look(std::chrono::nanoseconds at_most) {
  timer_.expires_after(std::min(at_most, parts_.settings.look));
  boost::system::error_code woken;
  co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
}

// Tells the runner when the environment turns.
void ExperimentRun::watch() {
  runner_.host_late(edges_.host_late());
  std::string trouble = edges_.trouble();
  if (!parts_.service.connected()) trouble = "the service does not answer";
  if (trouble.empty() == well_) return;
  well_ = trouble.empty();
  if (!well_) {
    spdlog::warn("experiment {}: {}", entry_.number, trouble);
  } else {
    spdlog::info("experiment {}: the environment has recovered", entry_.number);
  }
  runner_.environment(well_, trouble);
  tell(well_ ? "well" : "trouble");
}

awaitable<ExperimentRun::Put> ExperimentRun::put_arms(Action action) {
  for (std::size_t c = 0; c < trial_count(); ++c) {
    Json members = arm_members(c, action);
    const ControlAnswer answer = co_await parts_.service.call("use_arm", std::move(members));
    if (answer.ok()) continue;
    if (answer.kind == ControlAnswer::Kind::unanswered) co_return Put::unanswered;
    co_await look_at_trials();
    const live::Circumstances& so_far = runner_.circumstances();
    if (so_far.stopped.empty() && so_far.hard_guard.empty()) {
      fail("the arms could not be put in force: " + joined_errors(answer));
    }
    co_return Put::refused;
  }
  renewed_ns_ = now();
  co_return Put::done;
}

awaitable<void> ExperimentRun::use_arms(Action action) {
  const std::uint32_t block = action.block;
  paused_ = false;
  const Put put = co_await put_arms(std::move(action));
  if (put == Put::done) {
    block_ = block;
    block_began_ns_ = now();
    runner_.armed(block_began_ns_);
    tell("block");
  } else if (put == Put::unanswered) {
    co_await look(parts_.settings.look);
  }
}

awaitable<void> ExperimentRun::pause(Action action) {
  if (!paused_ && parts_.service.connected()) {
    const Put put = co_await put_arms(std::move(action));
    paused_ = put == Put::done;
    if (put == Put::refused) co_return;
  }
  co_await renew();
  co_await look(parts_.settings.look);
}

awaitable<void> ExperimentRun::wait(std::uint64_t until_ns) {
  co_await renew();
  const std::uint64_t at = now();
  if (at < until_ns) co_await look(std::chrono::nanoseconds(until_ns - at));
}

awaitable<void> ExperimentRun::renew() {
  const auto hold = static_cast<std::uint64_t>(to_nanos(runner_.plan().hold).count);
  if (now() - renewed_ns_ < hold / kRenewals) co_return;
  for (std::size_t c = 0; c < trial_count(); ++c) {
    Json members{{"name", trial_name(c)}};
    const ControlAnswer answer = co_await parts_.service.call("renew", std::move(members));
    if (answer.kind == ControlAnswer::Kind::unanswered) co_return;
    if (answer.ok()) continue;
    co_await look_at_trials();
    co_return;
  }
  renewed_ns_ = now();
}

// Why a trial is not as expected. The runner then ends the experiment.
awaitable<void> ExperimentRun::look_at_trials() {
  Json members = Json::object();
  const ControlAnswer answer = co_await parts_.service.call("trials", std::move(members));
  if (!answer.ok()) co_return;
  const Json trials = answer.body.value("trials", Json::array());
  for (std::size_t c = 0; c < trial_count(); ++c) {
    const auto at = std::find_if(trials.begin(), trials.end(), [&](const Json& trial) {
      return trial.is_object() && trial.value("name", std::string()) == trial_name(c);
    });
    if (at == trials.end()) {
      fail("the service no longer has the trial: it was restarted");
      continue;
    }
    const std::optional<service::TrialState> state = trial_state_of(*at);
    const std::string why = at->value("why", std::string());
    if (state == service::TrialState::tripped) {
      runner_.guard_tripped(why);
    } else if (state == service::TrialState::abandoned) {
      fail("the service took the champion back: " + why);
    }
  }
}

// Puts the champion in force, whatever is in force now. A service that does not answer does it by
// itself when the hold is over.
awaitable<void> ExperimentRun::end_trials() {
  const auto hold = static_cast<std::uint64_t>(to_nanos(runner_.plan().hold).count);
  const std::uint64_t began = now();
  for (std::size_t c = 0; c < trial_count() && !left_;) {
    Json members{{"name", trial_name(c)}, {"keep", "champion"}};
    const ControlAnswer answer = co_await parts_.service.call("end_trial", std::move(members));
    if (answer.kind == ControlAnswer::Kind::unanswered && now() - began < hold) {
      co_await look(parts_.settings.look);
      continue;
    }
    if (!answer.ok()) {
      spdlog::warn("experiment {}: end of the trial {}: {}", entry_.number, trial_name(c),
                   joined_errors(answer));
    }
    ++c;
  }
}

void ExperimentRun::record(const Action& action) {
  const std::string wrong = live::append_blocks(folder(), action.records);
  if (!wrong.empty()) {
    spdlog::error("experiment {}: {}", entry_.number, wrong);
    fail("blocks cannot be stored: " + wrong);
  }
  runner_.recorded();
  tell("recorded");
}

void ExperimentRun::finish() {
  const live::Circumstances& circumstances = runner_.circumstances();
  const live::LiveAnalysis analysis = runner_.analysis();
  if (!circumstances.hard_guard.empty()) {
    entry_.state = ExperimentState::tripped;
    entry_.ended = circumstances.hard_guard;
  } else if (!circumstances.stopped.empty()) {
    entry_.state = failed_ ? ExperimentState::failed : ExperimentState::stopped;
    entry_.ended = circumstances.stopped;
  } else {
    entry_.state = ExperimentState::concluded;
    entry_.ended = live::to_text(analysis.verdict);
  }
  entry_.verdict = analysis.verdict;
  entry_.reasons = analysis.reasons;
  entry_.ended_unix_ns = parts_.clock.unix_ns();
  const std::string wrong =
      live::write_circumstances(folder(), circumstances, entry_.null_experiment);
  if (!wrong.empty()) spdlog::error("experiment {}: {}", entry_.number, wrong);
  keep_entry();
  spdlog::info("experiment {} ({}) is over, {}: {}", entry_.number, entry_.name,
               to_text(entry_.state), entry_.ended);
  tell("ended");
}

void ExperimentRun::set_promoted(std::int64_t change) {
  entry_.promoted = change;
  keep_entry();
  tell("promoted");
}

void ExperimentRun::keep_entry() {
  const std::string wrong = parts_.store.put("experiment", experiment_key(entry_.number),
                                             json_of(entry_), parts_.clock.unix_ns());
  if (!wrong.empty()) spdlog::error("cannot save experiment {}: {}", entry_.number, wrong);
}

void ExperimentRun::tell(const char* event) {
  Json data{{"event", event},
            {"id", std::to_string(entry_.number)},
            {"name", entry_.name},
            {"state", to_text(entry_.state)}};
  if (entry_.running()) {
    data["block"] = block_;
    data["blocks"] = runner_.schedule().blocks();
  } else {
    data["verdict"] = verdict_text(entry_);
    data["ended"] = entry_.ended;
  }
  parts_.hub.publish("experiment", data);
}

// Progress: current block, longest possible duration, estimate so far. The interval is valid
// however often it is looked at.
Json ExperimentRun::progress() const {
  const live::Schedule& schedule = runner_.schedule();
  const double block_s = static_cast<double>(schedule.block_ns) / 1e9;
  const std::uint64_t in_block = now() > block_began_ns_ ? now() - block_began_ns_ : 0;
  const double done_s = block_ * block_s + std::min(static_cast<double>(in_block) / 1e9, block_s);
  const auto left_of = [&](std::uint32_t pairs) {
    return std::max(0.0, 2 * pairs * block_s - done_s);
  };
  Json out{{"doing", doing_},
           {"block", block_},
           {"blocks", schedule.blocks()},
           {"pairs", schedule.pairs()},
           {"share", schedule.blocks() == 0 ? 1.0 : done_s / (schedule.blocks() * block_s)},
           {"seconds_left_at_least", left_of(runner_.plan().pairs_min)},
           {"seconds_left_at_most", left_of(schedule.pairs())}};
  if (!well_) out["trouble"] = edges_.trouble();
  const live::LiveAnalysis quick = runner_.analysis({.full = false});
  out["pairs_usable"] = quick.usable;
  out["pairs_attempted"] = quick.attempted;
  const live::MetricResult& primary = quick.primary();
  const auto effect = [&](double mean) {
    return number_or_null(live::effect_of(primary.metric, mean));
  };
  out["estimate"] = {{"metric", live::info(primary.metric).name},
                     {"pairs", primary.n},
                     {"effect", effect(primary.mean)},
                     {"low", effect(primary.sequence.low)},
                     {"high", effect(primary.sequence.high)}};
  return out;
}

}  // namespace paceline::daemon
