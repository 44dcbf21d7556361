#include "dataplane/verbs/files/counter_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "dataplane/attach/text.h"
#include "dataplane/verbs/service_link/session.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::files {

namespace {

// The name of such memory says which counter it is. The kernel keeps the name, so no table is
// needed here that a child would have to inherit.
constexpr std::string_view kMark = "counter:";
constexpr std::string_view kShown = "/memfd:counter:";

// Descriptors below this number that once were a counter. Those above are not read afresh.
constexpr int kNumbers = 1024;
std::array<std::atomic<bool>, kNumbers>& opened() {
  static std::array<std::atomic<bool>, kNumbers> all{};
  return all;
}

// What the kernel calls a descriptor's file.
using Name = std::array<char, 512>;
std::string_view name_of(int file, Name& room) {
  std::array<char, 32> at{};
  std::snprintf(at.data(), at.size(), "/proc/self/fd/%d", file);
  const ssize_t size = ::readlink(at.data(), room.data(), room.size());
  return {room.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
}

// `counter`: "h0/ports/1/hw_counters/np_cnp_sent". 0 or an errno.
int ask(std::string_view counter, std::uint64_t& value) {
  const std::size_t end = counter.find('/');
  constexpr std::string_view kPort = "/ports/1/";
  const std::string_view rest = counter.substr(std::min(end, counter.size()));
  if (!rest.starts_with(kPort)) return ENOENT;
  const std::string_view name = rest.substr(kPort.size());
  verbs::Session session;
  if (const int error = session.connect(verbs::read_settings()); error != 0) return EIO;
  attach::OpenRequest request;
  attach::put_text(request.nic, counter.substr(0, end));
  attach::Message reply;
  const int error = session.ask(attach::Operation::port_counters, request, reply);
  if (error != 0) return error == ENODEV ? ENODEV : EIO;
  const auto bytes = reply.beyond<attach::CounterList>();
  const std::size_t count = std::min<std::size_t>(reply.as<attach::CounterList>().count,
                                                  bytes.size() / sizeof(attach::PortCounter));
  for (std::size_t i = 0; i < count; ++i) {
    attach::PortCounter one;
    std::memcpy(&one, bytes.data() + i * sizeof(one), sizeof(one));
    one.name.back() = '\0';
    if (name != one.name.data()) continue;
    value = one.value;
    return 0;
  }
  return ENOENT;
}

int write_value(int file, std::string_view counter) {
  std::uint64_t value = 0;
  if (const int error = ask(counter, value); error != 0) return error;
  const std::string text = std::to_string(value) + "\n";
  if (::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return EIO;
  return ::ftruncate(file, static_cast<off_t>(text.size())) == 0 ? 0 : errno;
}

}  // namespace

int CounterFile::in_place_of(int file, const Path& path, int flags) {
  const bool inside = path.is_redirected() || path.may_lead_in();
  if (file < 0 || !inside || (flags & (O_ACCMODE | O_PATH | O_DIRECTORY)) != O_RDONLY) return file;
  Name name;
  const std::string_view counter = in_device_folder(name_of(file, name));
  const bool counts =
      counter.find("/counters/") != counter.npos || counter.find("/hw_counters/") != counter.npos;
  if (!counts) return file;
  int error = ENOMEM;
  try {
    const std::string own = std::string(kMark) + std::string(counter);
    const int made = ::memfd_create(own.c_str(), (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    error = made < 0 ? errno : write_value(made, counter);
    ::close(file);
    if (error == 0) {
      if (made < kNumbers) opened()[static_cast<std::size_t>(made)].store(true);
      return made;
    }
    if (made >= 0) ::close(made);
  } catch (const std::bad_alloc&) {
  }
  errno = error;
  return -1;
}

bool CounterFile::may_be(int file) {
  return file >= 0 && file < kNumbers &&
         opened()[static_cast<std::size_t>(file)].load(std::memory_order_relaxed);
}

int CounterFile::refresh(int file, off_t at) {
  Name room;
  std::string_view name = name_of(file, room);
  if (!name.starts_with(kShown)) {
    opened()[static_cast<std::size_t>(file)].store(false);
    return 0;
  }
  if (at < 0) at = ::lseek(file, 0, SEEK_CUR);
  if (at != 0) return 0;
  name.remove_prefix(kShown.size());
  name = name.substr(0, name.find(" (deleted)"));
  try {
    return write_value(file, name);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

}  // namespace paceline::files
