// TOML files to typed testbeds. All errors of a file are reported, each as "file:line:column: what,
// value, what is allowed"; with any error there is no value to use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/testbed/testbed.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

// Reads a testbed of ports, for `join` and `replay`: emulated hosts are refused.
Read<Testbed> read_testbed_file(const std::string& path);
// `source` names the text in errors.
Read<Testbed> read_testbed_text(std::string_view text, const std::string& source);

// Reads a testbed of either kind: with [fabric] it has emulated hosts. Overrides as for a scenario.
Read<Testbed> read_testbed_file(const std::string& path, const ReaderOptions& options);
Read<Testbed> read_testbed_text(std::string_view text, const std::string& source,
                                const std::string& folder, const ReaderOptions& options);

// Errors that keep a valid testbed of ports from being used for a service, one per line. None for a
// testbed of emulated hosts.
std::vector<std::string> service_problems(const Testbed& testbed);

// The keys of [eal], [[port]] and [port.host]; their `field` is null. Lists of texts and addresses
// are not among them.
std::span<const KeySpec> eal_keys();
std::span<const KeySpec> port_keys();
std::span<const KeySpec> host_keys();
// [nic], likewise; without `names`.
std::span<const KeySpec> nic_keys();
std::span<const KeySpec> service_keys();

// The reference of all keys: the part of docs/ports.md between its "keys" markers.
std::string testbed_reference_markdown();
// Likewise of docs/service.md: [nic] and [service].
std::string emulated_reference_markdown();

}  // namespace paceline::config
