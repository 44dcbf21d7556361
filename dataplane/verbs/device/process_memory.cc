#include "dataplane/verbs/device/process_memory.h"

#include <cstdlib>

#include "dataplane/verbs/memory/fork_guard.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::verbs {

namespace {

RegistrationMap* make_process_memory() {
  MemoryMode mode = MemoryMode::automatic;
  const char* const text = ::getenv("PACELINE_MEMORY");
  if (!parse_memory_mode(text, mode)) {
    say("PACELINE_MEMORY: allowed are auto, share and copy; using auto");
  }
  auto* const map = new RegistrationMap(mode);
  guard_forks(map);
  return map;
}

}  // namespace

RegistrationMap& process_memory() {
  static RegistrationMap* const map = make_process_memory();
  return *map;
}

}  // namespace paceline::verbs
