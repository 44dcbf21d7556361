#include "tests/rt/dpdk/driver_part/stamping.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace paceline::test {

namespace {

// By device: the clock is read by its number alone.
std::array<const Stamping*, RTE_MAX_ETHPORTS>& devices() {
  static std::array<const Stamping*, RTE_MAX_ETHPORTS> all{};
  return all;
}

int read_clock(std::uint16_t port_id, std::uint64_t* ticks) {
  const Stamping* const device = devices()[port_id];
  if (device == nullptr) return -ENODEV;
  *ticks = device->ticks();
  return 0;
}

std::uint16_t stamp_burst(std::uint16_t /*port_id*/, std::uint16_t /*queue*/, rte_mbuf** mbufs,
                          std::uint16_t count, void* user) {
  const auto& device = *static_cast<const Stamping*>(user);
  const DpdkStampSource& source = device.source();
  for (std::uint16_t i = 0; i < count && !device.silent; ++i) {
    mbufs[i]->ol_flags |= source.flag;
    *RTE_MBUF_DYNFIELD(mbufs[i], source.field, rte_mbuf_timestamp_t*) =
        device.stamp ? device.stamp() : device.ticks();
  }
  return count;
}

}  // namespace

Stamping::Stamping(std::uint16_t port_id, std::uint16_t other_end,
                   std::function<std::uint64_t()> clock)
    : clock_(std::move(clock)), other_end_(other_end) {
  source_.port_id = port_id;
  source_.read = read_clock;
  if (rte_mbuf_dyn_rx_timestamp_register(&source_.field, &source_.flag) != 0) {
    throw std::runtime_error("no room for a timestamp in mbufs");
  }
  devices()[port_id] = this;
  callback_ = rte_eth_add_tx_callback(other_end, 0, stamp_burst, this);
  if (callback_ == nullptr) throw std::runtime_error("no callback on this device");
}

Stamping::~Stamping() {
  rte_eth_remove_tx_callback(other_end_, 0, callback_);
  devices()[source_.port_id] = nullptr;
}

}  // namespace paceline::test
