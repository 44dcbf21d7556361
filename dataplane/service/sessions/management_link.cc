#include "dataplane/service/sessions/management_link.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace paceline::service {

void ManagementLink::open(Receive receive) {
  receive_ = std::move(receive);
  bool any = false;
  for (std::size_t i = 0; i < service_.workers(); ++i) {
    any |= service_.worker(i).nics().receives_from_outside();
  }
  if (!any) return;
  const auto bell =
      std::make_shared<const attach::Descriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  attach::Descriptor own(::fcntl(bell->get(), F_DUPFD_CLOEXEC, 0));
  if (!own) {
    spdlog::warn("rdma_cm does not reach other machines: eventfd: {}", std::strerror(errno));
    return;
  }
  for (std::size_t i = 0; i < service_.workers(); ++i) {
    ServiceWorker& worker = service_.worker(i);
    if (!worker.nics().receives_from_outside()) continue;
    worker.call(0, [&](Picos now) { worker.open_management(now, service_.next_pd(), bell); });
  }
  bell_.assign(own.release());
  wait();
}

void ManagementLink::wait() {
  bell_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this](const boost::system::error_code& error) {
                     if (error) return;
                     std::uint64_t rings = 0;
                     [[maybe_unused]] const ssize_t got =
                         ::read(bell_.native_handle(), &rings, sizeof rings);
                     take();
                     wait();
                   });
}

// Handles this many at once, then programs have their turn; further arrivals ring again.
void ManagementLink::take() {
  std::size_t budget = kAtOnce;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto management = service_.worker(places_[i].worker).management();
    if (management.empty()) continue;
    ManagementPair& pair = *management[places_[i].nic];
    ManagementPair::Arrival arrival;
    while (budget != 0 && pair.take(arrival)) {
      --budget;
      const cm::Parcel parcel{i, arrival.source, arrival.destination, {}};
      if (const auto answer = cm::answer_to_query(arrival.bytes)) {
        send({i, arrival.destination, arrival.source, *answer});
      }
      receive_(parcel, arrival.bytes);
    }
  }
  if (budget != 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.native_handle(), &one, sizeof one);
}

void ManagementLink::send(const cm::Parcel& parcel) {
  const NicPlace place = places_[parcel.nic];
  ServiceWorker& worker = service_.worker(place.worker);
  const auto management = worker.management();
  const auto path = worker.nics().path_to(place.nic, parcel.destination);
  const bool known = peers_.contains(parcel.destination);
  bool sent = false;
  if (!management.empty() && path && worker.ports_up(place.nic) != 0 &&
      (known || peers_.size() < kMostPeers)) {
    if (!known) peers_.insert(parcel.destination);
    worker.call(place.nic,
                [&](Picos now) { sent = management[place.nic]->send(now, *path, parcel.bytes); });
  }
  if (!sent) ++unsent_;
}

ManagementCounts ManagementLink::counts(const cm::MadCounts& counted) const {
  ManagementCounts out{counted, unsent_};
  for (std::size_t i = 0; i < service_.workers(); ++i) {
    for (const auto& pair : service_.worker(i).management()) out.lost += pair->lost();
  }
  return out;
}

}  // namespace paceline::service
