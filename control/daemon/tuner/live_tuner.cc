#include "control/daemon/tuner/live_tuner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "cc/registry.h"

namespace paceline::daemon {

using boost::asio::awaitable;
using tuner::online::JournalEntry;
using tuner::online::Mode;
using tuner::online::Order;
using tuner::online::Role;
using tuner::online::Surroundings;
using tuner::online::Tuner;
using tuner::online::TunerStatus;
using tuner::online::Window;

namespace {

constexpr const char* kKind = "tuner";  // in the store: documents "mode" and "state", and entries
constexpr std::size_t kMostTunerEntries = 10'000;
constexpr std::int64_t kLookEveryNs = 100'000'000;
constexpr std::int64_t kOthersEveryNs = 1'000'000'000;
constexpr const char* kTrialPrefix = "tuner-";
constexpr std::uint32_t kEpochs = 255;
// Delay before a refused order is retried. Orders of candidates are not retried.
constexpr auto kAskAgain = std::chrono::seconds(1);

bool there_is(const std::string& file) {
  struct stat facts {};
  return !file.empty() && ::stat(file.c_str(), &facts) == 0;
}

std::string words_of_errors(const std::vector<std::string>& errors) {
  return errors.empty() ? "no reason given" : fmt::format("{}", fmt::join(errors, "; "));
}

void end_of_work(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

LiveTuner::LiveTuner(boost::asio::io_context& context, ControlClient& service,
                     Parameters& parameters, const Sampler& sampler, Store& store, EventHub& hub,
                     const Clock& clock)
    : context_(context),
      service_(service),
      parameters_(parameters),
      sampler_(sampler),
      store_(store),
      hub_(hub),
      clock_(clock),
      patience_(context) {}

LiveTuner::~LiveTuner() = default;

void LiveTuner::begin(LiveTunerSettings settings) {
  settings_ = std::move(settings);
  mode_ = settings_.options.mode;
  store_.prune(kKind, kMostTunerEntries);
  const std::optional<Json> kept = store_.get(kKind, "mode");
  const std::string configured = to_string(settings_.options.mode);
  if (kept && kept->value("configured", std::string()) == configured) {
    mode_ = tuner::online::mode_of(kept->value("mode", std::string())).value_or(mode_);
  }
  if (!settings_.problems.empty()) mode_ = Mode::off;
}

void LiveTuner::reconfigure(Mode mode, std::string kill_switch) {
  settings_.kill_switch = std::move(kill_switch);
  if (std::exchange(settings_.options.mode, mode) == mode) return;
  store_.erase(kKind, "mode");
  apply_mode(settings_.problems.empty() ? mode : Mode::off);
}

void LiveTuner::lost() {
  ready_ = false;
  trial_.clear();
  windows_.forget();
}

void LiveTuner::stop() {
  stopped_ = true;
  save();
  patience_.cancel();
}

std::string LiveTuner::guard_words() const {
  for (std::size_t nic = 0; nic < sampler_.nics().size(); ++nic) {
    const std::uint32_t trip = sampler_.latest(nic).body.guard;
    if (trip == 0) continue;
    return fmt::format("{}: the guard has tripped and is latched (trip {}): see paceline guard",
                       sampler_.nics()[nic].name, trip);
  }
  return {};
}

Surroundings LiveTuner::surroundings() {
  Surroundings out;
  out.kill_switch = there_is(settings_.kill_switch);
  out.other_experiment = others_ || (experiment && !experiment().empty());
  out.trouble = trouble_.empty() ? guard_words() : trouble_;
  out.may_explore = settings_.options.explore_share > 0;
  return out;
}

// True if every NIC reports the expected generation.
bool LiveTuner::as_expected() const {
  if (generations_.size() != sampler_.nics().size()) return false;
  for (std::size_t nic = 0; nic < sampler_.nics().size(); ++nic) {
    const auto at = generations_.find(sampler_.nics()[nic].name);
    if (at == generations_.end() || at->second != sampler_.latest(nic).body.generation) {
      return false;
    }
  }
  return true;
}

void LiveTuner::sampled(std::int64_t now_unix_ns) {
  if (stopped_) return;
  const std::int64_t since_look = now_unix_ns - looked_ns_;
  const bool look_again = since_look < 0 || since_look >= (others_ ? kOthersEveryNs : kLookEveryNs);
  if (tuner_ == nullptr || mode_ == Mode::off) {
    windows_.forget();
    // The NICs could not be tuned together, or ran an unknown algorithm. Perhaps that has changed.
    if (mode_ != Mode::off && ready_ && look_again && since_look >= kOthersEveryNs) {
      look_due_ = true;
      wake();
    }
    return;
  }
  Window window = windows_.look(sampler_, now_unix_ns);
  window.order = shown_;
  if (!ready_) window.fresh = false;
  const bool expected = as_expected();
  if (ready_ && !working_ && (expected || others_)) shown_ = done_;
  const Surroundings around = surroundings();
  // The guard has tripped during the candidate's trial: it is rejected, not only interrupted.
  if (!trial_.empty() && !working_ && !guard_words().empty()) {
    take(tuner_->refused(order_->number, guard_words()));
  }
  take(tuner_->step(window, around));
  if (ready_ && !working_ && look_again && (others_ || !expected)) look_due_ = true;
  const std::int64_t since_renewal = now_unix_ns - renewed_ns_;
  if (!trial_.empty() && (since_renewal < 0 || since_renewal > settings_.hold_ms * 250'000)) {
    renew_due_ = true;
  }
  if (look_due_ || renew_due_) wake();
  if (dirty_) save();
}

void LiveTuner::take(std::optional<Order> order) {
  if (!order) return;
  if (order->role != Role::candidate) dirty_ = true;
  order_ = std::move(order);
  pending_ = true;
  wake();
}

void LiveTuner::write(Json entry, std::string_view event) {
  dirty_ = true;
  std::int64_t number = 0;
  const std::string wrong = store_.append(kKind, event, entry, clock_.unix_ns(), number);
  if (!wrong.empty()) spdlog::error("cannot write the tuner's journal: {}", wrong);
  spdlog::info("tuner: {} {}: {}", event, entry.value("name", std::string()),
               entry.value("reason", std::string()));
  hub_.publish("tuner", entry);
}

void LiveTuner::save() {
  dirty_ = false;
  if (tuner_ == nullptr) return;
  Json body{{"algorithm", info_->name},
            {"state", tuner_->state_text()},
            {"order", order_ ? json_of(*order_) : Json()},
            {"settled", settled_},
            {"advised", advised_},
            {"workload", workload_}};
  const std::string wrong = store_.put(kKind, "state", body, clock_.unix_ns());
  if (!wrong.empty()) spdlog::error("cannot save the tuner's state: {}", wrong);
}

// Makes a tuner for `set`, which is in force on all NICs.
void LiveTuner::make(const ParamSet& set) {
  tuner_.reset();
  order_.reset();
  pending_ = false;
  done_ = shown_ = 0;
  info_ = parameters_.catalogue().find(set.algorithm);
  presets_ = std::make_unique<tuner::online::PresetLibrary>();
  presets_->algorithm = set.algorithm;
  const std::string file = settings_.presets + "/" + set.algorithm + ".toml";
  if (!settings_.presets.empty() && there_is(file)) {
    auto read = tuner::online::read_presets_file(file, cc::algorithms());
    for (const std::string& error : read.errors) spdlog::error("{}", error);
    if (read.ok()) *presets_ = std::move(read.value);
  }
  std::vector<double> champion = values_of_set(*info_, set);
  tuner::online::TunerOptions options = settings_.options;
  options.mode = mode_;
  settled_ = champion;
  tuner_ = std::make_unique<Tuner>(*info_, *presets_, std::move(champion), options,
                                   [this](const JournalEntry& entry) {
                                     Json json = Json::parse(tuner::online::journal_json(entry));
                                     if (entry.event == tuner::online::Event::advised)
                                       advised_ = json;
                                     if (entry.event == tuner::online::Event::learned)
                                       workload_ = entry.reason;
                                     write(std::move(json), to_string(entry.event));
                                   });
  restore(*info_);
}

// Restores the state that an earlier daemon saved, if its algorithm is the same.
void LiveTuner::restore(const cc::AlgorithmInfo& info) {
  const std::optional<Json> kept = store_.get(kKind, "state");
  if (!kept || kept->value("algorithm", std::string()) != info.name) return;
  const std::vector<std::string> errors = tuner_->restore(kept->value("state", std::string()));
  for (const std::string& error : errors)
    spdlog::error("the tuner starts without its saved state: {}", error);
  if (!errors.empty()) return;
  order_ = order_of(kept->value("order", Json()), info.params.size());
  done_ = shown_ = order_ ? order_->number : 0;
  const Json settled = kept->value("settled", Json::array());
  if (settled.is_array() && settled.size() == info.params.size() &&
      std::all_of(settled.begin(), settled.end(), [](const Json& v) { return v.is_number(); })) {
    settled_ = settled.get<std::vector<double>>();
  }
  advised_ = kept->value("advised", Json());
  workload_ = kept->value("workload", std::string());
  // The saved state has the mode of that time. Setting today's mode may give an order.
  if (auto order = tuner_->set_mode(mode_)) take(std::move(order));
}

void LiveTuner::apply_mode(Mode mode) {
  const bool was_off = std::exchange(mode_, mode) == Mode::off;
  windows_.forget();
  if (mode != Mode::off && was_off) look_due_ = true;
  if (tuner_ != nullptr) {
    take(tuner_->set_mode(mode));
    save();
  }
  wake();
}

awaitable<Reply> LiveTuner::set_mode(Caller caller, std::string mode, std::string why) {
  const std::optional<Mode> wanted = tuner::online::mode_of(mode);
  if (!wanted) co_return refusal(400, {"mode: allowed is off, advise or auto"});
  if (*wanted != Mode::off && !settings_.problems.empty()) {
    co_return refusal(409, settings_.problems);
  }
  const Json kept{{"mode", mode},
                  {"configured", to_string(settings_.options.mode)},
                  {"who", caller.name},
                  {"why", why}};
  if (std::string wrong = store_.put(kKind, "mode", kept, clock_.unix_ns()); !wrong.empty()) {
    co_return refusal(507, {"cannot save the mode: " + wrong});
  }
  write(Json{{"at_ns", clock_.unix_ns()},
             {"event", "mode"},
             {"name", mode},
             {"reason", why},
             {"who", caller.name}},
        "mode");
  apply_mode(*wanted);
  co_return show();
}

Reply LiveTuner::show() {
  Reply reply;
  Json& out = reply.body;
  out["mode"] = to_string(mode_);
  out["kill_switch"] = {{"file", settings_.kill_switch}, {"set", there_is(settings_.kill_switch)}};
  if (!settings_.problems.empty()) out["problems"] = settings_.problems;
  const Surroundings around = surroundings();
  if (!around.trouble.empty()) out["trouble"] = around.trouble;
  if (tuner_ == nullptr) {
    out["doing"] = mode_ == Mode::off  ? "switched off"
                   : !trouble_.empty() ? "standing by: " + trouble_
                                       : "waiting for the service";
    return reply;
  }
  const TunerStatus status = tuner_->status();
  out["doing"] = status.doing;
  out["freeze"] = to_string(status.freeze);
  out["algorithm"] = info_->name;
  out["presets"] = presets_->presets.size();
  out["signature"] = status.signature;
  out["workload"] = workload_;
  out["incumbent"] = {{"name", status.incumbent_name},
                      {"values", values_by_name(*info_, status.incumbent)}};
  out["pairs"] = status.pairs;
  out["accepted"] = status.accepted;
  if (status.evidence.pairs > 0) {
    out["evidence"] = {{"pairs", status.evidence.pairs},
                       {"mean", status.evidence.mean},
                       {"low", status.evidence.interval.low},
                       {"high", status.evidence.interval.high}};
  }
  if (order_) {
    out["order"] = {{"number", order_->number},
                    {"role", role_name(order_->role)},
                    {"name", order_->name},
                    {"reason", order_->reason},
                    {"values", values_by_name(*info_, order_->values)},
                    {"in_force", ready_ && done_ == order_->number && !pending_}};
  }
  if (!advised_.is_null()) out["would"] = advised_;
  return reply;
}

Reply LiveTuner::journal(std::int64_t after, std::size_t most) {
  Reply reply;
  reply.body["entries"] = store_.listed(kKind, after, most);
  return reply;
}

// --- carrying out orders; finding out what is in force ---

void LiveTuner::wake() {
  if (working_ || stopped_ || !ready_) return;
  if (!look_due_ && !renew_due_ && !pending_) return;
  working_ = true;
  boost::asio::co_spawn(context_, work(), end_of_work);
}

// Works until nothing is due, one thing at a time. Only work() calls the service for the tuner.
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
        break;  // attached() retries
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
  // Wait for an earlier work() to end: it has lost its connection and returns by itself.
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

// Ends the tuner's trials, also those of an earlier daemon, and notes whether others have a trial.
// False: the service did not answer.
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
      take(tuner_->refused(order_->number, why.empty() ? "the trial was ended" : why));
    }
  }
  if (!std::exchange(trial_, {}).empty() && tuner_ != nullptr && order_) {
    take(tuner_->refused(order_->number, "somebody ended the trial"));
  }
  co_return true;
}

// Reads what is in force. Called if something is not as expected, or nothing is known yet.
awaitable<void> LiveTuner::look() {
  looked_ns_ = clock_.unix_ns();
  if (!co_await leave_trials()) co_return;
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  // The arms of another trial are temporary; they are not to be adopted.
  if (!now.known || others_) co_return;
  found(now);
}

void LiveTuner::expect(const std::vector<NicParams>& nics) {
  generations_.clear();
  for (const NicParams& nic : nics) generations_[nic.nic] = nic.generation;
}

// Adopts what is in force outside of trials.
void LiveTuner::found(const TunedNics& now) {
  expect(now.nics);
  trouble_ = now.trouble;
  if (!trouble_.empty()) return;
  const ParamSet& set = now.nics.front().set;
  if (tuner_ == nullptr || info_->name != set.algorithm) make(set);
  const std::vector<double> values = values_of_set(*info_, set);
  const bool ordered = order_ && order_->role != Role::candidate && order_->values == values;
  if (values != settled_ && !ordered) {
    tuner_->replace_champion(values, "somebody else changed the parameters");
    pending_ = false;
    done_ = order_ ? order_->number : 0;
    if (order_) {
      *order_ = {done_, Role::champion, values, "champion", "somebody else changed the parameters"};
    }
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
    // If the trial is gone, the guard or another client has ended it.
    trial_.clear();
  }
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  if (!now.known) co_return Outcome::unanswered;
  const bool candidate = order.role == Role::candidate;
  bool theirs = false;
  for (const NicParams& nic : now.nics) theirs = theirs || nic.arm != 0;
  if (theirs && !candidate && order.values == settled_) {
    others_ = true;  // the order is in force beneath the arms of another trial
    expect(now.nics);
    co_return Outcome::done;
  }
  if (!now.trouble.empty() || now.nics.front().set.algorithm != info_->name ||
      values_of_set(*info_, now.nics.front().set) != settled_) {
    look_due_ = true;  // another client has changed parameters: the order may be obsolete
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
    look_due_ = true;  // look() finds the other trial, and the tuner stands by
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
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  if (!now.known) co_return Outcome::unanswered;
  expect(now.nics);
  for (const NicParams& nic : now.nics) {
    if (nic.arm == 1 && values_of_set(*info_, nic.set) == order.values) continue;
    *why = fmt::format("{} has other parameters in force than those of the trial", nic.nic);
    co_return Outcome::refused;
  }
  co_return Outcome::done;
}

// Puts the incumbent or the champion in force with a change of parameters, outside of any trial.
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
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
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
