#include "tools/testbed/mesh/mesh_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "dataplane/base/text/printable.h"
#include "tools/cli/text_table.h"

namespace paceline::tools {

namespace {

using MeshJson = nlohmann::ordered_json;

constexpr std::size_t kWidestMatrix = 12;

// "4.10 / 9.75", in us; "-": not known.
std::string pair_micros(const MeshJson& pair, const char* figure) {
  const auto at = pair.find(figure);
  if (at == pair.end() || !at->is_object()) return "-";
  return fmt::format("{:.2f} / {:.2f}", at->value("p50", 0.0) / 1e3, at->value("p99", 0.0) / 1e3);
}

std::string signed_figure(const MeshJson& pair, const char* figure, double unit) {
  const auto at = pair.find(figure);
  if (at == pair.end() || !at->is_number()) return "-";
  return fmt::format("{:+.2f}", at->get<double>() / unit);
}

double fabric_p99(const MeshJson& pair) {
  const auto at = pair.find("fabric_ns");
  return at != pair.end() && at->is_object() ? at->value("p99", 0.0) : -1.0;
}

std::string pair_end(const MeshJson& pair, const char* end) {
  return printable_lines(pair.value(end, std::string{}));
}

std::string lost_share(const MeshJson& pair) {
  const auto decided = pair.value("answered", 0.0) + pair.value("lost", 0.0);
  if (decided == 0) return "-";
  return fmt::format("{:.1f} %", 100 * pair.value("lost", 0.0) / decided);
}

std::string table_text(const TextTable& table) {
  std::string out;
  for (const std::string& line : table.lines(0, false)) out += line + "\n";
  return out;
}

std::string fabric_matrix(const MeshJson& mesh) {
  std::vector<Column> columns{{.head = "from \\ to", .left = true}};
  for (const MeshJson& nic : mesh.at("nics")) {
    columns.push_back({.head = printable_lines(nic.get<std::string>())});
  }
  TextTable table(columns);
  for (const MeshJson& from : mesh.at("nics")) {
    std::vector<Cell> row{{printable_lines(from.get<std::string>())}};
    for (const MeshJson& to : mesh.at("nics")) {
      std::string text = from == to ? "" : "-";
      for (const MeshJson& pair : mesh.at("pairs")) {
        if (pair.at("from") == from && pair.at("to") == to) text = pair_micros(pair, "fabric_ns");
      }
      row.push_back({text});
    }
    table.add(std::move(row));
  }
  return "round trip less the time at the far host, us, p50 / p99\n" + table_text(table) + "\n";
}

}  // namespace

std::string mesh_text(const MeshJson& mesh, std::size_t most) {
  std::vector<MeshJson> pairs = mesh.at("pairs").get<std::vector<MeshJson>>();
  std::string out = fmt::format("{} NICs, {} pairs, {:.1f} s; a NIC probes every {:.0f} us\n\n",
                                mesh.at("nics").size(), pairs.size(), mesh.value("seconds", 0.0),
                                mesh.value("interval_us", 0.0));
  if (mesh.at("nics").size() <= kWidestMatrix) out += fabric_matrix(mesh);
  if (pairs.size() > most) {
    std::stable_sort(pairs.begin(), pairs.end(), [](const MeshJson& a, const MeshJson& b) {
      return fabric_p99(a) > fabric_p99(b);
    });
    out += fmt::format("the {} slowest pairs (--all lists {}, --json has them with their paths)\n",
                       most, pairs.size());
    pairs.resize(most);
  }
  TextTable table({{.head = "from", .left = true},
                   {.head = "to", .left = true},
                   {.head = "fabric us"},
                   {.head = "host us"},
                   {.head = "there us"},
                   {.head = "back us"},
                   {.head = "lost"},
                   {.head = "clock us"},
                   {.head = "+- us"},
                   {.head = "drift ppm"},
                   {.head = "set"}});
  for (const MeshJson& pair : pairs) {
    const auto bound = signed_figure(pair, "uncertainty_ns", 1e3);
    table.add({{pair_end(pair, "from")},
               {pair_end(pair, "to")},
               {pair_micros(pair, "fabric_ns")},
               {pair_micros(pair, "host_ns")},
               {pair_micros(pair, "there_ns")},
               {pair_micros(pair, "back_ns")},
               {lost_share(pair)},
               {signed_figure(pair, "offset_ns", 1e3)},
               {bound.starts_with('+') ? bound.substr(1) : bound},
               {signed_figure(pair, "drift_ppb", 1e3)},
               {fmt::format("{}", pair.value("clock_restarts", 0))}});
  }
  return out + table_text(table);
}

}  // namespace paceline::tools
