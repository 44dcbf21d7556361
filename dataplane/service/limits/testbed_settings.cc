#include "dataplane/service/limits/testbed_settings.h"

namespace paceline::service {

ServiceSettings settings_of(const config::ServiceConfig& config) {
  ServiceSettings out;
  out.socket = config.socket;
  out.open = config.open;
  out.users.assign(config.users.begin(), config.users.end());
  out.user = config.user;
  out.quota.sessions = config.sessions;
  out.quota.queue_pairs = config.queue_pairs;
  out.quota.completion_queues = config.completion_queues;
  out.quota.shared_receive_queues = config.shared_receive_queues;
  out.quota.regions = config.regions;
  out.quota.protection_domains = config.protection_domains;
  out.quota.address_handles = config.address_handles;
  out.quota.registered_bytes = config.registered;
  out.quota.queue_bytes = config.queue_memory;
  out.quota.message_rate = config.message_rate;
  out.quota.message_burst = config.message_burst;
  out.times.telemetry_interval = config.telemetry_interval;
  out.control_group = config.control_group;
  out.plugin_folders = config.plugin_folders;
  out.userfaultfd = config.userfaultfd;
  out.memlock = config.memlock;
  return out;
}

}  // namespace paceline::service
