// TopRows as text: the screen of `paceline top`, and its JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/top/top_rows.h"

namespace paceline::tools {

enum class TopTable : std::uint8_t { nics, peers, queue_pairs };

struct TopView {
  TopTable table = TopTable::peers;  // below that of the NICs
  std::size_t first = 0;             // row it begins with
  std::size_t width = 0;             // of the terminal: columns are left out; 0: as wide as it is
  std::size_t height = 0;            // lines of the terminal; 0: as many as there are
  bool colour = false;
  bool keys = false;      // a last line says which keys there are
  bool stopped = false;   // the figures are kept as they were
  double interval = 1.0;  // seconds between two looks
  std::string clock;      // of the wall
};

// Lines of at most `width` characters, at most `height`.
std::vector<std::string> top_lines(const TopRows& rows, const TopView& view);
std::string top_text(const TopRows& rows, const TopView& view);
std::string top_json(const TopRows& rows);

// "9.41 Gb/s", "12.0 Mb/s", "0".
std::string rate_text(double bits_per_second);
// "1.5 MB", "512 B".
std::string size_text(double bytes);

}  // namespace paceline::tools
