// Errors in the text files that people write: where, what, and what is allowed. Every reader
// collects all errors of a file instead of stopping at the first.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::config {

// A place in a file, or an override given on the command line (line 0: no position).
struct Where {
  std::string source;        // file name, or "--set key=value"
  std::uint32_t line = 0;    // from 1
  std::uint32_t column = 0;  // from 1, in characters as the parser counts them
};

class Diagnostics {
 public:
  // Adds one error; an exact repetition is dropped (a shared table is checked once per user). The
  // message may quote what was given at any length: see short_values.
  void add(const Where& where, std::string message);

  bool empty() const { return entries_.empty(); }

  // "file:line:column: message", in the order of the file; those without a position last.
  std::vector<std::string> sorted() const;

 private:
  struct Entry {
    Where where;
    std::string message;
  };
  std::vector<Entry> entries_;
  std::set<std::string> seen_;
};

// The outcome of a reader: a value, or the errors that explain why there is none.
template <class T>
struct Read {
  T value{};
  std::vector<std::string> errors;
  bool ok() const { return errors.empty(); }
};

std::string to_string(const Where& where);

// The candidate nearest to `name` (cc/nearest_name.h), or "" when none is near enough to be a
// plausible slip: more than a third of its length, but at least 2, changed.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "a, b or c" with each quoted.
std::string list_names(std::span<const std::string_view> names);

// The message, with every word and every quoted text of more than 80 characters cut to 80. Paths
// stay whole as long as the message has no more than 4096 characters, the most that is kept.
std::string short_values(std::string_view message);

// A file's text. Refuses directories, unreadable files and more than `max_bytes`; the message names
// the file and the reason.
Read<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

}  // namespace paceline::config
