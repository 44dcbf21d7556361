// The service's settings, read once at its start: the [service] table of a testbed file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/loop/worker_watch.h"

namespace paceline::service {

// Limits for one tenant (a user id) at a time, over all its sessions.
struct TenantQuota {
  std::uint32_t sessions = 256;
  std::uint32_t queue_pairs = 8192;
  std::uint32_t completion_queues = 8192;
  std::uint32_t shared_receive_queues = 1024;
  std::uint32_t regions = 65536;
  std::uint32_t protection_domains = 4096;
  std::uint32_t address_handles = 65536;
  std::uint64_t registered_bytes = 0;  // 0: half of the memory available to the service
  // Resources that the service itself uses for the tenant. 0: a quarter of the memory, half of the
  // descriptors and half of the mappings that the service may have.
  std::uint64_t queue_bytes = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t mappings = 0;
  // Messages per second that each worker takes from the tenant; 0: no limit. A tenant that was idle
  // may send `message_burst` messages at once.
  std::uint64_t message_rate = 0;
  std::uint32_t message_burst = 1024;
};

// Limits of one object. Programs see them as the limits of the device.
struct ObjectLimits {
  std::uint32_t requests = 16384;    // of a work queue
  std::uint32_t segments = 16;       // of a request: up to transport::kMaxSegments
  std::uint32_t inline_bytes = 512;  // of a request
  std::uint32_t entries = 65536;     // of a completion queue
  std::uint32_t rd_atomic = 16;      // READs and atomics of a queue pair, either direction
  std::uint64_t region_bytes = 0;    // 0: what a tenant may register
};

struct WorkerTimes {
  // A worker without work polls for this long, then sleeps until it is woken or something is due.
  Picos spin_for = picos_from_micros(30);
  // Longest sleep of a worker to which packets may come from outside without waking it.
  Picos longest_sleep_listening = picos_from_micros(500);
  // Longest sleep of other workers: they must show that they live.
  Picos longest_sleep = picos_from_micros(200'000);
  WatchSettings watch{};
  // Between two updates of the telemetry segment, while anything happens.
  Picos telemetry_interval = picos_from_micros(5'000);
};

struct ServiceSettings {
  std::string socket;  // empty: the default path, which programs look at
  // Users who may attach, besides root and the service's own user. `open`: everyone.
  std::vector<uid_t> users;
  bool open = false;
  // The user to which a service started by root changes, once devices and sockets are open. Empty:
  // drop_privileges() chooses.
  std::string user;
  TenantQuota quota{};
  ObjectLimits limits{};
  WorkerTimes times{};
  // Its members may use the control socket, besides root and the service's own user; empty: none.
  std::string control_group;
  // Folders from which plug-ins may be loaded (plugin_shelf.h); none: no plug-in may be.
  std::vector<std::string> plugin_folders;
  // Programs get an open /dev/userfaultfd, if the service can open it (docs/service.md).
  bool userfaultfd = false;
  // RLIMIT_MEMLOCK of a process limits the memory that it registers.
  bool memlock = false;
  // The testbed file and its overrides, for the status.
  std::string testbed;
  std::vector<std::string> overrides;
  std::uint64_t start_unix_ns = 0;
};

}  // namespace paceline::service
