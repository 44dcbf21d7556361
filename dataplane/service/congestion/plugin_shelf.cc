#include "dataplane/service/congestion/plugin_shelf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "cc/plugin/plugin.h"
#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/config/sha256.h"
#include "dataplane/driver/scenario/plugin_load.h"

namespace paceline::service {

namespace {

constexpr off_t kMostPlugin = off_t{16} << 20;

// The path without links, or empty with errno.
std::string without_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr),
                                                          &std::free);
  return found == nullptr ? std::string() : std::string(found.get());
}

// The user with whose rights this thread opens files (FileRights).
uid_t file_user() { return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))); }

// Why a user other than root and the one that started the service could have written the file;
// empty: no such user could.
std::string others_who_write(const struct stat& facts) {
  const uid_t starter = file_user();
  if (facts.st_uid != 0 && facts.st_uid != starter) {
    return fmt::format(
        "belongs to user {}{}: it must belong to root{}", facts.st_uid,
        facts.st_uid == ::geteuid()
            ? ", the service's own user (an attacker in the service could write it)"
            : "",
        starter == 0 ? "" : fmt::format(" or to user {}, who started the service", starter));
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("is writable by others (mode {:o}): only its owner may write it",
                       facts.st_mode & 07777U);
  }
  return {};
}

// The folder that allows `real`, and every one between the two; empty: all is well.
std::string folders_error(const std::string& real, const std::string& allowed) {
  for (std::size_t slash = real.rfind('/'); slash != 0 && slash >= allowed.size();
       slash = real.rfind('/', slash - 1)) {
    const std::string folder = real.substr(0, slash);
    struct stat facts {};
    if (::stat(folder.c_str(), &facts) != 0) return folder + ": " + std::strerror(errno);
    if (const std::string who = others_who_write(facts); !who.empty()) {
      return fmt::format("the folder {} {}", folder, who);
    }
  }
  return {};
}

std::string read_all(int file, std::size_t bytes, std::string& out) {
  out.resize(bytes);
  std::size_t at = 0;
  while (at < bytes) {
    const ssize_t n = ::read(file, out.data() + at, bytes - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::strerror(errno);
    if (n == 0) return "ended while it was read";
    at += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

PluginShelf::PluginShelf(std::vector<std::string> folders)
    : folders_(std::move(folders)), reader_(own_credentials()) {}

cc::Registered PluginShelf::load(const std::string& path, const std::string& sha256) const {
  const FileRights rights(reader_);
  const auto refused = [&](std::string_view why) {
    return cc::Registered{nullptr, fmt::format("{}: {}", path, why)};
  };
  if (path.empty() || path.front() != '/') return refused("a plug-in is named by an absolute path");
  if (folders_.empty()) {
    return refused("no plug-in may be loaded: service.plugin_folders names no folder");
  }
  const std::string real = without_links(path);
  if (real.empty()) return refused(std::strerror(errno));
  std::string allowed;
  for (const std::string& folder : folders_) {
    const std::string place = without_links(folder);
    if (!place.empty() && (place == "/" || real.starts_with(place + "/"))) allowed = place;
  }
  if (allowed.empty()) {
    return refused(fmt::format("not in a folder of service.plugin_folders ({}){}",
                               fmt::join(folders_, ", "),
                               real == path ? std::string() : ", but " + real));
  }
  // From here on the descriptor is judged, read and run, whichever file has the name by then.
  const attach::Descriptor file(
      ::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return refused(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return refused("not a file");
  if (const std::string who = others_who_write(facts); !who.empty()) return refused(who);
  if (const std::string wrong = folders_error(real, allowed); !wrong.empty()) return refused(wrong);
  if (facts.st_size > kMostPlugin) {
    return refused(fmt::format("{} bytes: allowed are {}", facts.st_size, kMostPlugin));
  }
  std::string content;
  const std::string wrong = read_all(file.get(), static_cast<std::size_t>(facts.st_size), content);
  if (!wrong.empty()) return refused(wrong);
  if (!sha256.empty()) {
    const std::string found = paceline::sha256(content);
    if (found != sha256) {
      return refused(fmt::format("its content has sha256 {}, asked for is {}", found, sha256));
    }
  }
  const std::size_t before = cc::algorithms().size();
  cc::Registered loaded = load_plugin_content(real, content);
  if (loaded.info != nullptr && cc::algorithms().size() != before) {
    spdlog::info("plug-in {} is loaded from {}, sha256 {}", loaded.info->name, real,
                 cc::plugin_of(loaded.info->id)->sha256);
  }
  return loaded;
}

}  // namespace paceline::service
