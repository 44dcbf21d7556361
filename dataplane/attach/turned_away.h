// A service that does not let a program in says so before it is asked anything, and closes.
#pragma once

#include "dataplane/attach/message_socket.h"

namespace paceline::attach {

// After sending or receiving ended with Transfer::closed: true where the last word was such a
// refusal, with its errno in the header.
inline bool turned_away(int socket, Message& reply) {
  // If the service has not read everything that was sent, the first attempt fails with ECONNRESET.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Transfer got = receive_message(socket, reply);
    if (got == Transfer::done) return reply.header.sequence == 0 && reply.header.error != 0;
    if (got != Transfer::closed) break;
  }
  return false;
}

}  // namespace paceline::attach
