// Plain text files of numbers in columns (flow lists, topologies, CDFs): a line at a time, every
// word with its line and column, so that an error can point at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

struct Word {
  std::string_view text;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct TextLine {
  std::uint32_t number = 0;
  bool after_blank = false;      // at least one blank line before it
  std::vector<Word> words;       // never empty
  std::uint32_t end_column = 0;  // just behind the last word
};

// Walks a text; it must outlive the reader. `#` begins a comment. Blank lines are skipped.
class TextTable {
 public:
  TextTable(std::string_view text, std::string source) : rest_(text), source_(std::move(source)) {}

  // The next line that is not blank; false at the end.
  bool next(TextLine& line);

  config::Where where(const Word& word) const { return {source_, word.line, word.column}; }
  config::Where behind(const TextLine& line) const {
    return {source_, line.number, line.end_column};
  }
  // Where the text ends.
  config::Where end() const;

 private:
  std::string_view rest_;
  std::string source_;
  std::uint32_t line_ = 0;
  std::uint32_t last_length_ = 0;
};

// Collects errors up to a limit: a file of the wrong kind has one on every line.
class TableErrors {
 public:
  void add(const config::Where& where, const std::string& message);
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ >= kLimit; }
  std::vector<std::string> list() const;

 private:
  static constexpr std::size_t kLimit = 50;
  config::Diagnostics entries_;
  std::size_t count_ = 0;
};

// A file's text for a TextTable. Refuses what read_text_file refuses, and a line of more than
// kLongestLine bytes: an error would quote it, and its words would take many times its memory.
inline constexpr std::size_t kLongestLine = 1 << 20;
config::Read<std::string> read_table_file(const std::string& path, std::size_t max_bytes);

// Reads an unsigned integer in [min, max]; otherwise adds "`what` = text: expected ..." and returns
// false.
bool read_integer(const TextTable& table, const Word& word, std::string_view what,
                  std::uint64_t min, std::uint64_t max, std::uint64_t& out, TableErrors& errors);

// The same for a finite number.
bool read_number(const TextTable& table, const Word& word, std::string_view what, double min,
                 double max, double& out, TableErrors& errors);

}  // namespace paceline::workload
