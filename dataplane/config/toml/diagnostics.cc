#include "dataplane/config/toml/diagnostics.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "cc/nearest_name.h"

namespace paceline::config {

namespace {

// At most `most` bytes of it, no character cut in two.
std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace

std::string to_string(const Where& where) {
  if (where.line == 0) return where.source;
  return fmt::format("{}:{}:{}", where.source, where.line, where.column);
}

std::string short_values(std::string_view message) {
  constexpr std::size_t kLongestValue = 80, kLongestMessage = 4096;
  if (message.size() <= kLongestValue) return std::string(message);
  std::string out;
  bool quoted = false;
  while (!message.empty() && out.size() <= kLongestMessage) {
    const std::size_t length =
        std::min(message.find_first_of(quoted ? "\"" : "\" \n"), message.size());
    const std::string_view run = message.substr(0, length);
    const bool path = run.find('/') != std::string_view::npos;
    out += cut(run, path ? kLongestMessage : kLongestValue);
    message.remove_prefix(length);
    if (message.empty()) break;
    if (message.front() == '"') quoted = !quoted;
    out += message.front();
    message.remove_prefix(1);
  }
  return cut(out, kLongestMessage);
}

void Diagnostics::add(const Where& where, std::string message) {
  message = short_values(message);
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
  // Longer ones are not typing errors, and cost quadratic time.
  constexpr std::size_t kLongestName = 64;
  if (name.empty() || name.size() > kLongestName) return {};
  return cc::nearest_name(name, candidates, std::max<std::size_t>(2, name.size() / 3));
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
  // Without O_NONBLOCK, opening a pipe without a writer would wait for ever; with it, the pipe is
  // empty.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) ::fcntl(fd, F_SETFL, 0);  // if there is a writer, wait for its text
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
