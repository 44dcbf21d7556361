// Tells a process's RegistrationMap of fork(): without it, a child would write into its parent's
// registered memory. Calls that start a process without fork() (posix_spawn, vfork, system) share
// the address space until the process is replaced, or call none of the handlers: nothing needs to
// be done.
#pragma once

namespace paceline::verbs {

class RegistrationMap;

// From now on guards this map, which lives as long as the process. A second map replaces the first
// (tests); nullptr: none.
void guard_forks(RegistrationMap* map);

}  // namespace paceline::verbs
