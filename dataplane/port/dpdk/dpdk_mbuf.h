// Between a Packet and the mbuf it lives in. For dpdk_*.cc only.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>

#include "dataplane/port/packet.h"

namespace paceline::dpdk {

static_assert(sizeof(rte_mbuf) == 128, "the Packet behind it must be 64-byte aligned");
static_assert(RTE_PKTMBUF_HEADROOM >= kMaxHeaderBytes, "headers are written there");

inline Packet* packet_of(rte_mbuf* mbuf) { return reinterpret_cast<Packet*>(mbuf + 1); }
inline rte_mbuf* mbuf_of(Packet* packet) { return reinterpret_cast<rte_mbuf*>(packet) - 1; }
inline std::byte* buffer_of(const rte_mbuf* mbuf) {
  return static_cast<std::byte*>(mbuf->buf_addr);
}

// Behind the payload: ICRC, and zeros up to the shortest frame.
inline constexpr std::size_t kTailBytes = 64;

}  // namespace paceline::dpdk
