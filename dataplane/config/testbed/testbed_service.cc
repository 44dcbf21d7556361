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
     .meaning = "Where programs attach. Empty: where they look for it, see below. One that begins "
                "with `@` is in the abstract namespace."},
    {.path = "service.open", .meaning = "Any user of the machine may attach."},
    {.path = "service.users",
     .min = 0,
     .max = 4'294'967'294.0,
     .meaning = "User ids that may attach, besides the service's own and root."},
    {.path = "service.user",
     .meaning =
         "User that a service of root's becomes, with its groups, once devices and sockets are "
         "open; see [service.md](service.md#what-it-may-do). Empty: it stays who it is."},
    {.path = "service.sessions",
     .min = 1,
     .max = kMostObjects,
     .meaning = "Of a tenant, which is a user: opened devices."},
    {.path = "service.queue_pairs", .min = 1, .max = kMostObjects, .meaning = "Of a tenant."},
    {.path = "service.completion_queues", .min = 1, .max = kMostObjects, .meaning = "Of a tenant."},
    {.path = "service.shared_receive_queues",
     .min = 0,
     .max = kMostObjects,
     .meaning = "Of a tenant."},
    {.path = "service.regions",
     .min = 1,
     .max = kMostObjects,
     .meaning = "Of a tenant: registered memory regions."},
    {.path = "service.protection_domains",
     .min = 1,
     .max = kMostObjects,
     .meaning = "Of a tenant."},
    {.path = "service.address_handles", .min = 0, .max = kMostObjects, .meaning = "Of a tenant."},
    {.path = "service.registered",
     .form = Form::bytes,
     .min = 0,
     .max = 1e15,
     .meaning = "Of a tenant: bytes of all its regions. 0: half of the memory that there is for "
                "the service, on the machine or in its control group."},
    {.path = "service.queue_memory",
     .form = Form::bytes,
     .min = 0,
     .max = 1e15,
     .meaning = "Of a tenant: bytes of all its queues, those that the service keeps for them "
                "included. 0: a quarter of the memory that there is for the service."},
    {.path = "service.message_rate",
     .min = 0,
     .max = 1e12,
     .meaning = "Messages a second that are taken from a tenant. 0: no limit."},
    {.path = "service.message_burst",
     .min = 1,
     .max = kMostObjects,
     .meaning = "With `message_rate`: so many at once after a pause."},
    {.path = "service.telemetry_interval",
     .min = 1e9,
     .max = 1e12,
     .meaning = "How often a worker writes what it counts into the telemetry segment, while "
                "anything happens."},
    {.path = "service.control_group",
     .meaning = "A group of this machine whose members may use the control socket, besides the "
                "service's own user and root. Empty: none."},
    {.path = "service.userfaultfd",
     .meaning = "Programs of users without privileges get a userfaultfd that can also stop the "
                "kernel, which vm.unprivileged_userfaultfd = 0 forbids them; without it their "
                "memory is reached by copy (docs/memory.md)."},
});

// Read apart: arrays of texts have no key of their own kind.
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
      "| `nic.names` | array of texts | | What the hosts are called, in order; those without a "
      "name "
      "`h0`, `h1`, ... by their number. At most 31 letters, digits, `-` and `_`. |\n\n";
  text += reference_rows(service_keys(),
                         [&](std::string_view name) { return service_field(service, name); });
  text +=
      "| `service.plugin_folders` | array of texts | | Folders, by their absolute paths, from "
      "which "
      "plug-ins may be loaded while the service runs (docs/plugins.md). None: none may. |\n";
  return text;
}

}  // namespace paceline::config
