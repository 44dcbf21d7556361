// [service] of a testbed file: who may attach, and how much a tenant may have.
#include <array>

#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::config {

namespace {

constexpr double kMostObjects = 1e6;

constexpr auto kServiceKeys = std::to_array<KeySpec>({
    {.path = "service.socket",
     .meaning = "Socket where programs attach. Empty: `paceline.sock` in the folder of `paceline "
                "testbed`. A name that begins with `@` is in the abstract namespace."},
    {.path = "service.open", .meaning = "Any user of the machine may attach."},
    {.path = "service.users",
     .min = 0,
     .max = 4'294'967'294.0,
     .meaning = "User ids that may attach, besides the service's own and root."},
    {.path = "service.user",
     .meaning = "User that a service started by root becomes; see [Privileges](#privileges)."},
    {.path = "service.sessions",
     .min = 1,
     .max = kMostObjects,
     .meaning = "Opened devices of a tenant. A tenant is a user."},
    {.path = "service.queue_pairs", .min = 1, .max = kMostObjects, .meaning = "Per tenant."},
    {.path = "service.completion_queues", .min = 1, .max = kMostObjects, .meaning = "Per tenant."},
    {.path = "service.shared_receive_queues",
     .min = 0,
     .max = kMostObjects,
     .meaning = "Per tenant."},
    {.path = "service.regions",
     .min = 1,
     .max = kMostObjects,
     .meaning = "Memory regions of a tenant."},
    {.path = "service.protection_domains", .min = 1, .max = kMostObjects, .meaning = "Per tenant."},
    {.path = "service.address_handles", .min = 0, .max = kMostObjects, .meaning = "Per tenant."},
    {.path = "service.registered",
     .form = Form::bytes,
     .min = 0,
     .max = 1e15,
     .meaning = "Registered bytes of a tenant. 0: half of the memory of the machine, or of the "
                "control group of the service."},
    {.path = "service.queue_memory",
     .form = Form::bytes,
     .min = 0,
     .max = 1e15,
     .meaning =
         "Bytes of all queues of a tenant, and of the memory that the service keeps for them. "
         "0: a quarter of that memory."},
    {.path = "service.message_rate",
     .min = 0,
     .max = 1e12,
     .meaning = "Messages a second of a tenant. 0: no limit."},
    {.path = "service.message_burst",
     .min = 1,
     .max = kMostObjects,
     .meaning = "With `message_rate`: messages at once after a pause."},
    {.path = "service.telemetry_interval",
     .min = 1e9,
     .max = 1e12,
     .meaning = "How often a worker writes its counters into the telemetry segment while there is "
                "traffic."},
    {.path = "service.control_group",
     .meaning =
         "Group whose members may use the control socket, besides the service's own user and "
         "root. Empty: none."},
    {.path = "service.userfaultfd",
     .meaning = "Programs of unprivileged users get a userfaultfd that also serves faults of the "
                "kernel, although vm.unprivileged_userfaultfd = 0 forbids it. Without it their "
                "memory is reached by copy; see [Memory](#memory)."},
    {.path = "service.memlock",
     .meaning = "A process registers at most its RLIMIT_MEMLOCK, as on hardware, unless it "
                "is root's or has CAP_IPC_LOCK."},
});

// Read separately: arrays of texts have no key type of their own.
void read_plugin_folders(const TomlMember& m, ServiceConfig& out, ReadContext& context) {
  read_texts(m, "service", context, [&](const TomlNode& item) {
    if (item.text.front() != '/') {
      return fail_value(context, item, "service.plugin_folders", "expected absolute paths");
    }
    out.plugin_folders.push_back(item.text);
  });
}

}  // namespace

std::span<const KeySpec> service_keys() { return kServiceKeys; }

Field service_field(ServiceConfig& service, std::string_view name) {
  if (name == "socket") return &service.socket;
  if (name == "open") return &service.open;
  if (name == "users") return &service.users;
  if (name == "user") return &service.user;
  if (name == "sessions") return &service.sessions;
  if (name == "queue_pairs") return &service.queue_pairs;
  if (name == "completion_queues") return &service.completion_queues;
  if (name == "shared_receive_queues") return &service.shared_receive_queues;
  if (name == "regions") return &service.regions;
  if (name == "protection_domains") return &service.protection_domains;
  if (name == "address_handles") return &service.address_handles;
  if (name == "registered") return &service.registered;
  if (name == "queue_memory") return &service.queue_memory;
  if (name == "message_rate") return &service.message_rate;
  if (name == "telemetry_interval") return &service.telemetry_interval;
  if (name == "control_group") return &service.control_group;
  if (name == "userfaultfd") return &service.userfaultfd;
  if (name == "memlock") return &service.memlock;
  return &service.message_burst;
}

void read_service(const TomlNode& table, ServiceConfig& out, ReadContext& context) {
  if (!table.is_table()) return context.errors->add(table.where, "expected a table, [service]");
  read_testbed_table(
      table, "service", service_keys(), {"plugin_folders"}, context,
      [&](std::string_view name) { return service_field(out, name); },
      [&](const TomlMember& m) { read_plugin_folders(m, out, context); });
}

std::string emulated_reference_markdown() {
  NicConfig nic;
  ServiceConfig service;
  std::string text =
      reference_rows(nic_keys(), [&](std::string_view name) { return nic_field(nic, name); });
  text +=
      "| `nic.names` | array of texts | | Names of the hosts, in order; hosts without one are "
      "`h0`, `h1`, ... by number. At most 31 letters, digits, `-` and `_`. |\n"
      "\n";
  text += reference_rows(service_keys(),
                         [&](std::string_view name) { return service_field(service, name); });
  text +=
      "| `service.plugin_folders` | array of texts | | Folders, by absolute path, "
      "from which plug-ins may be loaded while the service runs ([plugins.md](plugins.md)). "
      "Empty: none. |\n";
  return text;
}

}  // namespace paceline::config
