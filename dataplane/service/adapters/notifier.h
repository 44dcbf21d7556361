// The two pipes by which the service tells a program something that it may sleep for: completion
// channels and asynchronous events. The writing ends are ours alone and never block: a program that
// does not read loses what does not fit, and nobody else notices.
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

// False when it did not fit, or nobody reads any more.
bool write_event(int pipe, const attach::ChannelEvent& event);
bool write_notice(int pipe, const attach::AsyncNotice& notice);

}  // namespace paceline::service
