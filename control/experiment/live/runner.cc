#include "control/experiment/live/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace paceline::experiment::live {

namespace {

// Looks between pairs need no resampling; a full analysis confirms what they find.
constexpr AnalysisOptions kLook{.full = false};

}  // namespace

std::string_view to_text(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::use_arms:
      return "use_arms";
    case Action::Kind::wait:
      return "wait";
    case Action::Kind::sample:
      return "sample";
    case Action::Kind::record:
      return "record";
    case Action::Kind::pause:
      return "pause";
    case Action::Kind::conclude:
      return "conclude";
    case Action::Kind::done:
      return "done";
  }
  return "?";
}

Runner::Runner(Plan plan, Schedule schedule, std::vector<BlockRecord> stored, bool calibrated)
    : plan_(std::move(plan)), schedule_(std::move(schedule)), records_(std::move(stored)) {
  if (schedule_.clusters.size() != plan_.clusters.size() || schedule_.arms.empty()) {
    throw std::invalid_argument("a runner needs the schedule of its plan");
  }
  circumstances_.calibrated = calibrated;
  resume();
}

// Continues where a driver that died stopped.
void Runner::resume() {
  if (records_.empty()) return;
  std::vector<bool> there(schedule_.arms.size(), false);
  std::uint32_t last = 0;
  for (const BlockRecord& record : records_) {
    if (record.place.block >= schedule_.blocks() || record.place.cluster >= clusters()) continue;
    there[std::size_t{record.place.block} * clusters() + record.place.cluster] = true;
    last = std::max(last, record.place.block);
  }
  next_block_ = 2 * (last / 2) + 2;
  for (std::uint32_t b = last / 2 * 2; b < next_block_; ++b) {
    for (std::uint32_t c = 0; c < clusters(); ++c) {
      if (there[std::size_t{b} * clusters() + c]) continue;
      BlockRecord record;
      record.place = {b, c, schedule_.arm(b, c), Schedule::epoch(b)};
      record.discarded = Discarded::itself;
      record.why = "interrupted";
      pending_.push_back(std::move(record));
    }
  }
  block_ = last;
  if (!pending_.empty()) {
    state_ = State::recording;
    return;
  }
  block_ = next_block_;
  look();
}

Action Runner::arms_action(Action::Kind kind) const {
  Action action;
  action.kind = kind;
  action.block = block_;
  // A pause has an epoch of its own: messages begun in it belong to no block.
  action.epoch = Schedule::epoch(kind == Action::Kind::pause ? block_ + 127 : block_);
  for (std::uint32_t c = 0; c < clusters(); ++c) {
    action.arms.push_back(kind == Action::Kind::pause ? std::uint8_t{0} : schedule_.arm(block_, c));
  }
  action.why = trouble_;
  return action;
}

std::uint64_t Runner::gap_ns() const {
  return std::min<std::uint64_t>(schedule_.block_ns / 20, 1'000'000'000);
}

std::int64_t Runner::start_ns() const {
  return *first_ns_ + static_cast<std::int64_t>(block_ * (schedule_.block_ns + gap_ns()));
}

Action Runner::next(std::uint64_t now_ns) {
  Action action;
  if (state_ == State::begin && first_ns_) {
    const std::int64_t early = start_ns() - static_cast<std::int64_t>(now_ns);
    if (early > 0) {
      action.kind = Action::Kind::wait;
      action.block = block_;
      action.until_ns = now_ns + static_cast<std::uint64_t>(early);
      return action;
    }
    if (-early > static_cast<std::int64_t>(gap_ns())) discard("late for its moment");
  }
  action.block = block_;
  if (state_ == State::washing && now_ns >= washed_ns_) state_ = State::first_edge;
  if (state_ == State::measuring && now_ns >= end_ns_) state_ = State::last_edge;
  switch (state_) {
    case State::begin:
      return arms_action(Action::Kind::use_arms);
    case State::washing:
    case State::measuring:
      action.kind = Action::Kind::wait;
      action.until_ns = state_ == State::washing ? washed_ns_ : end_ns_;
      break;
    case State::first_edge:
    case State::last_edge:
      action.kind = Action::Kind::sample;
      break;
    case State::recording:
      action.kind = Action::Kind::record;
      action.records = pending_;
      break;
    case State::paused:
      return arms_action(Action::Kind::pause);
    case State::concluding:
      action.kind = Action::Kind::conclude;
      action.why = why_;
      break;
    case State::done:
      action.kind = Action::Kind::done;
      break;
  }
  return action;
}

void Runner::armed(std::uint64_t now_ns) {
  if (state_ != State::begin) return;  // trouble came first
  washed_ns_ = now_ns + schedule_.washout_ns;
  end_ns_ =
      schedule_.block_ns +
      (first_ns_ ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, start_ns())) : now_ns);
  first_.clear();
  state_ = State::washing;
}

void Runner::refused(const std::string& why) {
  if (state_ == State::done) return;
  circumstances_.stopped = "the arms could not be put in force: " + why;
  if (state_ == State::begin) end(circumstances_.stopped);
}

void Runner::sampled(std::vector<EdgeSample> samples) {
  if (state_ != State::first_edge && state_ != State::last_edge) return;
  if (samples.size() != clusters()) {
    return discard(fmt::format("telemetry: {} of {} clusters", samples.size(), clusters()));
  }
  for (const EdgeSample& sample : samples) {
    if (sample.missing > plan_.telemetry_loss) {
      return discard(
          fmt::format("telemetry: {:.3g} % of the samples missing", 100 * sample.missing));
    }
  }
  if (state_ == State::first_edge) {
    first_ = std::move(samples);
    state_ = State::measuring;
  } else {
    finish_block(std::move(samples));
  }
}

void Runner::finish_block(std::vector<EdgeSample> samples) {
  pending_.clear();
  std::string wrong;
  for (std::uint32_t c = 0; c < clusters(); ++c) {
    const BlockPlace place{block_, c, schedule_.arm(block_, c), Schedule::epoch(block_)};
    BlockRecord record = block_between(place, first_[c].nics, samples[c].nics);
    record.telemetry_missing = std::max(first_[c].missing, samples[c].missing);
    for (const auto& [metric, value] : samples[c].measured) record.values[metric] = value;
    if (record.discarded != Discarded::no && wrong.empty()) wrong = record.why;
    pending_.push_back(std::move(record));
  }
  if (!wrong.empty()) {
    for (const EdgeSample& sample : samples) {
      for (const NicSample& nic : sample.nics) {
        if (nic.guard == 0) continue;
        return guard_tripped(fmt::format("{}: trip {}", nic.nic, nic.guard));
      }
    }
    return discard(wrong);
  }
  next_block_ = block_ + 1;
  state_ = State::recording;
}

// Records the current block, which is at fault, as discarded, and its partner too if that has not
// run yet. The record of an earlier partner stays: the pair is unusable all the same.
void Runner::discard(const std::string& why) {
  pending_.clear();
  const std::uint32_t pair_end = 2 * (block_ / 2) + 2;
  for (std::uint32_t b = block_; b < pair_end; ++b) {
    for (std::uint32_t c = 0; c < clusters(); ++c) {
      BlockRecord record;
      record.place = {b, c, schedule_.arm(b, c), Schedule::epoch(b)};
      record.discarded = b == block_ ? Discarded::itself : Discarded::with_partner;
      record.why = b == block_ ? why : std::string(kPartner) + why;
      pending_.push_back(std::move(record));
    }
  }
  next_block_ = pair_end;
  state_ = State::recording;
}

void Runner::recorded() {
  if (state_ != State::recording) return;
  const bool pair_done = next_block_ % 2 == 0;
  std::move(pending_.begin(), pending_.end(), std::back_inserter(records_));
  pending_.clear();
  block_ = next_block_;
  state_ = State::begin;
  if (pair_done || !circumstances_.hard_guard.empty() || !circumstances_.stopped.empty()) {
    look();
  } else if (!trouble_.empty()) {
    discard("environment: " + trouble_);
  }
}

// Decides whether to stop, continue, or pause.
void Runner::look() {
  if (!circumstances_.hard_guard.empty()) return end("guard: " + circumstances_.hard_guard);
  if (!circumstances_.stopped.empty()) return end(circumstances_.stopped);
  if (block_ >= schedule_.blocks()) return end("all pairs are done");
  const LiveAnalysis quick = analyse_live(plan_, schedule_, records_, circumstances_, kLook);
  if (quick.verdict != Verdict::running) {
    const LiveAnalysis full = analyse_live(plan_, schedule_, records_, circumstances_, {});
    if (full.verdict != Verdict::running) return end(std::string(to_text(full.verdict)));
  }
  state_ = trouble_.empty() ? State::begin : State::paused;
}

void Runner::end(const std::string& why) {
  circumstances_.finished = true;
  why_ = why;
  state_ = State::concluding;
}

void Runner::concluded() {
  if (state_ == State::concluding) state_ = State::done;
}

void Runner::guard_tripped(const std::string& why) {
  if (state_ == State::done || state_ == State::concluding) return;
  if (circumstances_.hard_guard.empty()) circumstances_.hard_guard = why;
  // Between blocks there is nothing to discard.
  if (state_ == State::begin || state_ == State::paused) return end("guard: " + why);
  // A block that is being stored is stored first.
  if (state_ != State::recording) discard("guard: " + why);
}

void Runner::environment(bool well, const std::string& why) {
  if (well) {
    trouble_.clear();
    if (state_ == State::paused) state_ = State::begin;
    return;
  }
  trouble_ = why.empty() ? "trouble" : why;
  switch (state_) {
    case State::washing:
    case State::first_edge:
    case State::measuring:
    case State::last_edge:
      return discard("environment: " + trouble_);
    case State::begin:
      // Half of a pair is not enough; a pair not begun may wait.
      if (block_ % 2 != 0) return discard("environment: " + trouble_);
      state_ = State::paused;
      return;
    default:
      return;
  }
}

void Runner::stop(const std::string& why) {
  if (state_ == State::done || state_ == State::concluding) return;
  circumstances_.stopped = why.empty() ? "on request" : why;
  // A block that is being stored is finished first.
  if (state_ != State::recording) end(circumstances_.stopped);
}

LiveAnalysis Runner::analysis(const AnalysisOptions& options) const {
  return analyse_live(plan_, schedule_, records_, circumstances_, options);
}

}  // namespace paceline::experiment::live
