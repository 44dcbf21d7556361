#include "dataplane/service/workers/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "dataplane/attach/text.h"
#include "dataplane/service/limits/machine_memory.h"
#include "dataplane/service/limits/service_limits.h"

namespace paceline::service {

Service::Service(ServiceSettings settings, std::vector<std::unique_ptr<NicSet>> nic_sets)
    : settings_(std::move(settings)) {
  privileges_.user = privileges_.owner = ::geteuid();
  privileges_.starter = own_credentials();
  TenantQuota& quota = settings_.quota;
  const std::uint64_t memory = machine_memory();
  if (quota.registered_bytes == 0) quota.registered_bytes = memory / 2;
  if (quota.queue_bytes == 0) quota.queue_bytes = memory / 4;
  if (quota.descriptors == 0)
    quota.descriptors = std::max(process_descriptors() / 2, kFewDescriptors);
  if (quota.mappings == 0) quota.mappings = process_mappings() / 2;
  if (settings_.limits.region_bytes == 0) settings_.limits.region_bytes = quota.registered_bytes;
  for (std::size_t i = 0; i < nic_sets.size(); ++i) {
    workers_.push_back(std::make_unique<ServiceWorker>(fmt::format("worker {}", i),
                                                       std::move(nic_sets[i]), settings_.times));
  }
}

Service::~Service() { stop(); }

std::string Service::start(const std::function<std::string()>& before) {
  const ObjectLimits& limits = settings_.limits;
  if (limits.requests == 0 || limits.requests > kMostRequests || limits.segments == 0 ||
      limits.segments > kMostSegments || limits.inline_bytes > kMostInlineBytes ||
      limits.entries == 0 || limits.entries > kMostEntries || limits.rd_atomic == 0 ||
      limits.rd_atomic > transport::kMaxRdAtomic || settings_.quota.message_burst == 0 ||
      settings_.quota.message_rate > 1'000'000'000) {
    return fmt::format(
        "limits of the service: 1 to {} requests, 1 to {} segments, 0 to {} inline bytes, 1 to {} "
        "entries, 1 to {} READs and atomics; a message burst of at least 1, at most 10^9 messages "
        "a second",
        kMostRequests, kMostSegments, kMostInlineBytes, kMostEntries, transport::kMaxRdAtomic);
  }
  for (const auto& worker : workers_) {
    if (!worker->open()) return fmt::format("{}: {}", worker->name(), std::strerror(errno));
  }
  if (settings_.userfaultfd) {
    userfaultfd_.reset(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    if (!userfaultfd_) {
      return fmt::format("service.userfaultfd: /dev/userfaultfd: {}", std::strerror(errno));
    }
  }
  if (const int error = draw_key_secrets(); error != 0) {
    return fmt::format("getrandom: {}", std::strerror(error));
  }
  if (!make_segment()) return fmt::format("telemetry segment: {}", std::strerror(errno));
  if (before) {
    if (std::string wrong = before(); !wrong.empty()) return wrong;
  }
  try {
    for (const auto& worker : workers_) worker->start();
    aside_.begin();
  } catch (const std::system_error& error) {
    return attach::no_threads(error);
  }
  return {};
}

std::string Service::give_up_privileges(bool ports) {
  return drop_privileges({settings_.user, ports}, privileges_);
}

bool Service::make_segment() {
  telemetry::SegmentSetup setup;
  setup.records = kSegmentRecords;
  setup.publish_interval_ns =
      static_cast<std::uint64_t>(to_nanos(settings_.times.telemetry_interval).count);
  setup.service_start_unix_ns = settings_.start_unix_ns;
  setup.service_pid = static_cast<std::uint32_t>(::getpid());
  for (const NicPlace place : nics()) {
    const attach::NicInfo& info = workers_[place.worker]->nics().nic(place.nic).info;
    setup.nics.push_back({attach::text_of(info.name), info.rate_mbps * 1'000'000,
                          static_cast<std::uint32_t>(place.worker), info.mtu});
  }
  if (!segment_.make("paceline-telemetry", telemetry::SegmentWriter::bytes_needed(setup),
                     attach::SharedWrite::maker_only)) {
    return false;
  }
  writer_.emplace(segment_.bytes(), setup);
  std::size_t first = 0;
  for (const auto& worker : workers_) {
    worker->publish_to(*writer_, first);
    first += worker->nics().size();
  }
  return true;
}

// Each instance has its own secret; nobody, not even the service, can predict the keys of regions.
int Service::draw_key_secrets() {
  for (const NicPlace place : nics()) {
    transport::KeySecret secret;
    const ssize_t got = ::getrandom(secret.words.data(), sizeof(secret.words), 0);
    if (got != static_cast<ssize_t>(sizeof(secret.words))) return got < 0 ? errno : EIO;
    workers_[place.worker]->nics().nic(place.nic).engine->regions().draw_keys_from(secret);
  }
  return 0;
}

void Service::stop() {
  for (const auto& worker : workers_) worker->stop();
}

std::optional<NicPlace> Service::find_nic(std::string_view name) const {
  for (const NicPlace place : nics()) {
    if (attach::text_of(workers_[place.worker]->nics().nic(place.nic).info.name) == name)
      return place;
  }
  return std::nullopt;
}

bool Service::gone(NicPlace place) const {
  return std::find(gone_.begin(), gone_.end(), place) != gone_.end();
}

std::vector<NicPlace> Service::nics() const {
  std::vector<NicPlace> all;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const std::size_t size = workers_[w]->nics().size();
    for (std::size_t i = 0; i < size && all.size() < attach::kMaxNics; ++i) all.push_back({w, i});
  }
  return all;
}

attach::NicInfo Service::nic_info(NicPlace place) const {
  attach::NicInfo info = workers_[place.worker]->nics().nic(place.nic).info;
  info.gone = gone(place) ? 1 : 0;
  info.up = info.gone == 0 ? workers_[place.worker]->ports_up(place.nic) : std::uint8_t{0};
  const TenantQuota& quota = settings_.quota;
  const ObjectLimits& limits = settings_.limits;
  info.limits.queue_pairs = quota.queue_pairs;
  info.limits.completion_queues = quota.completion_queues;
  info.limits.shared_receive_queues = quota.shared_receive_queues;
  info.limits.regions = quota.regions;
  info.limits.protection_domains = quota.protection_domains;
  info.limits.address_handles = quota.address_handles;
  info.limits.requests = limits.requests;
  info.limits.segments = limits.segments;
  info.limits.inline_bytes = limits.inline_bytes;
  info.limits.entries = limits.entries;
  info.limits.rd_atomic = limits.rd_atomic;
  info.limits.region_bytes = limits.region_bytes;
  info.limits.registered_bytes = quota.registered_bytes;
  info.clock_khz = 1'000'000;
  return info;
}

bool Service::may_attach(uid_t user) const {
  return settings_.open || user == 0 || user == privileges_.owner ||
         std::find(settings_.users.begin(), settings_.users.end(), user) != settings_.users.end();
}

Tenant& Service::tenant(uid_t user) {
  return tenants_.try_emplace(user, user, settings_.quota, workers_.size()).first->second;
}

}  // namespace paceline::service
