// Shared by all sessions of a service: its workers and their NIC instances, its tenants, its
// settings. For the control thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/service/limits/privileges.h"
#include "dataplane/service/limits/service_settings.h"
#include "dataplane/service/limits/tenant.h"
#include "dataplane/service/workers/domain_book.h"
#include "dataplane/service/workers/fault_book.h"
#include "dataplane/service/workers/service_worker.h"
#include "dataplane/telemetry/segment_writer.h"

namespace paceline::service {

struct NicPlace {
  std::size_t worker = 0;
  std::size_t nic = 0;  // of that worker's set

  friend bool operator==(const NicPlace&, const NicPlace&) = default;
};

class Service {
 public:
  Service(ServiceSettings settings, std::vector<std::unique_ptr<NicSet>> nic_sets);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Starts the workers; `before` opens what else needs rights that are given up then. Returns an
  // error, or an empty text.
  std::string start(const std::function<std::string()>& before = {});
  // The last step of `before`. `ports`: devices of this machine are open.
  std::string give_up_privileges(bool ports);
  const Privileges& privileges() const { return privileges_; }
  void stop();

  const ServiceSettings& settings() const { return settings_; }
  std::size_t workers() const { return workers_.size(); }
  ServiceWorker& worker(std::size_t index) { return *workers_[index]; }

  std::optional<NicPlace> find_nic(std::string_view name) const;
  // The instance was taken away: its name stays reserved, and nobody can open it.
  void take_away(NicPlace place) { gone_.push_back(place); }
  bool gone(NicPlace place) const;
  // With the limits of this service, for this tenant.
  attach::NicInfo nic_info(NicPlace place) const;
  // All instances, at most attach::kMaxNics.
  std::vector<NicPlace> nics() const;

  // The telemetry segment, from start() on, and the descriptor to hand out; receivers of it cannot
  // write.
  std::span<const std::byte> segment() const { return {segment_.data(), segment_.size()}; }
  int segment_descriptor() const { return segment_.descriptor(); }

  bool may_attach(uid_t user) const;
  Tenant& tenant(uid_t user);
  const std::map<uid_t, Tenant>& tenants() const { return tenants_; }
  // An open /dev/userfaultfd where the settings say so, else -1: with it programs without
  // privileges can hold their writers while memory is shared, and stop the kernel at will
  // (docs/service.md).
  int userfaultfd() const { return userfaultfd_.get(); }
  // Takes work of the control thread that a program could delay.
  attach::Aside& aside() { return aside_; }
  FaultBook& faults() { return faults_; }
  DomainBook& domains() { return domains_; }
  std::uint32_t next_pd() { return ++last_pd_; }
  std::uint32_t next_session() { return ++last_session_; }

 private:
  // 0 or an errno. Before workers run.
  int draw_key_secrets();
  // The same; workers write there what they count.
  bool make_segment();

  ServiceSettings settings_;
  attach::Aside aside_;
  attach::SharedMemory segment_;
  std::optional<telemetry::SegmentWriter> writer_;
  std::vector<std::unique_ptr<ServiceWorker>> workers_;
  std::vector<NicPlace> gone_;
  std::map<uid_t, Tenant> tenants_;
  attach::Descriptor userfaultfd_;
  Privileges privileges_;
  FaultBook faults_;
  DomainBook domains_;
  std::uint32_t last_pd_ = 0;
  std::uint32_t last_session_ = 0;
};

}  // namespace paceline::service
