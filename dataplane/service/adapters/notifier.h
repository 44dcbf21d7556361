// The two pipes by which the service wakes a program: completion channels and asynchronous events.
// Only the service writes, and it never blocks: a program that does not read loses what does not
// fit, and nobody else notices.
#pragma once

#include <cstdint>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/queues.h"

namespace paceline::service {

struct Pipe {
  attach::Descriptor reading;  // for the program: blocking, as programs expect
  attach::Descriptor writing;
  // False with errno.
  bool make();
};

// False if it did not fit, or if the reading end is closed.
bool write_event(int pipe, const attach::ChannelEvent& event);
bool write_notice(int pipe, const attach::AsyncNotice& notice);

}  // namespace paceline::service
