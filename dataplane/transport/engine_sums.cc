// A look at all contexts in bounded pieces.
#include "dataplane/transport/engine.h"

namespace paceline::transport {

std::uint32_t Engine::add_contexts(Picos now, std::uint32_t first, std::uint32_t count,
                                   ContextSums& sums) const {
  if (first == 0) {
    for (std::size_t i = 0; i < sums.limiter_picos.size(); ++i) {
      sums.limiter_picos[i] += core_.retired_limiter_picos[i];
    }
  }
  const std::uint32_t size = core_.contexts.size();
  const std::uint32_t end = count < size - std::min(first, size) ? first + count : size;
  for (std::uint32_t c = first; c < end; ++c) {
    const CongestionContext& context = core_.contexts[c];
    if (!context.in_use) continue;
    ++sums.contexts;
    sums.on_fallback += context.on_fallback ? 1U : 0U;
    sums.inflight_bytes += context.inflight_bytes;
    sums.backlog_bytes += context.backlog_bytes;
    const std::uint8_t cluster = core_.peers[context.peer].cluster;
    if (cluster < sums.moved_to.size()) {
      sums.queue_pairs_to[cluster] += context.queue_pairs;
      sums.moved_to[cluster] += 2 * context.sent_total - context.inflight_bytes;
    }
    for (std::size_t i = 0; i < sums.limiter_picos.size(); ++i) {
      sums.limiter_picos[i] += context.limiter_picos[i];
    }
    sums.limiter_picos[static_cast<std::size_t>(context.limiter)] +=
        (now - context.limiter_since).count;
  }
  return end < size ? end : 0;
}

}  // namespace paceline::transport
