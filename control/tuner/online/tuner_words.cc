#include <fmt/format.h>

#include "cc/params.h"
#include "control/tuner/online/tuner_impl.h"

namespace paceline::tuner::online {

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

// What `automatic` would do first.
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

}  // namespace paceline::tuner::online
