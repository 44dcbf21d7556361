#include "dataplane/port/dpdk/dpdk_stamps.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

namespace paceline {

std::optional<DpdkStampSource> find_stamps(std::uint16_t port_id, std::string& refusal) {
  DpdkStampSource source;
  source.port_id = port_id;
  source.read = rte_eth_read_clock;
  std::uint64_t ticks = 0;
  if (const int result = rte_eth_read_clock(port_id, &ticks); result != 0) {
    refusal =
        std::string("the clock of its timestamps cannot be read (") + rte_strerror(-result) + ")";
    return std::nullopt;
  }
  if (rte_mbuf_dyn_rx_timestamp_register(&source.field, &source.flag) != 0) {
    refusal = std::string("no room for timestamps in mbufs (") + rte_strerror(rte_errno) + ")";
    return std::nullopt;
  }
  return source;
}

void DpdkStamps::use_clock(const PollClock& clock) {
  poll_ = clock;
  device_.forget();
  now_ = emptied_ = emptied_next_ = Picos{0};
}

void DpdkStamps::burst(bool emptied) {
  if (!poll_) return;
  now_ = poll_.now();
  emptied_ = emptied_next_;
  if (emptied) emptied_next_ = now_;
  if (!device_.wants_pair(now_)) return;
  ClockPair pair;
  pair.before = poll_.now();
  const int result = source_.read(source_.port_id, &pair.ticks);
  pair.after = poll_.now();
  if (result != 0) pair.after = pair.before - Picos{1};  // counted as refused
  device_.pair(pair);
}

Picos DpdkStamps::arrival(const rte_mbuf* mbuf) {
  if (!poll_) return Picos{0};
  if ((mbuf->ol_flags & source_.flag) == 0) {
    ++unstamped_;
    return Picos{0};
  }
  const std::uint64_t ticks = *RTE_MBUF_DYNFIELD(mbuf, source_.field, const rte_mbuf_timestamp_t*);
  return device_.time_of(ticks, emptied_, now_).value_or(Picos{0});
}

}  // namespace paceline
