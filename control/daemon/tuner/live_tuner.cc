#include "control/daemon/tuner/live_tuner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
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

constexpr const char* kKind = "tuner";  // documents "mode" and "state", and entries
constexpr std::size_t kMostTunerEntries = 10'000;
constexpr std::int64_t kLookEveryNs = 100'000'000;
constexpr std::int64_t kOthersEveryNs = 1'000'000'000;

const char* role_name(Role role) {
  switch (role) {
    case Role::champion:
      return "champion";
    case Role::incumbent:
      return "incumbent";
    case Role::candidate:
      return "candidate";
  }
  return "";
}

Json json_of(const Order& order) {
  return {{"number", order.number},
          {"role", role_name(order.role)},
          {"values", order.values},
          {"name", order.name},
          {"reason", order.reason}};
}

std::optional<Order> order_of(const Json& json, std::size_t params) {
  if (!json.is_object()) return std::nullopt;
  Order out;
  try {
    out.number = json.at("number").get<std::uint64_t>();
    const auto role = json.at("role").get<std::string>();
    out.role = role == "candidate"   ? Role::candidate
               : role == "incumbent" ? Role::incumbent
                                     : Role::champion;
    out.values = json.at("values").get<std::vector<double>>();
    out.name = json.at("name").get<std::string>();
    out.reason = json.at("reason").get<std::string>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (out.values.size() != params) return std::nullopt;
  return out;
}

bool there_is(const std::string& file) {
  struct stat facts {};
  return !file.empty() && ::stat(file.c_str(), &facts) == 0;
}

Json named(const cc::AlgorithmInfo& info, const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < info.params.size() && i < values.size(); ++i) {
    out[std::string(info.params[i].name)] = values[i];
  }
  return out;
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
    return fmt::format("the guard's trip {} is latched on {}: see paceline guard", trip,
                       sampler_.nics()[nic].name);
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

// Every NIC shows the generation that it was given.
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
    // Of NICs that could not be tuned as one, or ran what is unknown: perhaps they can now.
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
  // Whose doing it was is known: the candidate is out, not only interrupted.
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
  if (!wrong.empty()) spdlog::error("not in the tuner's journal: {}", wrong);
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
  if (!wrong.empty()) spdlog::error("the tuner's state is not kept: {}", wrong);
}

// For this set in force on all NICs.
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
  std::vector<double> champion;
  for (const cc::ParamSpec& spec : info_->params) {
    const auto at = set.values.find(std::string(spec.name));
    champion.push_back(at == set.values.end() ? spec.default_value : at->second);
  }
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

// What an earlier daemon kept, where it is of the same algorithm.
void LiveTuner::restore(const cc::AlgorithmInfo& info) {
  const std::optional<Json> kept = store_.get(kKind, "state");
  if (!kept || kept->value("algorithm", std::string()) != info.name) return;
  const std::vector<std::string> errors = tuner_->restore(kept->value("state", std::string()));
  for (const std::string& error : errors) spdlog::error("the tuner begins anew: {}", error);
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
  // The state has the mode of then; an order that follows from the mode of now is carried out.
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
  if (!wanted) co_return refusal(400, {"mode: off, advise or auto"});
  if (*wanted != Mode::off && !settings_.problems.empty()) {
    co_return refusal(409, settings_.problems);
  }
  const Json kept{{"mode", mode},
                  {"configured", to_string(settings_.options.mode)},
                  {"who", caller.name},
                  {"why", why}};
  if (std::string wrong = store_.put(kKind, "mode", kept, clock_.unix_ns()); !wrong.empty()) {
    co_return refusal(507, {"the mode cannot be kept: " + wrong});
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
  out["incumbent"] = {{"name", status.incumbent_name}, {"values", named(*info_, status.incumbent)}};
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
                    {"values", named(*info_, order_->values)},
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

}  // namespace paceline::daemon
