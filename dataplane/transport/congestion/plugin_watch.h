// Guards of the plug-ins that are, or were, an algorithm of this engine. A guard judges every call
// of its plug-in. This class counts what guards find, and says which plug-in must be left.
#pragma once

#include <array>
#include <memory>

#include "cc/param_block.h"
#include "cc/plugin/guard.h"
#include "dataplane/telemetry/counters.h"

namespace paceline::transport {

class PluginWatch {
 public:
  // Puts the plug-in's guard into its values, before they are used; no effect on built-in
  // algorithms. The record of a plug-in that was here before still counts. Allocates. `clock`
  // measures calls, and may be null.
  void watch(cc::ParamBlock& params, cc::plugin::Clock clock);

  // Why a plug-in is no longer called; `none`: it is called, or never was.
  cc::plugin::Offence quarantined(cc::AlgorithmId id) const;
  // There are guards, so a poll must ask for news.
  bool any() const { return any_; }
  // A guard has found something since the last take_news().
  bool has_news() const { return news_; }
  void begin_news() { news_ = false; }
  // Counts what the guard of plug-in `number` (below cc::kMaxPlugins) has found since the last
  // call. True, once: the plug-in is in quarantine from now on.
  bool take_news(unsigned number, telemetry::EngineCounters& counters);

 private:
  // By the plug-in's number; kept, so that one in quarantine stays there.
  std::array<std::unique_ptr<cc::plugin::Guard>, cc::kMaxPlugins> guards_;
  bool news_ = false;
  bool any_ = false;
};

}  // namespace paceline::transport
