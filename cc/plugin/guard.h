// Counts what a plug-in does wrong and puts it into quarantine. One guard per engine: its numbers
// belong to one thread, and worlds side by side in one process do not see each other's.
//
// A plug-in is put into quarantine, for the life of the guard, when it
// - writes beyond the state it asked for (found at the end of the call that does so);
// - answers with nonsense too often (see call.cc for what is nonsense and what is merely clamped);
// - takes too long again and again, by a clock that the host may inject. Virtual time has none;
// - has a receiving half that grants nothing although senders wait and nothing is under way, or
// with
//   rates a port that does not answer;
// - with rates, holds back a context's work without end.
// From then on it is not called. Its contexts are told `fallback`, and the engine hands each over
// to the fallback algorithm; a port that it granted for goes on granting by the host's own rule.
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline::cc::plugin {

enum class Offence : std::uint8_t { none, overrun, nonsense, slow, starved, stuck };

// For messages and logs: "wrote beyond its state".
constexpr std::string_view offence_text(Offence offence) {
  switch (offence) {
    case Offence::none:
      return "none";
    case Offence::overrun:
      return "wrote beyond its state";
    case Offence::nonsense:
      return "answered with nonsense";
    case Offence::slow:
      return "took too long";
    case Offence::starved:
      return "granted nothing while senders waited";
    case Offence::stuck:
      return "held back what was to be sent";
  }
  return "none";
}

// Nanoseconds that only grow. Without a function there is no clock.
struct Clock {
  std::uint64_t (*read)(const void* context) = nullptr;
  const void* context = nullptr;
};

struct Limits {
  std::uint32_t nonsense = 16;       // decisions, in all
  std::uint32_t budget_ns = 20'000;  // of one call
  std::uint32_t slow_score = 16;     // a slow call that is timed adds 2, any other takes 1 away
  std::uint32_t timed_one_of = 16;   // calls; a power of two
};

struct Guard {
  Limits limits{};
  Clock clock{};               // set before put_guard
  bool watched = false;        // there is a clock, or a quarantine: what a call must look at first
  std::uint64_t calls = 0;     // that a clock might have timed
  std::uint64_t clamped = 0;   // decisions out of bounds
  std::uint64_t nonsense = 0;  // decisions that no rounding explains
  std::uint64_t slow = 0;      // timed calls beyond the budget
  std::uint32_t nonsense_score = 0;  // like `nonsense`, but nobody sets it back to 0
  std::uint32_t slow_score = 0;
  Offence quarantined = Offence::none;
  bool by_receiver = false;  // it was the receiving half
  bool acted_upon = false;   // the engine's mark: all contexts know of the quarantine
  bool* news = nullptr;      // set when a number has grown

  // A plug-in that does nothing wrong costs none of these calls, except timed ones count_time.
  void tell() const {
    if (news != nullptr) *news = true;
  }
  void quarantine(Offence offence) {
    if (quarantined == Offence::none) quarantined = offence;
    watched = true;
    tell();
  }
  void count_clamped() {
    ++clamped;
    tell();
  }
  void count_nonsense() {
    ++nonsense;
    tell();
    if (++nonsense_score >= limits.nonsense) quarantine(Offence::nonsense);
  }
  void count_time(std::uint64_t ns) {
    if (ns <= limits.budget_ns) {
      if (slow_score != 0) --slow_score;
      return;
    }
    ++slow;
    tell();
    slow_score += 2;
    if (slow_score >= limits.slow_score) quarantine(Offence::slow);
  }
};

}  // namespace paceline::cc::plugin
