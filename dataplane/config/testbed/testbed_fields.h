// The field that a key of a testbed file fills. `name` belongs to a row of the key table of its
// kind.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/testbed/testbed.h"

namespace paceline::config {

Field eal_field(EalConfig& eal, std::string_view name);
Field port_field(PortConfig& port, std::string_view name);
Field host_field(HostConfig& host, std::string_view name);
Field nic_field(NicConfig& nic, std::string_view name);
Field service_field(ServiceConfig& service, std::string_view name);

// Letters, digits, "-" and "_", at most 31.
bool is_nic_name(std::string_view text);

// The parts of the reader (testbed_reader.cc), a file each. `context` has where errors go.
void read_service(const TomlNode& table, ServiceConfig& out, ReadContext& context);
// Rows of a reference: "| key | value | default | meaning |" and its key rows.
std::string reference_rows(std::span<const KeySpec> keys,
                           const std::function<Field(std::string_view)>& field_of);
HostConfig read_port_host(const TomlNode& table, ReadContext& context);
// [transport] and [cc] of a testbed of ports. `context` has the algorithms; if it has none, for
// callers that make no engine, [cc] is skipped.
void read_port_engines(const TomlNode& root, Testbed& out, ReadContext& context);
// A testbed of emulated hosts. `context` has the algorithms and the folder, too.
void read_emulated(const TomlNode& root, Testbed& out, ReadContext& context);

}  // namespace paceline::config
