// Files of records: read line by line, however long they are, and appended to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace paceline::tools {

// Calls take(number from 1, text, whether it has an end) for every line until it returns false.
// Returns an error if the file cannot be read; a missing file, or one that is not a regular file,
// has no lines.
std::string read_lines(const std::string& path,
                       const std::function<bool(std::size_t, std::string_view, bool)>& take);

enum class RecordSharing : std::uint8_t {
  shared,  // others may append to it, too
  sole,    // refused while another process has it open; a last line without an end is removed
};

// Appends whole lines, each by one write. Appended lines stay, whatever happens to the process.
class RecordFile {
 public:
  RecordFile() = default;
  ~RecordFile() { close(); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Creates the file if it does not exist, but not before the first line is appended (`sole`: at
  // once). `fresh`: its content is removed with the first line. Returns an error, or an empty text.
  std::string open(std::string path, bool fresh, RecordSharing sharing);
  bool is_open() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  // `line` with its end. An error text when it cannot be written.
  std::string append(const std::string& line);
  void close();

 private:
  std::string open_now(int more_flags);

  std::string path_;
  int file_ = -1;
  bool fresh_ = false;
};

}  // namespace paceline::tools
