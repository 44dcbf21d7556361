#include "dataplane/service/cm/tables/nic_book.h"

namespace paceline::service::cm {

namespace {

bool is_group(const wire::IpAddress& address) {
  return address.is_v4() ? address.v4_value() >> 28 == 0xE : address.bytes[0] == std::byte{0xFF};
}

}  // namespace

std::optional<std::size_t> NicBook::owner(const wire::IpAddress& address) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < nics_.size() && !found; ++i) {
    attach::each_gid(nics_[i], [&](auto, auto, const auto& own) {
      if (own == address.bytes) found = i;
    });
  }
  return found;
}

GidPlace NicBook::place_of(std::size_t nic, const wire::IpAddress& address) const {
  GidPlace found;
  attach::each_gid(nics_[nic], [&](std::uint32_t port, std::uint32_t index, const auto& own) {
    if (own != address.bytes) return;
    found = {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(index)};
  });
  return found;
}

std::optional<wire::IpAddress> NicBook::address_of(std::size_t nic, bool v4) const {
  std::optional<wire::IpAddress> found;
  attach::each_gid(nics_[nic], [&](auto, auto, const auto& gid) {
    const wire::IpAddress own{gid};
    if (!found && own.is_v4() == v4) found = own;
  });
  return found;
}

wire::IpAddress NicBook::source_for(std::size_t nic, const wire::IpAddress& to) const {
  wire::IpAddress source = *address_of(nic, to.is_v4());
  if (nics_[nic].more_ports == 0) return source;
  attach::each_gid(nics_[nic], [&](auto, auto, const auto& gid) {
    const wire::IpAddress own{gid};
    if (own.is_v4() == to.is_v4() && wire::subnet_of(own) == wire::subnet_of(to)) source = own;
  });
  return source;
}

std::optional<std::size_t> NicBook::first(const Visible& visible, bool v4) const {
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    if (sees(visible, i) && !gone_[i] && address_of(i, v4)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> NicBook::way_to(const Visible& visible,
                                           const wire::IpAddress& to) const {
  if (is_group(to)) return first(visible, to.is_v4());
  const std::optional<std::size_t> at = owner(to);
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    const bool fits = i != at && sees(visible, i) && !gone_[i];
    if (fits && address_of(i, to.is_v4()) && reaches(i, to)) return i;
  }
  const bool own = at && sees(visible, *at) && !gone_[*at] && reaches(*at, to);
  return own ? at : std::nullopt;
}

std::uint8_t NicBook::mtu_code(std::size_t nic) const {
  std::uint8_t code = 1;  // 256
  while (code < 5 && (256U << code) <= nics_[nic].mtu) ++code;
  return code;
}

std::uint8_t NicBook::rate_code(std::size_t nic) const {
  constexpr struct {
    std::uint32_t mbps;
    std::uint8_t code;
  } kRates[] = {{2'500, 2},    {5'000, 5},    {10'000, 3},   {14'000, 11},  {20'000, 6},
                {25'000, 15},  {28'000, 19},  {40'000, 7},   {50'000, 20},  {56'000, 12},
                {100'000, 16}, {200'000, 17}, {300'000, 18}, {400'000, 21}, {600'000, 22}};
  const std::uint64_t mbps = nics_[nic].rate_mbps;
  for (const auto& rate : kRates) {
    if (mbps != 0 && mbps <= rate.mbps) return rate.code;
  }
  return 22;
}

}  // namespace paceline::service::cm
