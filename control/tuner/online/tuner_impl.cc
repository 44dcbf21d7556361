#include "control/tuner/online/tuner_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cc/params.h"
#include "control/tuner/online/tuner_contexts.h"

namespace paceline::tuner::online {

namespace {

constexpr std::uint32_t kMostEmptyPairs = 8;

double begun_bps(const Window& block) {
  std::uint64_t bytes = 0;
  for (const auto& figures : block.messages) bytes += figures.begun_bytes;
  return static_cast<double>(bytes) / span_ns(block);
}

}  // namespace

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

// Changes into, out of and between freezes. Measurements of the current pair are void.
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
  choose_context(state_, signature, presets_, info_, options_.bandit);
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
  // The parameters in force before are unknown: start from the champion, and order it again.
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

Context& Tuner::Impl::context() { return state_.contexts.at(state_.context); }

PairedTest& Tuner::Impl::test_on_trial() {
  Context& now = context();
  return state_.trial->preset ? now.bandit.arms()[state_.trial->arm].test : now.test;
}

// The pair is forgotten; what earlier pairs said of the candidate is not.
void Tuner::Impl::abandon_pair() {
  state_.trial.reset();
  state_.second_half = false;
  state_.first_half = {};
  state_.incumbent_breached = false;
}

bool Tuner::Impl::choose_candidate() {
  Context& now = context();
  Trial trial;
  // Every pair chooses anew, so that one unlucky draw does not give 32 pairs to a notch while a
  // more promising preset waits. The knowledge of both is kept.
  if (around_.may_explore && state_.credit >= 1) {
    if (const auto arm = now.bandit.draw(random_)) {
      state_.credit -= 1;
      trial.preset = true;
      trial.arm = *arm;
      trial.name = now.bandit.arms()[*arm].name;
      trial.values = now.bandit.arms()[*arm].values;
    }
  }
  if (!trial.preset) {
    const bool fresh = !now.move.has_value();
    if (fresh) {
      now.move = climb_.next(now.climb, now.incumbent, now_ns_);
      now.test = {};
    }
    if (!now.move) return false;
    trial.name = std::string(info_.params[now.move->param].name);
    trial.values = now.incumbent;
    trial.values[now.move->param] = now.move->to;
  }
  state_.trial = std::move(trial);
  if (test_on_trial().n == 0) {
    write(Event::tried, state_.trial->name,
          changes_between(info_, now.incumbent, state_.trial->values),
          candidate_words(*state_.trial));
  }
  return true;
}

MaybeOrder Tuner::Impl::use(bool candidate) {
  if (!candidate) return give_incumbent("the incumbent's block of a pair");
  return give(Role::candidate, state_.trial->values, state_.trial->name,
              "the candidate's block of a pair");
}

MaybeOrder Tuner::Impl::begin_pair() {
  abandon_pair();
  if (!choose_candidate()) {
    const bool poor = !context().bandit.arms().empty() && state_.credit < 1;
    state_.cool = poor ? 1 : options_.rest_blocks;
    if (!poor) {
      state_.resting = true;
      write(Event::rested, context().incumbent_name, {},
            "nothing within reach is left to try; the incumbent stays");
    }
    return give_incumbent("nothing to try");
  }
  state_.candidate_first = state_.pairs % 2 == 1;
  return use(state_.candidate_first);
}

MaybeOrder Tuner::Impl::block_done() {
  ++state_.blocks;
  state_.credit = std::min(options_.explore_credit, state_.credit + options_.explore_share);
  const Window block = state_.block;
  const bool breached = state_.block_breached;
  start_block();
  if (state_.cool > 0 && --state_.cool > 0) return std::nullopt;
  if (std::exchange(state_.resting, false)) climb_.forget(context().climb);
  if (!state_.trial) return begin_pair();
  if (breached && state_.role != Role::candidate) state_.incumbent_breached = true;
  if (!state_.second_half) {
    state_.second_half = true;
    state_.first_half = block;
    return use(!state_.candidate_first);
  }
  return state_.candidate_first ? finish_pair(block, state_.first_half)
                                : finish_pair(state_.first_half, block);
}

MaybeOrder Tuner::Impl::finish_pair(const Window& incumbent, const Window& candidate) {
  // The load of the two blocks differed: any difference may come from that.
  const double a = begun_bps(incumbent);
  const double b = begun_bps(candidate);
  const double ratio = options_.change.load_ratio * options_.change.load_ratio;
  const bool uneven = a > b * ratio || b > a * ratio;
  const auto difference =
      objective_difference(objective_parts(incumbent), objective_parts(candidate));
  if (uneven || !difference) {
    if (++state_.empty_pairs >= kMostEmptyPairs) {
      state_.empty_pairs = 0;
      abandon_pair();
      state_.cool = options_.cool_blocks;
      return give_incumbent("nothing to compare: too little traffic, or too uneven");
    }
    return begin_pair();
  }
  state_.empty_pairs = 0;
  ++state_.pairs;
  if (state_.trial->preset) {
    context().bandit.observe(state_.trial->arm, *difference);
  } else {
    context().test.add(*difference);
  }
  if (state_.incumbent_breached) ++test_on_trial().incumbent_breaches;
  switch (test_on_trial().verdict(options_.test)) {
    case Verdict::accept:
      return accept();
    case Verdict::drop:
      drop();
      return begin_pair();
    case Verdict::go_on:
      return begin_pair();
  }
  return std::nullopt;
}

MaybeOrder Tuner::Impl::accept() {
  Context& now = context();
  const Trial trial = *state_.trial;
  const PairedTest test = test_on_trial();
  const auto changes = changes_between(info_, now.incumbent, trial.values);
  if (trial.preset) {
    BanditArm former;
    former.name = now.incumbent_name;
    former.values = now.incumbent;
    now.bandit.promote(trial.arm, former);
    climb_.settle(now.climb, trial.values, now_ns_);
    now.move.reset();
    now.incumbent_name = trial.name;
  } else {
    now.bandit.shift(test.mean);
    climb_.judged(now.climb, *now.move, true);
    now.move.reset();
    if (!now.incumbent_name.ends_with(", refined")) now.incumbent_name += ", refined";
  }
  now.incumbent = trial.values;
  ++state_.accepted;
  const bool mended = test.interval(options_.test).low <= 0;
  write(Event::accepted, trial.name, changes,
        mended ? "the incumbent breaks a constraint that this one keeps, and it is not worse"
               : "better than the incumbent, whatever the noise",
        evidence_of(test));
  abandon_pair();
  state_.cool = options_.cool_blocks;
  // With other parameters the mix looks different: take a new reference for the same context.
  state_.learning = true;
  state_.learning_context = false;
  state_.builder = {};
  detector_ = ChangeDetector(options_.change);
  return give_incumbent("accepted");
}

void Tuner::Impl::drop() {
  Context& now = context();
  write(Event::dropped, state_.trial->name,
        changes_between(info_, now.incumbent, state_.trial->values),
        "not better than the incumbent by the required gain", evidence_of(test_on_trial()));
  if (state_.trial->preset) {
    now.bandit.arms()[state_.trial->arm].out = true;
  } else {
    climb_.judged(now.climb, *now.move, false);
    now.move.reset();
  }
}

void Tuner::Impl::reject(const std::string& why) {
  if (!state_.trial) return;
  Context& now = context();
  write(Event::rejected, state_.trial->name,
        changes_between(info_, now.incumbent, state_.trial->values), why,
        evidence_of(test_on_trial()));
  if (state_.trial->preset) {
    now.bandit.arms()[state_.trial->arm].out = true;
  } else {
    climb_.judged(now.climb, *now.move, false);
    now.move.reset();
  }
  abandon_pair();
}

void Tuner::Impl::write(Event event, std::string name, std::vector<Change> changes,
                        std::string reason, Evidence evidence) {
  if (!journal_) return;
  journal_({now_ns_, event, std::move(name), std::move(changes), std::move(reason), evidence,
            state_.context});
}

Evidence Tuner::Impl::evidence_of(const PairedTest& test) const {
  return {test.n, test.mean, test.interval(options_.test)};
}

std::string Tuner::Impl::candidate_words(const Trial& trial) {
  if (!trial.preset) {
    const ClimbMove& move = *context().move;
    return fmt::format("one notch of {} {}", trial.name, move.up ? "up" : "down");
  }
  const BanditArm& arm = context().bandit.arms()[trial.arm];
  return fmt::format("preset of emulator {}, expected to change J by {:+.3f} here (sd {:.3f})",
                     presets_.emulator, context().bandit.mean(arm), context().bandit.sd(arm));
}

// Writes into the journal what mode `automatic` would do first.
void Tuner::Impl::advise() {
  Context& now = context();
  const BanditArm* best = nullptr;
  for (const BanditArm& arm : now.bandit.arms()) {
    if (arm.out || now.bandit.mean(arm) <= 0) continue;
    if (best == nullptr || now.bandit.mean(arm) > now.bandit.mean(*best)) best = &arm;
  }
  if (best != nullptr) {
    const auto changes = changes_between(info_, now.incumbent, best->values);
    return write(
        Event::advised, best->name, changes,
        fmt::format("would try preset {} in pairs of blocks ({}): for a workload like this "
                    "one the emulator expects J to change by {:+.3f} (sd {:.3f})",
                    best->name, words_of(changes), now.bandit.mean(*best), now.bandit.sd(*best)));
  }
  const auto move = climb_.next(now.climb, now.incumbent, now_ns_);
  if (!move) return;
  std::vector<double> values = now.incumbent;
  values[move->param] = move->to;
  const auto changes = changes_between(info_, now.incumbent, values);
  write(Event::advised, std::string(info_.params[move->param].name), changes,
        fmt::format("no preset promises a gain here; would try {} in pairs of blocks",
                    words_of(changes)));
}

TunerStatus Tuner::Impl::status() const {
  TunerStatus out;
  out.mode = state_.mode;
  out.freeze = state_.freeze;
  out.signature = state_.context;
  out.incumbent = state_.champion;
  out.incumbent_name = "champion";
  out.pairs = state_.pairs;
  out.accepted = state_.accepted;
  const Context* now = state_.context.empty() ? nullptr : &state_.contexts.at(state_.context);
  if (now != nullptr) {
    out.incumbent = now->incumbent;
    out.incumbent_name = now->incumbent_name;
  }
  if (state_.mode == Mode::off) {
    out.doing = "switched off";
  } else if (state_.freeze != Freeze::none) {
    out.doing = fmt::format("frozen: {}", to_string(state_.freeze));
  } else if (state_.learning && state_.learning_context) {
    out.doing = fmt::format("learning the workload, window {} of {}", state_.builder.windows(),
                            options_.learn_windows);
  } else if (state_.mode == Mode::advise) {
    out.doing = "watching";
  } else if (state_.trial && now != nullptr) {
    const PairedTest& test =
        state_.trial->preset ? now->bandit.arms()[state_.trial->arm].test : now->test;
    out.evidence = evidence_of(test);
    out.doing = fmt::format("trying {} against {}, {} pairs so far", state_.trial->name,
                            out.incumbent_name, test.n);
  } else {
    out.doing = fmt::format("{} blocks until the next trial", state_.cool);
  }
  return out;
}

std::string Tuner::Impl::state_text() const {
  TunerState whole = state_;
  whole.random = random_.state();
  whole.detector = detector_.state();
  whole.watched.assign(watch_.windows().begin(), watch_.windows().end());
  return to_json(whole, info_);
}

std::vector<std::string> Tuner::Impl::restore(const std::string& text) {
  auto errors = from_json(text, info_, options_.bandit, state_);
  if (!errors.empty()) return errors;
  random_ = Random::from_state(state_.random);
  detector_ = ChangeDetector(options_.change);
  detector_.restore(state_.detector);
  watch_.clear();
  for (const Window& window : state_.watched) watch_.add(window);
  state_.watched.clear();
  return {};
}

}  // namespace paceline::tuner::online
