#include "dataplane/service/sessions/session_state.h"

#include <algorithm>

#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

SessionState::SessionState(Service& service_, Peer peer_)
    : service(service_),
      tenant(service_.tenant(peer_.user)),
      peer(std::move(peer_)),
      number(service_.next_session()),
      bell_used(attach::kDoorbells) {}

Status SessionState::take_queue(QueueShare& share, std::uint64_t bytes) {
  if (!share.bytes.take(tenant.queue_bytes, bytes)) {
    return out_of_queue_memory(tenant.queue_bytes);
  }
  if (!share.descriptor.take(tenant.descriptors, 1)) return over_quota("descriptors");
  return {};
}

std::optional<std::uint32_t> SessionState::take_bell() {
  const auto at = std::find(bell_used.begin(), bell_used.end(), false);
  if (at == bell_used.end()) return std::nullopt;
  *at = true;
  return static_cast<std::uint32_t>(at - bell_used.begin());
}

void SessionState::give_bell(std::uint32_t bell) { bell_used[bell] = false; }

}  // namespace paceline::service
