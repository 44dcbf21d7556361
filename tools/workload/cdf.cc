#include "tools/workload/cdf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr double kLargestSize = 1e15;
constexpr std::size_t kLongestFile = 16U << 20;

// Per cent to shares.
std::vector<Cdf::Point> from_percent(std::vector<Cdf::Point> points) {
  for (Cdf::Point& p : points) p.share /= 100.0;
  return points;
}

}  // namespace

Cdf::Cdf(std::vector<Point> points) : points_(std::move(points)) {
  assert(!points_.empty() && points_.back().share == 1.0);
  mean_ = points_.front().bytes * points_.front().share;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    mean_ +=
        (points_[i - 1].bytes + points_[i].bytes) / 2 * (points_[i].share - points_[i - 1].share);
  }
}

std::uint64_t Cdf::quantile(double u) const {
  const auto above = std::upper_bound(points_.begin(), points_.end(), u,
                                      [](double value, const Point& p) { return value < p.share; });
  double bytes = 0;
  if (above == points_.begin()) {
    bytes = above->bytes;
  } else if (above == points_.end()) {
    bytes = points_.back().bytes;
  } else {
    const Point& a = *(above - 1);
    const Point& b = *above;
    bytes = a.bytes + (b.bytes - a.bytes) * ((u - a.share) / (b.share - a.share));
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes + 0.5));
}

const Cdf& web_search_cdf() {
  static const Cdf cdf(from_percent({{0, 0},
                                     {10'000, 15},
                                     {20'000, 20},
                                     {30'000, 30},
                                     {50'000, 40},
                                     {80'000, 53},
                                     {200'000, 60},
                                     {1'000'000, 70},
                                     {2'000'000, 80},
                                     {5'000'000, 90},
                                     {10'000'000, 97},
                                     {30'000'000, 100}}));
  return cdf;
}

const Cdf& fb_hadoop_cdf() {
  static const Cdf cdf(from_percent(
      {{0, 0},        {100, 1},      {200, 2},          {300, 5},        {350, 15},
       {400, 20},     {500, 30},     {600, 40},         {700, 50},       {1'000, 60},
       {2'000, 67},   {7'000, 70},   {30'000, 72},      {50'000, 82},    {80'000, 87},
       {120'000, 90}, {300'000, 95}, {1'000'000, 97.5}, {2'000'000, 99}, {10'000'000, 100}}));
  return cdf;
}

config::Read<Cdf> parse_cdf(std::string_view text, const std::string& source) {
  config::Read<Cdf> out;
  TableErrors errors;
  TextTable table(text, source);
  TextLine line;
  std::vector<Cdf::Point> points;
  Word last_share;
  while (!errors.full() && table.next(line)) {
    const bool like_others = line.words.size() == 2 && all_numbers(line);
    if (!like_others && points.empty() && errors.empty() &&
        report_known_format(text, table.where(line.words.front()), "lines of `size share`",
                            errors)) {
      break;
    }
    if (line.words.size() != 2) {
      errors.add(table.where(line.words.front()),
                 fmt::format("{} columns: expected 2, `size share`", line.words.size()));
      continue;
    }
    Cdf::Point p;
    const bool good = read_number(table, line.words[0], "size", 0, kLargestSize, p.bytes, errors) &&
                      read_number(table, line.words[1], "share", 0, 100, p.share, errors);
    if (!good) continue;
    last_share = line.words[1];
    if (!points.empty() && p.bytes < points.back().bytes) {
      errors.add(table.where(line.words[0]),
                 fmt::format("size = {}: below the line before ({}); sizes do not decrease",
                             line.words[0].text, points.back().bytes));
    }
    if (!points.empty() && p.share < points.back().share) {
      errors.add(table.where(line.words[1]),
                 fmt::format("share = {}: below the line before ({}); shares do not decrease",
                             line.words[1].text, points.back().share));
    }
    points.push_back(p);
  }
  if (errors.empty() && points.empty()) {
    errors.add(table.end(), "no data: expected lines of `size share`");
  }
  if (errors.empty()) {
    const double end = points.back().share;
    if (end != 1.0 && end != 100.0) {
      errors.add(table.where(last_share),
                 fmt::format("share = {}: the last one; a CDF ends at 1 (or at 100, in per cent)",
                             last_share.text));
    } else {
      if (end == 100.0) points = from_percent(std::move(points));
      // The largest size decides the mean: a distribution of zeros could never make a load.
      if (points.back().bytes <= 0) {
        errors.add(table.where(last_share), "all sizes are 0: expected at least one above");
      } else {
        out.value = Cdf(std::move(points));
      }
    }
  }
  out.errors = errors.list();
  return out;
}

config::Read<Cdf> read_cdf_file(const std::string& path) {
  const config::Read<std::string> text = read_table_file(path, kLongestFile);
  if (!text.ok()) return {{}, text.errors};
  return parse_cdf(text.value, path);
}

}  // namespace paceline::workload
