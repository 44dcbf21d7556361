// A table that fits a terminal: the least important columns are left out until the rest fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace paceline::tools {

enum class Style : std::uint8_t { plain, head, good, warning, bad };

struct Cell {
  std::string text;
  Style style = Style::plain;
};

struct Column {
  std::string head;
  bool left = false;       // aligned
  std::size_t width = 0;   // at least
  std::uint32_t rank = 0;  // 0: always there; the highest is left out first
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns.
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  // The head and the rows, none longer than `width` characters (0: as long as they are).
  std::vector<std::string> lines(std::size_t width, bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// The text with its colour, if colours are wanted.
std::string styled(const std::string& text, Style style, bool colour);

}  // namespace paceline::tools
