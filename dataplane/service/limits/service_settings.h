// What the service is told once: the [service] table of a testbed file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/loop/worker_watch.h"

namespace paceline::service {

// What one tenant (a user id) may have at a time, over all its sessions.
struct TenantQuota {
  std::uint32_t sessions = 256;
  std::uint32_t queue_pairs = 8192;
  std::uint32_t completion_queues = 8192;
  std::uint32_t shared_receive_queues = 1024;
  std::uint32_t regions = 65536;
  std::uint32_t protection_domains = 4096;
  std::uint32_t address_handles = 65536;
  std::uint64_t registered_bytes = 0;  // 0: half of what there is for the service
  // What the service itself takes for it. 0: a quarter of the memory, half of the descriptors and
  // half of the mappings that the service may have.
  std::uint64_t queue_bytes = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t mappings = 0;
  // Messages a second that each worker takes from it; 0: as many as there are. A tenant that was
  // idle may send `message_burst` of them at once.
  std::uint64_t message_rate = 0;
  std::uint32_t message_burst = 1024;
};

// What one object may be asked to hold; told to programs as the limits of the device.
struct ObjectLimits {
  std::uint32_t requests = 16384;    // of a work queue
  std::uint32_t segments = 16;       // of a request: up to transport::kMaxSegments
  std::uint32_t inline_bytes = 512;  // of a request
  std::uint32_t entries = 65536;     // of a completion queue
  std::uint32_t rd_atomic = 16;      // READs and atomics of a queue pair, either direction
  std::uint64_t region_bytes = 0;    // 0: as many as a tenant may register
};

struct WorkerTimes {
  // A worker without work looks again at once for so long, then sleeps until it is called or
  // something is due.
  Picos spin_for = picos_from_micros(30);
  // Where packets may come from outside unannounced, it looks at least so often...
  Picos most_sleep_listening = picos_from_micros(500);
  // ... and elsewhere so often, as a sign of life.
  Picos most_sleep = picos_from_micros(200'000);
  WatchSettings watch{};
  // Between two writings of what is counted into the telemetry segment, while anything happens.
  Picos telemetry_interval = picos_from_micros(5'000);
};

struct ServiceSettings {
  std::string socket;  // empty: where programs look for it
  // Who may attach besides root and the service's own user: user ids, and the members of a group
  // that the socket's file belongs to. `open`: anybody.
  std::vector<uid_t> users;
  bool open = false;
  // Whom a service that root starts becomes, once devices and sockets are open; empty: nobody.
  std::string user;
  TenantQuota quota{};
  ObjectLimits limits{};
  WorkerTimes times{};
  // Whose members may use the control socket, besides root and the service's own user; empty: none.
  std::string control_group;
  // Plug-ins may be loaded from there (plugin_shelf.h); none: nowhere.
  std::vector<std::string> plugin_folders;
  // Programs get an open /dev/userfaultfd, where this service has one (docs/service.md).
  bool userfaultfd = false;
  // RLIMIT_MEMLOCK of a process bounds what it registers.
  bool memlock = false;
  std::string testbed;  // what its file is called, for those who ask
  std::uint64_t start_unix_ns = 0;
};

}  // namespace paceline::service
