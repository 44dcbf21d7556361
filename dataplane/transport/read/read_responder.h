// The responder's side of READ and atomic operations (InfiniBand vol. 1, 9.7.4 to 9.7.5). When the
// request of a READ arrives, it is only noted. Its responses are data that this end sends; they are
// built one by one when the queue pair's congestion context allows. An atomic operation runs once,
// when it arrives; its result is kept for as long as it may be asked for again.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class ReadResponder {
 public:
  // READ responses are data that this end sends: the scheduler asks for each one when it may go.
  // Requires qp.response_ready. Makes `packet` the next response, complete and accounted in the
  // queue pair; false when memory is not at hand, or the queue pair has failed.
  static bool build(EngineCore& core, QueuePair& qp, Packet& packet);
  // The wire bytes of that response.
  static std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp);
  // The expected packet is a READ or an atomic.
  static RequestOutcome accept(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // A READ or an atomic that was seen before.
  static void repeat(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);

 private:
  struct NextResponse {
    const ResponderResource* resource;
    std::uint32_t index;
    bool first;  // of its run
    bool last;
    bool repair;  // asked for again
  };
  static RequestOutcome accept_atomic(EngineCore& core, QueuePair& qp,
                                      const wire::ParsedPacket& parsed,
                                      ResponderResource& resource);
  static bool accept_read(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                          ResponderResource& resource);
  static void repeat_responses(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                               const ResponderResource& resource, std::uint32_t index);
  static NextResponse next_response(const QueuePair& qp);
  static void add_response(EngineCore& core, QueuePair& qp, std::uint64_t bytes);
};

}  // namespace paceline::transport
