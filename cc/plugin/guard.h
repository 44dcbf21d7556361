// Counts the offences of a plug-in and puts it into quarantine. Each engine has its own guard: only
// the engine's thread uses it, and worlds that share a process count separately.
//
// A plug-in is put into quarantine, for the life of the guard, when it
// - writes beyond its state (found at the end of the call that does so);
// - returns nonsense too often (call.cc defines nonsense, and what is only clamped);
// - exceeds its time budget too often, by a clock that the host may inject (none in virtual time);
// - has a receiving half that grants nothing although senders wait and no bytes are in flight, or,
//   with rates, that leaves requests without an answer;
// - with rates, holds back a context's data without end.
//
// The guard's engine then stops calling it and hands each of its contexts over to the fallback
// algorithm (`Decision::fallback`). Where the plug-in granted for a port, the host's own rule
// grants instead.
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

// A monotonic clock, in nanoseconds. Without a function there is no clock.
struct Clock {
  std::uint64_t (*read)(const void* context) = nullptr;
  const void* context = nullptr;
};

struct Limits {
  std::uint32_t nonsense = 16;       // decisions, in all
  std::uint32_t budget_ns = 20'000;  // of one call
  std::uint32_t slow_score = 16;     // a timed call adds 2 if it is slow, else takes 1 away
  std::uint32_t timed_one_of = 16;   // one call in so many is timed; a power of two
};

struct Guard {
  Limits limits{};
  Clock clock{};                     // set before put_guard
  bool watched = false;              // a clock or a quarantine exists; each call checks this first
  std::uint64_t calls = 0;           // while there is a clock, timed or not
  std::uint64_t clamped = 0;         // decisions out of bounds
  std::uint64_t nonsense = 0;        // decisions that no rounding explains
  std::uint64_t slow = 0;            // timed calls beyond the budget
  std::uint32_t nonsense_score = 0;  // like `nonsense`, but never reset
  std::uint32_t slow_score = 0;
  Offence quarantined = Offence::none;
  bool by_receiver = false;  // the receiving half committed the offence
  bool acted_upon = false;   // the engine has told all contexts of the quarantine
  bool* news = nullptr;      // set when a number has grown

  // If a plug-in commits no offence, only count_time is called, once per timed call.
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
