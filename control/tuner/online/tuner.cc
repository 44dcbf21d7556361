#include "control/tuner/online/tuner.h"

#include <fmt/format.h>

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
