// Has the workload changed? Compares the present windows with those from which the tuner learned
// its context: the mix of message sizes and of incast degrees by their Kullback-Leibler divergence,
// and the load by its ratio. A difference must persist for three spans in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/tuner/online/observation/signature.h"

namespace paceline::tuner::online {

struct ChangeOptions {
  double divergence = 0.05;          // nats
  double load_ratio = 1.5;           // of offered bits per second, up or down
  std::uint32_t persist = 3;         // spans
  std::uint32_t span_windows = 10;   // windows of a span, at least
  std::uint64_t span_messages = 50;  // and messages begun in it, at least ...
  std::uint32_t patience = 10;       // ... unless it has become this many times as long
};

// Divergence of `now` from `before`: sum p ln(p / q), half a count added to each class that either
// has. Whether it is more than the options say, and more than chance makes: with n samples of the
// same mix 2 n KL is distributed as chi squared, and rarer than one in a thousand is asked for. In
// words, or nothing.
std::optional<std::string> mix_change(const SignatureBuilder& before, const SignatureBuilder& now,
                                      const ChangeOptions& options);

class ChangeDetector {
 public:
  explicit ChangeDetector(ChangeOptions options = {}) : options_(options) {}

  // Sets the learned context; forgets suspicions.
  void learn(const SignatureBuilder& reference);
  bool learned() const { return reference_.windows() > 0; }
  // A change that has persisted, in words; then everything is forgotten until learn().
  std::optional<std::string> add(const Window& window);
  const SignatureBuilder& reference() const { return reference_; }

  struct State {
    SignatureBuilder::State reference;
    SignatureBuilder::State current;
    std::uint32_t suspected = 0;
  };
  State state() const { return {reference_.state(), current_.state(), suspected_}; }
  void restore(const State& state);

 private:
  ChangeOptions options_;
  SignatureBuilder reference_;
  SignatureBuilder current_;  // the span that fills
  std::uint32_t suspected_ = 0;
};

}  // namespace paceline::tuner::online
