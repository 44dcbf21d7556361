// TOML files to typed testbeds. All errors of a file are reported, each as "file:line:column: what,
// value, what is allowed"; with any error there is no value to use.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dataplane/config/diagnostics.h"
#include "dataplane/config/scenario_keys.h"
#include "dataplane/config/testbed.h"

namespace paceline::config {

Read<Testbed> read_testbed_file(const std::string& path);
// `source` names the text in errors.
Read<Testbed> read_testbed_text(std::string_view text, const std::string& source);

// The keys of [eal] and [[port]]; their `field` is null. vdevs, pci_allow and mac are not among
// them: no value of a scenario is a list of texts, or a MAC address.
std::span<const KeySpec> eal_keys();
std::span<const KeySpec> port_keys();

// The reference of all keys: the part of docs/ports.md between its "keys" markers.
std::string testbed_reference_markdown();

}  // namespace paceline::config
