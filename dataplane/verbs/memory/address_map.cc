#include "dataplane/verbs/memory/address_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace paceline::verbs {

namespace {

// struct procmap_query of <linux/fs.h>, which headers before Linux 6.11 do not have.
struct MapQuery {
  std::uint64_t size = sizeof(MapQuery);
  std::uint64_t query_flags = 0;
  std::uint64_t query_addr = 0;
  std::uint64_t vma_start = 0;
  std::uint64_t vma_end = 0;
  std::uint64_t vma_flags = 0;
  std::uint64_t vma_page_size = 0;
  std::uint64_t vma_offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t dev_major = 0;
  std::uint32_t dev_minor = 0;
  std::uint32_t vma_name_size = 0;
  std::uint32_t build_id_size = 0;
  std::uint64_t vma_name_addr = 0;
  std::uint64_t build_id_addr = 0;
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr std::uint64_t kReadable = 0x01;
constexpr std::uint64_t kWritable = 0x02;
constexpr std::uint64_t kExecutable = 0x04;
constexpr std::uint64_t kShared = 0x08;
constexpr std::uint64_t kCoveringOrNext = 0x10;

// Takes a number off the front of the text, and the character behind it.
std::uint64_t take_number(std::string_view& text, int base) {
  std::uint64_t value = 0;
  const char* const end = std::from_chars(text.data(), text.data() + text.size(), value, base).ptr;
  text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  return value;
}

// "begin-end rwxp offset major:minor inode   name"
Mapping parse_line(std::string_view line) {
  Mapping out;
  out.begin = take_number(line, 16);
  out.end = take_number(line, 16);
  if (line.size() < 5) return {};
  out.readable = line[0] == 'r';
  out.writable = line[1] == 'w';
  out.executable = line[2] == 'x';
  out.shared = line[3] == 's';
  line.remove_prefix(5);
  out.offset = take_number(line, 16);
  const auto major = static_cast<unsigned>(take_number(line, 16));
  const auto minor = static_cast<unsigned>(take_number(line, 16));
  out.device = makedev(major, minor);
  out.inode = take_number(line, 10);
  return out;
}

// Calls line(text) for the lines of the file, until it says false.
template <class Line>
void each_line(int file, Line&& line) {
  std::array<char, 8192> buffer;  // a line has at most PATH_MAX and some characters
  std::size_t filled = 0;
  off_t at = 0;
  for (;;) {
    const ssize_t n = ::pread(file, buffer.data() + filled, buffer.size() - filled, at);
    if (n <= 0) return;
    at += n;
    filled += static_cast<std::size_t>(n);
    std::string_view text(buffer.data(), filled);
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      if (!line(text.substr(0, end))) return;
      text.remove_prefix(end + 1);
    }
    std::copy(text.begin(), text.end(), buffer.data());
    filled = text.size();
  }
}

}  // namespace

int Mapping::protection() const {
  return (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0) | (executable ? PROT_EXEC : 0);
}

bool AddressMap::open() {
  file_ = attach::Descriptor(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (!file_) return false;
  MapQuery query;
  query.query_flags = kCoveringOrNext;
  by_text_ = ::ioctl(file_.number(), kMapQuery, &query) != 0;
  return true;
}

bool AddressMap::at_or_after(std::uint64_t address, Mapping& out) const {
  return by_text_ ? search(address, out) : query(address, out);
}

bool AddressMap::query(std::uint64_t address, Mapping& out) const {
  MapQuery query;
  query.query_flags = kCoveringOrNext;
  query.query_addr = address;
  if (::ioctl(file_.number(), kMapQuery, &query) != 0) return false;
  out.begin = query.vma_start;
  out.end = query.vma_end;
  out.offset = query.vma_offset;
  out.inode = query.inode;
  out.device = makedev(query.dev_major, query.dev_minor);
  out.readable = (query.vma_flags & kReadable) != 0;
  out.writable = (query.vma_flags & kWritable) != 0;
  out.executable = (query.vma_flags & kExecutable) != 0;
  out.shared = (query.vma_flags & kShared) != 0;
  return true;
}

bool AddressMap::search(std::uint64_t address, Mapping& out) const {
  bool found = false;
  each_line(file_.number(), [&](std::string_view line) {
    out = parse_line(line);
    found = out.end > address;
    return !found;
  });
  return found;
}

std::size_t AddressMap::count() const {
  std::size_t lines = 0;
  each_line(file_.number(), [&](std::string_view) { return ++lines != 0; });
  return lines;
}

}  // namespace paceline::verbs
