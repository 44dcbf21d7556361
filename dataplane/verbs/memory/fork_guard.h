// Tells a process's RegistrationMap of fork(): without it a child would write into its parent's
// registered memory. What starts a process without calling fork() (posix_spawn, vfork, system)
// shares the address space until it is replaced, or calls none of the handlers: nothing to do.
#pragma once

namespace paceline::verbs {

class RegistrationMap;

// From now on, for the map that lives as long as the process. A second one takes the first one's
// place (tests); nullptr: none.
void guard_forks(RegistrationMap* map);

}  // namespace paceline::verbs
