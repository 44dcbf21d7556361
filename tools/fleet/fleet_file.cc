#include "tools/fleet/fleet_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/daemon/api/private_file.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/table_rows.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::tools {

namespace {

using config::Diagnostics;
using config::Form;
using config::Read;
using config::Row;
using config::TomlMember;
using config::TomlNode;

class FleetReader {
 public:
  FleetReader(const TomlNode& root, Fleet& out, const std::string& folder,
              const config::ReaderOptions& options, Diagnostics& errors)
      : root_(root), out_(out) {
    context_.algorithms = options.algorithms;
    context_.folder = folder;
    context_.errors = &errors;
    context_.has_workload = false;
  }

  void read() {
    constexpr auto kTables =
        std::to_array<std::string_view>({"schema", "name", "fabric", "transport", "host"});
    for (const TomlMember& m : root_.members) {
      if (std::find(kTables.begin(), kTables.end(), m.key) != kTables.end()) continue;
      config::report_unknown_key(m, "", kTables, context_);
      elsewhere_.push_back(m.key);
    }
    if (const TomlMember* const list = root_.find("host")) {
      config::each_table(list->value, "host", context_,
                         [&](const TomlNode& table) { read_host(table); });
    }
    if (out_.hosts.empty() && context_.errors->empty()) {
      context_.errors->add(root_.where, "a fleet needs at least one [[host]]");
    }
    if (out_.hosts.size() > kMostFleetHosts) {
      context_.errors->add(
          root_.where, fmt::format("{} hosts; allowed are {}", out_.hosts.size(), kMostFleetHosts));
    }
    read_scenario();
  }

 private:
  void read_scenario() {
    config::GivenKeys given;
    out_.scenario.name = out_.name;
    config::read_scenario_table(root_, elsewhere_, out_.scenario, given, context_);
    out_.name = out_.scenario.name;
    out_.has_fabric = root_.find("fabric") != nullptr;
    if (!out_.has_fabric) {
      if (const TomlMember* const m = root_.find("transport")) {
        context_.errors->add(m->where, "[transport] is of a fabric: [fabric] is needed");
      }
      return;
    }
    config::imply(out_.scenario, given);
    config::check_scenario(out_.scenario, given, root_.where, context_);
    if (out_.scenario.fabric.topology == "file") {
      context_.errors->add(given.place({"fabric.topology_file"}, root_.where),
                           "fabric.topology = \"file\" is for scenarios; allowed here is \"star\", "
                           "\"leaf_spine\", \"fat_tree\" or \"dumbbell\"");
    }
  }

  void read_host(const TomlNode& table) {
    FleetHost host;
    std::string url;
    const std::array<Row, 4> rows{
        Row{{.path = "host.url"}, &url},
        Row{{.path = "host.token_file", .form = Form::path}, &host.token_file},
        Row{{.path = "host.ca", .form = Form::path}, &host.daemon.ca},
        Row{{.path = "host.places"}, &host.places}};
    config::read_rows(table, "host", rows, {"name", "nics"}, context_, [&](const TomlMember& m) {
      if (m.key == "nics") take_nics(m, host);
    });
    if (!config::read_new_name(table, "host", out_.hosts, host.name, context_)) return;
    host.where = to_string(table.where);
    if (const TomlMember* const m = table.find("url")) {
      if (const std::string wrong = daemon::read_place(url, host.daemon); !wrong.empty()) {
        config::fail_value(context_, m->value, "host.url", wrong);
      }
    } else {
      context_.errors->add(table.where, "a [[host]] needs \"url\"");
    }
    check(table, host);
    out_.hosts.push_back(std::move(host));
  }

  void take_nics(const TomlMember& m, FleetHost& host) {
    config::read_texts(m, "host", context_, [&](const TomlNode& item) {
      if (std::find(host.nics.begin(), host.nics.end(), item.text) != host.nics.end()) {
        config::fail_value(context_, item, "host.nics", "it is there twice");
      }
      host.nics.push_back(item.text);
    });
    if (m.value.type == TomlNode::Type::array && m.value.items.empty()) {
      config::fail_value(context_, m.value, "host.nics", "expected at least one; absent: all");
    }
  }

  // Between keys of a host.
  void check(const TomlNode& table, const FleetHost& host) {
    const bool tls = host.daemon.kind == daemon::DaemonPlace::Kind::tls;
    for (const char* const key : {"token_file", "ca"}) {
      const TomlMember* const m = table.find(key);
      if (m == nullptr || tls) continue;
      config::fail_value(context_, m->value, fmt::format("host.{}", key),
                         "is of TLS: the url begins with https://");
    }
    if (tls && host.token_file.empty()) {
      context_.errors->add(
          table.where, fmt::format("host \"{}\": https needs token_file, a file with a token of "
                                   "that daemon's api.tokens",
                                   host.name));
    }
    const TomlMember* const places = table.find("places");
    if (places == nullptr) return;
    if (host.nics.empty()) {
      config::fail_value(context_, places->value, "host.places", "needs host.nics");
    } else if (host.places.size() != host.nics.size()) {
      config::fail_value(
          context_, places->value, "host.places",
          fmt::format("{} places for {} NICs", host.places.size(), host.nics.size()));
    }
  }

  const TomlNode& root_;
  Fleet& out_;
  config::ReadContext context_;
  std::vector<std::string_view> elsewhere_{"schema", "host"};
};

std::string read_token(FleetHost& host) {
  if (host.token_file.empty()) return {};
  std::string text;
  if (std::string wrong = daemon::read_private_file(host.token_file, text); !wrong.empty()) {
    return fmt::format("{}: host.token_file: {}", host.where, wrong);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const bool printable =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return 0x21 <= c && c <= 0x7E; });
  if (text.empty() || !printable) {
    return fmt::format("{}: host.token_file: {}: expected one token alone, without spaces",
                       host.where, host.token_file);
  }
  host.daemon.token = std::move(text);
  return {};
}

}  // namespace

Read<Fleet> read_fleet_text(std::string_view text, const std::string& source,
                            const std::string& folder, const config::ReaderOptions& options) {
  Fleet start;
  start.name = config::default_name(source, start.name);
  return config::read_document(text, source, std::move(start),
                               [&](TomlNode& root, Fleet& out, Diagnostics& errors) {
                                 FleetReader(root, out, folder, options, errors).read();
                               });
}

Read<Fleet> read_fleet_file(const std::string& path, const config::ReaderOptions& options) {
  Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  Read<Fleet> read = read_fleet_text(text.value, path, config::folder_of(path), options);
  if (!read.ok()) return read;
  for (FleetHost& host : read.value.hosts) {
    if (std::string wrong = read_token(host); !wrong.empty()) read.errors.push_back(wrong);
  }
  return read;
}

}  // namespace paceline::tools
