#include "tools/task/record_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace paceline::tools {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

std::string file_problem(const std::string& path, const char* what, int error) {
  return path + ": " + what + ": " + std::strerror(error);
}

// The byte behind the last line end.
off_t end_of_whole_lines(int file, off_t size) {
  std::array<char, 4096> piece{};
  while (size > 0) {
    const auto wanted = static_cast<std::size_t>(
        size < static_cast<off_t>(piece.size()) ? size : static_cast<off_t>(piece.size()));
    const off_t begin = size - static_cast<off_t>(wanted);
    if (::pread(file, piece.data(), wanted, begin) != static_cast<ssize_t>(wanted)) return size;
    for (std::size_t i = wanted; i != 0; --i) {
      if (piece[i - 1] == '\n') return begin + static_cast<off_t>(i);
    }
    size = begin;
  }
  return 0;
}

}  // namespace

std::string read_lines(const std::string& path,
                       const std::function<bool(std::size_t, std::string_view, bool)>& take) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? "" : file_problem(path, "cannot be read", errno);
  struct stat what {};
  if (::fstat(file, &what) != 0 || !S_ISREG(what.st_mode)) {  // a device may never end
    ::close(file);
    return {};
  }
  std::string text;
  std::size_t searched = 0;  // bytes of `text` without an end of line
  std::size_t number = 0;
  std::string error;
  bool go_on = true;
  while (go_on) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const ssize_t got = ::read(file, text.data() + before, kPiece);
    if (got < 0) error = file_problem(path, "cannot be read", errno);
    text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got <= 0) break;
    std::size_t begin = 0;
    std::size_t end = text.find('\n', searched);
    while (end != std::string::npos && go_on) {
      go_on = take(++number, std::string_view(text).substr(begin, end - begin), true);
      begin = end + 1;
      end = text.find('\n', begin);
    }
    text.erase(0, begin);
    searched = text.size();
  }
  ::close(file);
  if (go_on && error.empty() && !text.empty()) take(number + 1, text, false);
  return error;
}

std::string RecordFile::open(std::string path, bool fresh, RecordSharing sharing) {
  close();
  path_ = std::move(path);
  fresh_ = fresh;
  if (sharing == RecordSharing::shared) return {};
  if (std::string error = open_now(0); !error.empty()) return error;
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return path_ + ": another process is executing this share";
  }
  const off_t size = ::lseek(file_, 0, SEEK_END);
  const off_t whole = fresh ? 0 : end_of_whole_lines(file_, size);
  if (whole != size && ::ftruncate(file_, whole) != 0) {
    return file_problem(path_, "cannot be cut to its whole lines", errno);
  }
  return {};
}

std::string RecordFile::open_now(int more_flags) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | more_flags, 0666);
  return file_ >= 0 ? "" : file_problem(path_, "cannot be written", errno);
}

std::string RecordFile::append(const std::string& line) {
  if (file_ < 0) {
    if (std::string error = open_now(fresh_ ? O_TRUNC : 0); !error.empty()) return error;
    // Another process may have died in the middle of a line.
    const off_t size = ::lseek(file_, 0, SEEK_END);
    if (size > 0 && end_of_whole_lines(file_, size) != size && ::write(file_, "\n", 1) != 1) {
      return file_problem(path_, "cannot be written", errno);
    }
  }
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  return file_problem(path_, "cannot be written", written < 0 ? errno : ENOSPC);
}

void RecordFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  path_.clear();
}

}  // namespace paceline::tools
