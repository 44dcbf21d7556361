#include "dataplane/config/diagnostics.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

namespace paceline::config {

namespace {

// Optimal string alignment distance: a slip of the keyboard counts 1, a swap of neighbours too.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string to_string(const Where& where) {
  if (where.line == 0) return where.source;
  return fmt::format("{}:{}:{}", where.source, where.line, where.column);
}

void Diagnostics::add(const Where& where, std::string message) {
  if (!seen_.insert(to_string(where) + ": " + message).second) return;
  entries_.push_back({where, std::move(message)});
}

std::vector<std::string> Diagnostics::sorted() const {
  std::vector<const Entry*> order;
  for (const Entry& e : entries_) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    const bool a_last = a->where.line == 0;
    const bool b_last = b->where.line == 0;
    if (a_last != b_last) return b_last;
    if (a_last) return false;
    return std::pair(a->where.line, a->where.column) < std::pair(b->where.line, b->where.column);
  });
  std::vector<std::string> out;
  for (const Entry* e : order) out.push_back(to_string(e->where) + ": " + e->message);
  return out;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestName = 64;  // longer ones are no slip, and would cost their square
  if (name.empty() || name.size() > kLongestName) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t d = edit_distance(name, candidate);
    if (d < best_distance && d < candidate.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

std::string list_names(std::span<const std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += fmt::format("\"{}\"", names[i]);
  }
  return out;
}

Read<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  Read<std::string> out;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    out.errors.push_back(fmt::format("{}: cannot be read: it is a folder", path));
    return out;
  }
  errno = 0;
  // Without O_NONBLOCK, opening a pipe that nobody writes into would wait for ever; so it is empty.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) ::fcntl(fd, F_SETFL, 0);  // but where somebody writes, wait for what comes
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fd < 0 ? nullptr : ::fdopen(fd, "rb"),
                                                             std::fclose);
  if (!file) {
    out.errors.push_back(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    return out;
  }
  char block[16384];
  for (;;) {
    const std::size_t n = std::fread(block, 1, sizeof block, file.get());
    out.value.append(block, n);
    if (out.value.size() > max_bytes) {
      out.errors.push_back(
          fmt::format("{}: longer than {} bytes, the most that is read", path, max_bytes));
      return out;
    }
    if (n < sizeof block) break;
  }
  if (std::ferror(file.get()) != 0) {
    out.errors.push_back(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  return out;
}

}  // namespace paceline::config
