// What a process says of a plug-in that crashes it, ends it or does not return. A plug-in is code
// of the process that loads it: it cannot be contained, but who runs it is told whose fault it was.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

// From now on a crash in the plug-in that has its code at `address`, or in what it calls, is told
// on standard error by its path, before the process ends as it would have. Where it calls exit, the
// same, and the exit status is 1. Signals that somebody else handles stay his. What is beyond 16
// plug-ins, which is all there may be, is not named.
void name_in_crashes(const void* address, const std::string& path);

// The same of a plug-in that is being loaded, as long as this lives: its code may run already.
class PluginLoading {
 public:
  explicit PluginLoading(const std::string& path);
  ~PluginLoading();
  PluginLoading(const PluginLoading&) = delete;
  PluginLoading& operator=(const PluginLoading&) = delete;
};

// While one lives, in whatever thread, a process whose plug-in takes ten seconds of processor time
// without passed() between is told so and ends with exit status 1. Not for real time, where nothing
// may come for as long. Uses SIGPROF and its timer.
class PluginTimeLimit {
 public:
  PluginTimeLimit();
  ~PluginTimeLimit();
  PluginTimeLimit(const PluginTimeLimit&) = delete;
  PluginTimeLimit& operator=(const PluginTimeLimit&) = delete;

  // More than one call of a plug-in is over. Any thread.
  static void passed();
};

// Runs call(context). False where it ended in a fault of memory, with the address: what it held is
// lost then. One thread at a time.
bool survives(void (*call)(void*), void* context, std::uintptr_t& fault);

}  // namespace paceline
