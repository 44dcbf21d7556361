// A plug-in as the host knows it: the table that a shared object gave away, checked, with our own
// tables made from it. Loading shared objects is the driver's
// (dataplane/driver/scenario/plugin_load.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/plugin/paceline_cc.h"

namespace paceline::cc::plugin {

struct Plugin {
  const paceline_cc_algorithm* origin = nullptr;  // the shared object's own table
  paceline_cc_algorithm table{};                  // in the host's version; missing members are 0
  paceline_cc_receiver receiver{};  // likewise; the table's pointer says whether there is one
  paceline_cc_rates rates{};        // likewise
  std::string path;
  std::string sha256;  // of the file's content when it was loaded, 64 hexadecimal digits
  std::vector<ParamSpec> params;
  std::vector<std::vector<ProfileValue>> profile_values;
  std::vector<Profile> profiles;
  AlgorithmInfo info;  // id is set when it is registered
};

// Checks a table as paceline_cc_plugin returned it (nullptr allowed). The error says what is wrong
// and what is allowed, without the path. Strings stay where they are: the shared object is never
// closed.
std::variant<std::unique_ptr<Plugin>, std::string> examine(const paceline_cc_algorithm* table);

// Parts of it: the table of the receiving half and that of rates, if there is one. Params have been
// read.
std::string read_receiver(Plugin& plugin);
std::string read_rates(Plugin& plugin);

// Arguments of a call to a plug-in.
inline constexpr std::uint32_t kHostAbi =
    std::uint32_t{PACELINE_CC_ABI_MAJOR} << 16 | std::uint32_t{PACELINE_CC_ABI_MINOR};

}  // namespace paceline::cc::plugin
