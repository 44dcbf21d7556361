// The connection manager's way to other machines: queue pair 1 of each NIC instance to which
// packets come from outside. Emulated hosts have no such machines. For the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "dataplane/service/cm/mad/parcel.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

// `lost`: there was no room in either direction; or the datagram came from another queue pair, or
// had another size.
struct ManagementCounts : cm::MadCounts {
  std::uint64_t lost = 0;
};

class ManagementLink {
 public:
  using Receive = std::function<void(const cm::Parcel&, std::span<const std::byte>)>;

  ManagementLink(boost::asio::io_context& context, Service& service)
      : service_(service), bell_(context), places_(service.nics()) {}
  ManagementLink(const ManagementLink&) = delete;
  ManagementLink& operator=(const ManagementLink&) = delete;

  // While the workers run, once. Warns if there is no descriptor left.
  void open(Receive receive);
  void send(const cm::Parcel& parcel);
  ManagementCounts counts(const cm::MadCounts& counted) const;

 private:
  // An engine never forgets peers: strangers must not make it know any number of them.
  static constexpr std::size_t kMostPeers = 65'536;

  static constexpr std::size_t kAtOnce = 64;

  void wait();
  void take();

  Service& service_;
  boost::asio::posix::stream_descriptor bell_;
  std::vector<NicPlace> places_;  // as the connection manager numbers them
  Receive receive_;
  std::set<wire::IpAddress> peers_;
  std::uint64_t unsent_ = 0;
};

}  // namespace paceline::service
