#include "dataplane/port/pause.h"

#include <algorithm>
#include <array>

namespace paceline {

namespace {

constexpr std::array<std::string_view, 4> kPauseNames = {"off", "receive", "send", "both"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Words of a counter's name that tell that it counts something else: frames that end a pause, both
// together, times, events of another kind.
constexpr std::string_view kOtherCounts[] = {
    "xon",    "xon2xoff", "unsupported", "duration", "time",  "us",   "ns",
    "bytes",  "octets",   "storm",       "discards", "drops", "drop", "discard",
    "errors", "err",      "transition",  "invalid",  "quanta"};
constexpr std::string_view kPriorityWords[] = {"pfc", "priority", "prio", "pri", "cos", "tc"};

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (char c : name) {
    if (c == '_' || c == '-' || c == '.' || c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return words;
}

bool is_among(std::string_view word, std::span<const std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::string_view name_of(PauseMode mode) { return kPauseNames[static_cast<std::size_t>(mode)]; }

std::optional<PauseMode> pause_mode_of(std::string_view name) {
  const auto found = std::find(kPauseNames.begin(), kPauseNames.end(), name);
  if (found == kPauseNames.end()) return std::nullopt;
  return static_cast<PauseMode>(found - kPauseNames.begin());
}

PausePlan plan_pause(std::optional<PauseMode> wish, const PauseState& state) {
  if (!wish) return {};
  if (!state.offered) {
    return {std::nullopt, "pause = \"" + std::string(name_of(*wish)) +
                              "\" has no effect: the device does not let pause frames be set (" +
                              state.refusal + ")"};
  }
  if (*wish == state.mode) return {};
  return {wish, ""};
}

std::optional<PauseCounter> pause_counter(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  PauseCounter counter;
  bool directed = false;
  bool pauses = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (is_among(word, kOtherCounts)) return std::nullopt;
    if (!directed && (word == "rx" || word == "tx")) {
      directed = true;
      counter.sent = word == "tx";
    }
    pauses |= word == "xoff" || word == "pause" || word == "pfc" ||
              (word == "flow" && i + 1 < words.size() && words[i + 1] == "control");
    const bool numbered = !word.empty() && is_digit(word.back());
    while (!word.empty() && is_digit(word.back())) word.remove_suffix(1);
    // A number by itself behind such a word, "priority_3", belongs to it.
    const bool number_alone =
        word.empty() && numbered && i != 0 && is_among(words[i - 1], kPriorityWords);
    if (is_among(word, kPriorityWords)) {
      counter.priority = true;
      counter.part |= numbered;
    }
    counter.part |= number_alone;
  }
  if (!directed || !pauses) return std::nullopt;
  return counter;
}

std::vector<PauseCounterPlace> pause_counters(std::span<const std::string> names) {
  std::vector<PauseCounterPlace> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto counter = pause_counter(names[i])) found.push_back({i, *counter});
  }
  const auto is_counted_whole = [whole = found](const PauseCounterPlace& part) {
    PauseCounter all = part.counts;
    all.part = false;
    return part.counts.part && std::any_of(whole.begin(), whole.end(),
                                           [&](const auto& place) { return place.counts == all; });
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_counted_whole), found.end());
  return found;
}

}  // namespace paceline
