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

constexpr std::int64_t kLookEveryNs = 100'000'000;
constexpr std::int64_t kOthersEveryNs = 1'000'000'000;
constexpr const char* kReplaced = "somebody else changed the parameters";
// Delay before a refused order is retried. Orders of candidates are not retried.
constexpr auto kAskAgain = std::chrono::seconds(1);

bool there_is(const std::string& file) {
  struct stat facts {};
  return !file.empty() && ::stat(file.c_str(), &facts) == 0;
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
      clock_(clock),
      patience_(context),
      records_(store, hub, clock),
      trial_(service, clock) {}

LiveTuner::~LiveTuner() = default;

void LiveTuner::begin(LiveTunerSettings settings) {
  settings_ = std::move(settings);
  records_.prune();
  mode_ = records_.mode(settings_.options.mode).value_or(settings_.options.mode);
  if (!settings_.problems.empty()) mode_ = Mode::off;
}

void LiveTuner::reconfigure(Mode mode, std::string kill_switch) {
  settings_.kill_switch = std::move(kill_switch);
  if (std::exchange(settings_.options.mode, mode) == mode) return;
  records_.forget_mode();
  apply_mode(settings_.problems.empty() ? mode : Mode::off);
}

void LiveTuner::lost() {
  ready_ = false;
  trial_.forget();
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
  out.other_experiment = trial_.others_run() || (experiment && !experiment().empty());
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
  const bool look_again =
      since_look < 0 || since_look >= (trial_.others_run() ? kOthersEveryNs : kLookEveryNs);
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
  window.order = order_.shown();
  if (!ready_) window.fresh = false;
  const bool expected = as_expected();
  if (ready_ && !working_ && (expected || trial_.others_run())) order_.show();
  const Surroundings around = surroundings();
  // The guard has tripped during the candidate's trial: it is rejected, not only interrupted.
  if (trial_.runs() && !working_ && !guard_words().empty()) {
    take(tuner_->refused(order_.order()->number, guard_words()));
  }
  take(tuner_->step(window, around));
  if (ready_ && !working_ && look_again && (trial_.others_run() || !expected)) look_due_ = true;
  if (trial_.renewal_due(now_unix_ns, settings_.hold_ms)) renew_due_ = true;
  if (look_due_ || renew_due_) wake();
  if (records_.unsaved()) save();
}

void LiveTuner::take(std::optional<Order> order) {
  if (!order) return;
  if (order->role != Role::candidate) records_.touch();
  order_.give(std::move(*order));
  wake();
}

void LiveTuner::save() {
  if (tuner_ == nullptr) return;
  records_.save(Json{{"algorithm", info_->name},
                     {"state", tuner_->state_text()},
                     {"order", order_.order() ? json_of(*order_.order()) : Json()},
                     {"settled", settled_}});
}

// Makes a tuner for `set`, which is in force on all NICs.
void LiveTuner::make(const ParamSet& set) {
  tuner_.reset();
  order_.restore({});
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
                                   [this](const JournalEntry& entry) { records_.write(entry); });
  restore(*info_);
}

// Restores the state that an earlier daemon saved, if its algorithm is the same.
void LiveTuner::restore(const cc::AlgorithmInfo& info) {
  const std::optional<Json> kept = records_.state(info.name);
  if (!kept) return;
  const std::vector<std::string> errors = tuner_->restore(kept->value("state", std::string()));
  for (const std::string& error : errors)
    spdlog::error("the tuner starts without its saved state: {}", error);
  if (!errors.empty()) return;
  order_.restore(order_of(kept->value("order", Json()), info.params.size()));
  const Json settled = kept->value("settled", Json::array());
  if (settled.is_array() && settled.size() == info.params.size() &&
      std::all_of(settled.begin(), settled.end(), [](const Json& v) { return v.is_number(); })) {
    settled_ = settled.get<std::vector<double>>();
  }
  records_.adopt(*kept);
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
  std::string wrong = records_.keep_mode(mode, settings_.options.mode, caller.name, why);
  if (!wrong.empty()) co_return refusal(507, {"cannot save the mode: " + wrong});
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
  out["workload"] = records_.workload();
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
  if (const std::optional<Order>& order = order_.order()) {
    out["order"] = {{"number", order->number},
                    {"role", role_name(order->role)},
                    {"name", order->name},
                    {"reason", order->reason},
                    {"values", values_by_name(*info_, order->values)},
                    {"in_force", ready_ && order_.in_force()}};
  }
  if (!records_.advised().is_null()) out["would"] = records_.advised();
  return reply;
}

Reply LiveTuner::journal(std::int64_t after, std::size_t most) {
  Reply reply;
  reply.body["entries"] = records_.listed(after, most);
  return reply;
}

// --- carrying out orders; finding out what is in force ---

void LiveTuner::wake() {
  if (working_ || stopped_ || !ready_) return;
  if (!look_due_ && !renew_due_ && !order_.due()) return;
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
    if (order_.due() && trouble_.empty()) {
      order_.begin();
      const Order order = *order_.order();
      std::string why;
      const Carried outcome = co_await carry_out(order, &why);
      if (outcome == Carried::unanswered) {
        order_.retry();
        break;  // attached() retries
      }
      if (order_.order()->number != order.number || tuner_ == nullptr) continue;  // a newer one
      if (outcome == Carried::done) order_.done(order.number);
      if (outcome == Carried::refused) {
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
      if (trial_.runs() && !co_await trial_.renew()) look_due_ = true;
      continue;
    }
    break;
  }
  working_ = false;
  if (!stopped_ && records_.unsaved()) save();
}

awaitable<void> LiveTuner::attached() {
  // Wait for an earlier work() to end: it has lost its connection and returns by itself.
  while (working_ && !stopped_) {
    boost::system::error_code woken;
    patience_.expires_after(std::chrono::milliseconds(5));
    co_await patience_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
  }
  if (stopped_) co_return;
  trial_.forget();
  ready_ = true;
  look_due_ = true;
  wake();
}

// False: the service did not answer.
awaitable<bool> LiveTuner::leave_trials() {
  const TunerTrial::Left left = co_await trial_.leave_all();
  if (left.ended && tuner_ != nullptr && order_.order()) {
    take(tuner_->refused(order_.order()->number, *left.ended));
  }
  co_return left.answered;
}

// Reads what is in force. Called if something is not as expected, or nothing is known yet.
awaitable<void> LiveTuner::look() {
  looked_ns_ = clock_.unix_ns();
  if (!co_await leave_trials()) co_return;
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  // The arms of another trial are temporary; they are not to be adopted.
  if (!now.known || trial_.others_run()) co_return;
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
  const bool ordered = order_.settles_on(values);
  if (values != settled_ && !ordered) {
    tuner_->replace_champion(values, kReplaced);
    order_.replace(values, kReplaced);
  } else if (ordered) {
    order_.confirm();
  } else if (order_.settles()) {
    order_.retry();
  }
  settled_ = values;
  records_.touch();
}

awaitable<Carried> LiveTuner::carry_out(Order order, std::string* why) {
  if (trial_.runs() && !co_await trial_.end()) co_return Carried::unanswered;
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  if (!now.known) co_return Carried::unanswered;
  const bool candidate = order.role == Role::candidate;
  bool theirs = false;
  for (const NicParams& nic : now.nics) theirs = theirs || nic.arm != 0;
  if (theirs && !candidate && order.values == settled_) {
    trial_.note_others();  // the order is in force beneath the arms of another trial
    expect(now.nics);
    co_return Carried::done;
  }
  if (!now.trouble.empty() || now.nics.front().set.algorithm != info_->name ||
      values_of_set(*info_, now.nics.front().set) != settled_) {
    look_due_ = true;  // another client has changed parameters: the order may be obsolete
    co_return Carried::waits;
  }
  expect(now.nics);
  if (candidate) co_return co_await try_candidate(std::move(order), why);
  co_return co_await settle_on(std::move(order), why);
}

awaitable<Carried> LiveTuner::try_candidate(Order order, std::string* why) {
  Json params = params_that_differ(*info_, settled_, order.values);
  const Carried begun =
      co_await trial_.begin(order.number, std::move(params), settings_.hold_ms, why);
  // look() finds another trial, and the tuner stands by.
  if (begun == Carried::waits) look_due_ = true;
  if (begun != Carried::done) co_return begun;
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  if (!now.known) co_return Carried::unanswered;
  expect(now.nics);
  for (const NicParams& nic : now.nics) {
    if (nic.arm == 1 && values_of_set(*info_, nic.set) == order.values) continue;
    *why = fmt::format("{} has other parameters in force than those of the trial", nic.nic);
    co_return Carried::refused;
  }
  co_return Carried::done;
}

// Puts the incumbent or the champion in force with a change of parameters, outside of any trial.
awaitable<Carried> LiveTuner::settle_on(Order order, std::string* why) {
  if (order.values == settled_) co_return Carried::done;
  Json body{{"params", params_that_differ(*info_, settled_, order.values)},
            {"why", fmt::format("{} {}: {}", order.role == Role::champion ? "back to" : "now",
                                order.name, order.reason)}};
  const Caller tuner{"tuner", true};
  const Reply reply = co_await parameters_.change(tuner, std::move(body), ChangeAction::set);
  if (reply.status == 503 || reply.status == 504) co_return Carried::unanswered;
  if (reply.status != 200) {
    *why = reply.body.dump();
    co_return Carried::refused;
  }
  const TunedNics now = co_await nics_in_force(service_, parameters_.catalogue());
  if (!now.known) co_return Carried::unanswered;
  expect(now.nics);
  for (const NicParams& nic : now.nics) {
    if (values_of_set(*info_, nic.set) == order.values) continue;
    look_due_ = true;
    co_return Carried::waits;
  }
  settled_ = order.values;
  records_.touch();
  co_return Carried::done;
}

}  // namespace paceline::daemon
