// What a hostile program does besides working its sessions: leaving at every step, coming in
// crowds, not reading, and passing things that are not memory.
#pragma once

#include "tests/verbs/hostile/hostile_session.h"

namespace paceline::test {

// Sessions one after the other, and what is done to them, `mutations` in all.
void work_sessions(HostileWorld& world, std::uint64_t mutations);
// A session from hello to the last object, left after each of its steps; `abruptly`: with a request
// on the way that nobody waits for.
void leave_at_every_step(HostileWorld& world, bool abruptly);
// Connections until the service says no, and then more.
void come_in_crowds(HostileWorld& world);
// Many requests and no look at the answers.
void never_read(HostileWorld& world);
// Things that are not shared memory, or not the memory that they are said to be.
void pass_wrong_descriptors(HostileWorld& world);
// Descriptors for HostileWorld::old that no service has made.
void collect_descriptors(HostileWorld& world);

}  // namespace paceline::test
