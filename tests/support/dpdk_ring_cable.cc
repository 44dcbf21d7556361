#include "tests/support/dpdk_ring_cable.h"

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

namespace paceline {

DpdkRingCableMade DpdkRingCable::make(const std::string& name, unsigned slots) {
  const auto refuse = [&name](const std::string& why) {
    return DpdkRingCableMade{nullptr, "ring cable \"" + name + "\": " + why};
  };
  if (name.empty() || name.size() > 8) return refuse("a name has 1 to 8 characters");
  if (slots < 8 || (slots & (slots - 1)) != 0) {
    return refuse(std::to_string(slots) + " slots: allowed is a power of two, 8 or more");
  }
  std::unique_ptr<DpdkRingCable> cable(new DpdkRingCable);
  for (unsigned i = 0; i < 2; ++i) {
    const std::string ring = name + (i == 0 ? "-ab" : "-ba");
    cable->rings_[i] =
        rte_ring_create(ring.c_str(), slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (cable->rings_[i] == nullptr) return refuse(rte_strerror(rte_errno));
  }
  for (unsigned i = 0; i < 2; ++i) {
    const std::string end = name + (i == 0 ? "-a" : "-b");
    rte_ring* const in = cable->rings_[1 - i];
    rte_ring* const out = cable->rings_[i];
    if (rte_eth_from_rings(end.c_str(), &in, 1, &out, 1, 0) < 0) {
      return refuse(rte_strerror(rte_errno));
    }
    cable->names_[i] = "net_ring_" + end;
  }
  return {std::move(cable), ""};
}

DpdkRingCable::~DpdkRingCable() {
  for (rte_ring* ring : rings_) {
    void* mbuf = nullptr;
    while (ring != nullptr && rte_ring_dequeue(ring, &mbuf) == 0) {
      rte_pktmbuf_free(static_cast<rte_mbuf*>(mbuf));
    }
    rte_ring_free(ring);
  }
}

}  // namespace paceline
