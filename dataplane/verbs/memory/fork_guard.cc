#include "dataplane/verbs/memory/fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "dataplane/verbs/memory/registration_map.h"

namespace paceline::verbs {

namespace {

// pthread_atfork takes functions without an argument: this is the one place that has to know.
std::atomic<RegistrationMap*> guarded{nullptr};
// The map that the forking thread has locked.
std::atomic<RegistrationMap*> locked{nullptr};

void before_fork() {
  RegistrationMap* const map = guarded.load();
  if (map != nullptr) map->before_fork();
  locked.store(map);
}
void after_fork_in_parent() {
  if (RegistrationMap* const map = locked.load(); map != nullptr) map->after_fork_in_parent();
}
void after_fork_in_child() {
  if (RegistrationMap* const map = locked.load(); map != nullptr) map->after_fork_in_child();
}

}  // namespace

void guard_forks(RegistrationMap* map) {
  static const int registered =
      ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(registered);
  guarded.store(map);
}

}  // namespace paceline::verbs
