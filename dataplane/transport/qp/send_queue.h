// The send queue of one queue pair: a ring of work requests with the packet sequence numbers that
// each will use. PSNs are assigned when the request is posted, so that any PSN in flight can be
// found again after going back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/base/protocol/psn.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::transport {

// How the packets of a request differ from the usual ones.
namespace entry_form {
inline constexpr std::uint8_t split = 1U << 0;        // WRITE Only packets (selective repeat)
inline constexpr std::uint8_t names_queue = 1U << 1;  // XRC: each names a shared receive queue
}  // namespace entry_form

// The fields that every packet of a SEND or WRITE needs lie on one cache line; fields that only its
// last packet or other operations need lie behind it (types.h).
struct alignas(64) SendEntry {
  Psn first_psn;
  // The sequence numbers that it takes: one for each packet of a SEND or WRITE (one for an empty
  // message), one for each response to a READ, one for an atomic operation (vol. 1, 9.7.2, 9.7.3).
  std::uint32_t packets = 1;
  std::uint32_t ssn = 0;  // send sequence number: messages posted until here, this one included
  // READ or atomic: a single request packet is sent, and the responses carry the numbers.
  bool has_response = false;
  std::uint8_t form = 0;  // of entry_form
  QueuedRequest request;

  bool split() const { return (form & entry_form::split) != 0; }
};
static_assert(offsetof(SendEntry, request) + offsetof(QueuedRequest, compare) <= 64);

using SendQueue = FixedRing<SendEntry>;

}  // namespace paceline::transport
