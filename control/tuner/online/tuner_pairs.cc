#include <fmt/format.h>

#include <algorithm>

#include "cc/params.h"
#include "control/tuner/online/tuner_impl.h"

namespace paceline::tuner::online {

namespace {

// Contexts remembered; the one not used for longest makes room.
constexpr std::size_t kMostContexts = 32;
// A signature this near to a known one is taken for it: bins have edges, and workloads lie on them.
constexpr double kSameContext = 0.15;
constexpr std::uint32_t kMostEmptyPairs = 8;

double begun_bps(const Window& block) {
  std::uint64_t bytes = 0;
  for (const auto& figures : block.messages) bytes += figures.begun_bytes;
  return static_cast<double>(bytes) / span_ns(block);
}

}  // namespace

Context& Tuner::Impl::context() { return state_.contexts.at(state_.context); }

PairedTest& Tuner::Impl::test_on_trial() {
  Context& now = context();
  return state_.trial->preset ? now.bandit.arms()[state_.trial->arm].test : now.test;
}

void Tuner::Impl::make_context(const Signature& signature) {
  const auto& contexts = state_.contexts;
  double nearest = kSameContext;
  std::string key;
  for (const auto& [name, known] : contexts) {
    const double far = distance(known.signature, signature);
    if (far < nearest) {
      nearest = far;
      key = name;
    }
  }
  if (!key.empty()) {
    state_.context = key;
    context().last_used = state_.blocks;
    return;
  }
  if (contexts.size() >= kMostContexts) {
    state_.contexts.erase(std::min_element(
        contexts.begin(), contexts.end(),
        [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; }));
  }
  Context fresh;
  fresh.signature = signature;
  fresh.incumbent = state_.champion;
  fresh.incumbent_name = "champion";
  fresh.last_used = state_.blocks;
  std::vector<BanditArm> arms;
  for (const Promise& promise : promises(presets_, signature, kMostPresets)) {
    BanditArm arm;
    arm.name = presets_.presets[promise.preset].name;
    arm.values = values_of(presets_.presets[promise.preset], info_, state_.champion);
    arm.prior_mean = promise.mean;
    arm.prior_sd = promise.sd;
    if (!is_champion(arm.values)) arms.push_back(std::move(arm));
  }
  fresh.bandit = Bandit(std::move(arms), options_.bandit);
  state_.context = signature.key();
  state_.contexts.insert_or_assign(state_.context, std::move(fresh));
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
  // Every pair chooses anew, so that one unlucky draw does not hand 32 pairs to a notch while a
  // preset that promises more waits. What is known of both is kept.
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
  // More or less was asked for in one of the two: whatever differs may come from that.
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
  // With other parameters the mix looks different: a new reference, the same context.
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
        "not better than the incumbent by what is worth having", evidence_of(test_on_trial()));
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

}  // namespace paceline::tuner::online
