// Reports a plug-in that crashes or ends the process or does not return. A plug-in is code in the
// process that loads it: it cannot be contained, but the user is told which plug-in is at fault.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

// From now on a crash in the plug-in with its code at `address`, or in a function that it calls, is
// reported on standard error with the plug-in's path, before the process ends as it would have. A
// call of exit() is reported likewise, and the exit status is 1. Signal handlers of others are
// kept. At most 16 plug-ins are watched, which is all there may be.
void name_in_crashes(const void* address, const std::string& path);

// The same for a plug-in that is being loaded, as long as this object lives: its code may run
// already.
class PluginLoading {
 public:
  explicit PluginLoading(const std::string& path);
  ~PluginLoading();
  PluginLoading(const PluginLoading&) = delete;
  PluginLoading& operator=(const PluginLoading&) = delete;
};

// While an object lives, in any thread, a plug-in that takes ten seconds of processor time without
// a call of passed() is reported, and the process ends with exit status 1. Not for real time, where
// no event may come for that long. Uses SIGPROF and its timer.
class PluginTimeLimit {
 public:
  PluginTimeLimit();
  ~PluginTimeLimit();
  PluginTimeLimit(const PluginTimeLimit&) = delete;
  PluginTimeLimit& operator=(const PluginTimeLimit&) = delete;

  // More than one call of a plug-in is over. Any thread.
  static void passed();
};

// Runs call(context). False if it ended in a memory fault, with the address: the resources that it
// held are then lost. One thread at a time.
bool survives(void (*call)(void*), void* context, std::uintptr_t& fault);

}  // namespace paceline
