#include "tools/topology/topology_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tools/topology/topology_figures.h"

namespace paceline::tools {

namespace {

// Ink, and the colours of arms, of the report's page.
constexpr const char* kInk = "#1b1f24";
constexpr const char* kSoft = "#57606a";
constexpr const char* kPortColours[] = {"#2f6db3", "#d1570a", "#138a63", "#a3479a",
                                        "#8a6d00", "#3a3f47", "#4f7fb8", "#b8637d"};
constexpr double kWidth = 1320;
constexpr double kRowHeight = 150;
constexpr double kTop = 70;
constexpr double kLeft = 90;  // of the rows; names of tiers stand before
constexpr double kBoxHeight = 16;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

struct TierRow {
  std::uint32_t nodes = 0;
  std::uint32_t group = 1;  // nodes of a box
  std::uint32_t boxes() const { return (nodes + group - 1) / group; }
};

class Picture {
 public:
  explicit Picture(const fabric::FabricSpec& spec) : spec_(spec), tier_(tiers_of(spec)) {
    place_.resize(tier_.size());
    for (std::uint32_t node = 0; node < tier_.size(); ++node) {
      if (tier_[node] == kNoTier) continue;
      if (tier_[node] >= rows_.size()) rows_.resize(tier_[node] + 1);
      TierRow& row = rows_[tier_[node]];
      place_[node] = node < spec.hosts ? node % spec.nics() : row.nodes;
      row.nodes = std::max(row.nodes, place_[node] + 1);
    }
    for (std::uint32_t t = 0; t < rows_.size(); ++t) group(t);
  }

  std::string draw(const std::string& name) {
    const double height = kTop + static_cast<double>(rows_.size()) * kRowHeight - 40;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"16\" y=\"28\" font-size=\"16\" fill=\"{}\">{}</text>\n",
        kWidth, height, kInk, escaped(name));
    out += legend();
    out += lines();
    for (std::uint32_t t = 0; t < rows_.size(); ++t) out += boxes(t);
    return out + "</svg>\n";
  }

 private:
  // Boxes of hosts end where a leaf's do, if there is a first leaf to go by.
  void group(std::uint32_t tier) {
    TierRow& row = rows_[tier];
    std::uint32_t unit = 1;
    if (tier == 0 && spec_.shape.regular()) unit = spec_.shape.hosts_per_leaf;
    if (row.nodes <= kMostDrawn) return;
    if ((row.nodes + unit - 1) / unit > kMostDrawn || unit == 1) {
      const std::uint32_t units = (row.nodes + unit - 1) / unit;
      row.group = (units + kMostDrawn - 1) / kMostDrawn * unit;
    } else {
      row.group = unit;
    }
  }

  double x(std::uint32_t tier, std::uint32_t box) const {
    const double step = (kWidth - kLeft - 20) / rows_[tier].boxes();
    return kLeft + step * (box + 0.5);
  }
  double y(std::uint32_t tier) const {
    return kTop + static_cast<double>(rows_.size() - 1 - tier) * kRowHeight;
  }

  // The port of a NIC for its links, the plane for others where ports have planes of their own.
  std::uint32_t colour_of(const fabric::LinkSpec& link) const {
    const std::uint32_t host = std::min(link.a, link.b);
    if (host < spec_.hosts) return host / spec_.nics();
    if (!spec_.shape.regular() || spec_.shape.planes == 1) return 5;
    const std::uint32_t lower = tier_[link.a] <= tier_[link.b] ? link.a : link.b;
    const TierRow& row = rows_[tier_[lower]];
    return place_[lower] / (row.nodes / spec_.shape.planes);
  }

  std::string lines() const {
    using Box = std::pair<std::uint32_t, std::uint32_t>;  // tier, box
    std::map<std::pair<std::pair<Box, Box>, std::uint32_t>, std::uint64_t> drawn;
    for (const fabric::LinkSpec& link : spec_.links) {
      if (tier_[link.a] == kNoTier) continue;
      const Box a{tier_[link.a], place_[link.a] / rows_[tier_[link.a]].group};
      const Box b{tier_[link.b], place_[link.b] / rows_[tier_[link.b]].group};
      ++drawn[{std::minmax(a, b), colour_of(link)}];
    }
    std::string out = "<g fill=\"none\" stroke-opacity=\"0.55\">\n";
    for (const auto& [line, count] : drawn) {
      const auto& [ends, colour] = line;
      const auto& [from, to] = ends;
      const double width = 0.6 + 0.35 * std::log2(static_cast<double>(count));
      const double x1 = x(from.first, from.second);
      const double x2 = x(to.first, to.second);
      const double y1 = y(from.first);
      const double y2 = y(to.first);
      // Links within a row bend over it.
      const std::string path = from.first == to.first
                                   ? fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", x1,
                                                 y1, (x1 + x2) / 2, y1 - 50, x2, y2)
                                   : fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x1, y1, x2, y2);
      out += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{:.2f}\"/>\n", path,
                         kPortColours[colour % 8], width);
    }
    return out + "</g>\n";
  }

  std::string boxes(std::uint32_t tier) const {
    const TierRow& row = rows_[tier];
    const double step = (kWidth - kLeft - 20) / row.boxes();
    const double width = std::min(60.0, step * 0.8);
    std::string out = fmt::format(
        "<text x=\"16\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n"
        "<text x=\"16\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
        y(tier), kInk, tier_name(tier), y(tier) + 15, kSoft, row.nodes);
    for (std::uint32_t box = 0; box < row.boxes(); ++box) {
      const std::uint32_t first = box * row.group;
      const std::uint32_t last = std::min(row.nodes, first + row.group) - 1;
      const std::string what =
          first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"{}\">"
          "<title>{} {}</title></rect>\n",
          x(tier, box) - width / 2, y(tier) - kBoxHeight / 2, width, kBoxHeight,
          tier == 0 ? "#6b7480" : kInk, tier_name(tier), what);
      const std::string label = row.group == 1 ? what : fmt::format("x{}", last - first + 1);
      const bool room = static_cast<double>(label.size()) * 7.5 < step;
      if (room || box == 0) {
        out += fmt::format(
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"11\" "
            "fill=\"{}\">{}</text>\n",
            x(tier, box), y(tier) + (tier == 0 ? 24 : -13), kSoft, label);
      }
    }
    return out;
  }

  std::string legend() const {
    if (spec_.ports == 1) return {};
    std::string out;
    for (std::uint32_t port = 0; port < spec_.ports; ++port) {
      const double at = kLeft + 80.0 * port;
      out += fmt::format(
          "<rect x=\"{}\" y=\"38\" width=\"14\" height=\"4\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"44\" fill=\"{}\">port {}</text>\n",
          at, kPortColours[port % 8], at + 19, kSoft, port);
    }
    return out;
  }

  const fabric::FabricSpec& spec_;
  std::vector<std::uint32_t> tier_;
  std::vector<std::uint32_t> place_;  // of a node in its row
  std::vector<TierRow> rows_;
};

}  // namespace

std::string topology_svg(const std::string& name, const fabric::FabricSpec& spec) {
  return Picture(spec).draw(name);
}

}  // namespace paceline::tools
