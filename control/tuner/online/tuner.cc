#include "control/tuner/online/tuner.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "control/tuner/online/tuner_impl.h"

namespace paceline::tuner::online {

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::off:
      return "off";
    case Mode::advise:
      return "advise";
    case Mode::automatic:
      return "auto";
  }
  return "";
}

std::optional<Mode> mode_of(std::string_view text) {
  for (const Mode mode : {Mode::off, Mode::advise, Mode::automatic}) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

const char* to_string(Freeze freeze) {
  switch (freeze) {
    case Freeze::none:
      return "none";
    case Freeze::telemetry:
      return "telemetry";
    case Freeze::trouble:
      return "trouble";
    case Freeze::other_experiment:
      return "other experiment";
    case Freeze::killed:
      return "killed";
  }
  return "";
}

std::vector<std::string> problems_of(const TunerOptions& options, std::int64_t window_ns) {
  std::vector<std::string> out;
  const std::int64_t slowest = options.wash_windows * window_ns + options.guard_ns + window_ns;
  if (slowest > kMostBreach_ns) {
    out.push_back(
        fmt::format("a breach may be noticed after {} ms (wash_windows, guard and one window); "
                    "allowed is {} ms",
                    slowest / 1'000'000, kMostBreach_ns / 1'000'000));
  }
  if (options.block_windows < 2) out.emplace_back("block_windows: allowed is 2 or more");
  if (options.learn_windows < 1) out.emplace_back("learn_windows: allowed is 1 or more");
  if (options.test.least_pairs < 2) out.emplace_back("least_pairs: allowed is 2 or more");
  if (options.test.most_pairs < options.test.least_pairs) {
    out.emplace_back("most_pairs: allowed is least_pairs or more");
  }
  return out;
}

Tuner::Impl::Impl(const cc::AlgorithmInfo& info, const PresetLibrary& presets,
                  std::vector<double> champion, TunerOptions options, Journal journal)
    : info_(info),
      presets_(presets),
      options_(options),
      journal_(std::move(journal)),
      climb_(info, options_.climb),
      random_(options_.seed, 0x7475'6E65),
      watch_(options_.constraints, options_.guard_ns),
      detector_(options_.change) {
  if (champion.size() != info.params.size()) {
    throw std::invalid_argument("tuner: the champion has not all parameters of the algorithm");
  }
  state_.mode = options_.mode;
  state_.champion = champion;
  state_.in_force = std::move(champion);
  state_.credit = options_.explore_credit;
  state_.washed = options_.wash_windows;
}

void Tuner::Impl::forget_everything() {
  state_.contexts.clear();
  state_.context.clear();
  state_.learning = true;
  state_.learning_context = true;
  state_.builder = {};
  detector_ = ChangeDetector(options_.change);
  abandon_pair();
  state_.cool = 0;
  state_.resting = false;
}

void Tuner::Impl::start_block() {
  state_.block = {};
  state_.block_windows = 0;
  state_.block_breached = false;
}

MaybeOrder Tuner::Impl::give(Role role, const std::vector<double>& values, const std::string& name,
                             const std::string& reason) {
  if (role == state_.role && values == state_.in_force) return std::nullopt;
  if (values != state_.in_force) state_.washed = 0;
  state_.role = role;
  state_.in_force = values;
  state_.waiting = 0;
  start_block();
  watch_.clear();
  return Order{++state_.order, role, values, name, reason};
}

MaybeOrder Tuner::Impl::give_incumbent(const std::string& reason) {
  if (state_.mode != Mode::automatic || state_.context.empty() ||
      is_champion(context().incumbent)) {
    return give(Role::champion, state_.champion, "champion", reason);
  }
  return give(Role::incumbent, context().incumbent, context().incumbent_name, reason);
}

std::pair<Freeze, std::string> Tuner::Impl::wanted_freeze(const Window& window,
                                                          const Surroundings& around) {
  if (around.kill_switch) return {Freeze::killed, "the kill switch is set"};
  if (!window.fresh) {
    state_.fresh = 0;
    return {Freeze::telemetry, "telemetry was lost"};
  }
  if (state_.freeze == Freeze::telemetry && ++state_.fresh < options_.resume_windows) {
    return {Freeze::telemetry, ""};
  }
  if (!around.trouble.empty()) return {Freeze::trouble, around.trouble};
  if (around.other_experiment) {
    return {Freeze::other_experiment, "another experiment is running"};
  }
  return {Freeze::none, ""};
}

// The way into, out of and between freezes. What was measured of the pair under way is void.
MaybeOrder Tuner::Impl::freeze(Freeze why, const std::string& words) {
  const Freeze before = std::exchange(state_.freeze, why);
  abandon_pair();
  start_block();
  watch_.clear();
  if (why == Freeze::none) {
    write(Event::resumed, "", {}, fmt::format("no longer frozen ({})", to_string(before)));
    return std::nullopt;
  }
  write(Event::froze, "", {},
        fmt::format("{}: no candidate is in force until that is over", words));
  if (why == Freeze::killed) {
    forget_everything();
    return give(Role::champion, state_.champion, "champion", words);
  }
  return give_incumbent(words);
}

MaybeOrder Tuner::Impl::on_breach(const Breach& breach) {
  watch_.clear();
  if (state_.role == Role::candidate) {
    reject(breach.words);
    state_.cool = 1;
    return give_incumbent("the candidate broke a constraint: " + breach.words);
  }
  if (state_.role == Role::incumbent) {
    write(Event::reverted, context().incumbent_name,
          changes_between(info_, context().incumbent, state_.champion),
          "back to the champion: " + breach.words);
    abandon_pair();
    context().incumbent = state_.champion;
    context().incumbent_name = "champion";
    climb_.settle(context().climb, state_.champion, now_ns_);
    state_.cool = options_.cool_blocks;
    return give_incumbent(breach.words);
  }
  state_.block_breached = true;
  if (!state_.context.empty() && !std::exchange(context().complained, true)) {
    write(Event::complained, "champion", {},
          "the champion itself breaks a constraint: " + breach.words);
  }
  return std::nullopt;
}

MaybeOrder Tuner::Impl::changed_workload(const std::string& words) {
  abandon_pair();
  start_block();
  state_.builder = {};
  state_.learning = true;
  state_.learning_context = true;
  state_.cool = options_.cool_blocks;
  state_.resting = false;
  write(Event::froze, "", {},
        words + ": no candidate until the new workload is known, and some blocks beyond");
  return give_incumbent(words);
}

MaybeOrder Tuner::Impl::learned() {
  state_.learning = false;
  const Signature signature = state_.builder.signature();
  detector_.learn(state_.builder);
  state_.builder = {};
  if (!std::exchange(state_.learning_context, false)) return std::nullopt;
  make_context(signature);
  write(Event::learned, context().incumbent_name, {}, "the workload: " + signature.words());
  if (state_.mode == Mode::advise) {
    advise();
    return std::nullopt;
  }
  return give_incumbent("the incumbent of this workload");
}

MaybeOrder Tuner::Impl::step(const Window& window, const Surroundings& surroundings) {
  now_ns_ = window.end_ns;
  around_ = surroundings;
  if (state_.mode == Mode::off) return std::nullopt;
  const auto [why, words] = wanted_freeze(window, surroundings);
  if (why != state_.freeze) return freeze(why, words);
  if (!window.fresh || why == Freeze::killed) return std::nullopt;

  if (window.order != state_.order) {
    start_block();
    watch_.clear();
    if (++state_.waiting <= options_.apply_windows) return std::nullopt;
    return refused(state_.order, "it did not come into force");
  }
  state_.waiting = 0;
  state_.refusals = 0;
  if (state_.washed < options_.wash_windows) {
    ++state_.washed;
    return std::nullopt;
  }
  if (const auto breach = watch_.add(window)) {
    if (auto order = on_breach(*breach)) return order;
  }
  if (state_.role != Role::candidate) {
    if (state_.learning) {
      state_.builder.add(window);
      if (state_.builder.windows() >= options_.learn_windows) {
        if (auto order = learned()) return order;
      }
    } else if (const auto change = detector_.add(window)) {
      return changed_workload(*change);
    }
  }
  if (state_.mode != Mode::automatic || why != Freeze::none) return std::nullopt;
  if (state_.context.empty() || (state_.learning && state_.learning_context)) return std::nullopt;
  add(state_.block, window);
  if (++state_.block_windows < options_.block_windows) return std::nullopt;
  return block_done();
}

MaybeOrder Tuner::Impl::refused(std::uint64_t number, const std::string& why) {
  if (number != state_.order) return std::nullopt;  // an older one: its successor decides
  state_.waiting = 0;
  if (state_.role == Role::candidate) {
    reject(why);
    state_.cool = 1;
    return give_incumbent("the candidate was refused: " + why);
  }
  // What was in force before may be anything: go on from the champion, and ask again.
  if (state_.refusals++ == 0) {
    write(Event::froze, "", {}, "parameters could not be put in force: " + why);
  }
  forget_everything();
  state_.role = Role::candidate;
  return give(Role::champion, state_.champion, "champion", why);
}

void Tuner::Impl::replace_champion(std::vector<double> values, const std::string& why) {
  if (values.size() != info_.params.size()) {
    throw std::invalid_argument("tuner: the champion has not all parameters of the algorithm");
  }
  write(Event::froze, "champion", changes_between(info_, state_.champion, values),
        "the champion was replaced: " + why + "; what was learned is forgotten");
  forget_everything();
  state_.champion = values;
  state_.in_force = std::move(values);
  state_.role = Role::champion;
  state_.washed = 0;
  start_block();
  watch_.clear();
}

MaybeOrder Tuner::Impl::set_mode(Mode mode) {
  if (mode == state_.mode) return std::nullopt;
  state_.mode = mode;
  abandon_pair();
  start_block();
  state_.builder = {};
  state_.learning = true;
  state_.learning_context = true;
  state_.context.clear();  // contexts stay, and are found again
  return give(Role::champion, state_.champion, "champion",
              std::string("the mode is ") + to_string(mode));
}

Tuner::Tuner(const cc::AlgorithmInfo& info, const PresetLibrary& presets,
             std::vector<double> champion, TunerOptions options, Journal journal)
    : impl_(std::make_unique<Impl>(info, presets, std::move(champion), options,
                                   std::move(journal))) {}
Tuner::~Tuner() = default;
Tuner::Tuner(Tuner&&) noexcept = default;

std::optional<Order> Tuner::step(const Window& window, const Surroundings& surroundings) {
  return impl_->step(window, surroundings);
}
std::optional<Order> Tuner::refused(std::uint64_t number, const std::string& why) {
  return impl_->refused(number, why);
}
void Tuner::replace_champion(std::vector<double> values, const std::string& why) {
  impl_->replace_champion(std::move(values), why);
}
std::optional<Order> Tuner::set_mode(Mode mode) { return impl_->set_mode(mode); }
TunerStatus Tuner::status() const { return impl_->status(); }
std::string Tuner::state_text() const { return impl_->state_text(); }
std::vector<std::string> Tuner::restore(const std::string& text) { return impl_->restore(text); }

}  // namespace paceline::tuner::online
