#include "dataplane/driver/scenario/plugin_load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "cc/plugin/plugin.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/sha256.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/driver/scenario/plugin_watch.h"

namespace paceline {

namespace {

constexpr const char* kSymbol = "paceline_cc_plugin";
constexpr std::size_t kMostPluginBytes = std::size_t{64} << 20;
constexpr std::size_t kMostMemoryName = 200;  // the kernel takes 249

// The loader's last error. Never empty; to be called once per failure.
std::string loader_error() {
  const char* const text = dlerror();
  return text == nullptr ? "cannot be loaded" : text;
}

std::string real_path(const std::string& path, std::string& error) {
  const std::unique_ptr<char, decltype(&std::free)> found(realpath(path.c_str(), nullptr),
                                                          &std::free);
  if (found == nullptr) {
    error = path + ": " + std::generic_category().message(errno);
    return {};
  }
  return found.get();
}

std::uint64_t read_raw_clock(const void*) {
  return static_cast<std::uint64_t>(raw_monotonic_time().count);
}

// The plug-in of that name or content that is loaded already, if there is one.
std::optional<cc::Registered> loaded_already(const std::string& real, const std::string& sha256) {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const cc::plugin::Plugin* const plugin = cc::plugin_of(info.id);
    if (plugin == nullptr) continue;
    if (plugin->sha256 == sha256) return cc::Registered{&info, {}};
    if (plugin->path == real) {
      std::string why = real;
      why += ": has changed since it was loaded (sha256 ";
      why += plugin->sha256;
      why += ", now ";
      why += sha256;
      why +=
          "), and a plug-in stays as long as its process: give the new one a file and a name of "
          "its own";
      return cc::Registered{nullptr, std::move(why)};
    }
  }
  return std::nullopt;
}

// The shared object that the loader finds at `place`.
cc::Registered take_up(const std::string& place, const std::string& path, const std::string& real,
                       const std::string& sha256) {
  const PluginLoading loading(path);
  // NOW: symbols are not looked up in the middle of traffic. LOCAL: plug-ins may share names.
  void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, path + ": " + loader_error()};
  using Entry = const paceline_cc_algorithm* (*)(std::uint32_t);
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kSymbol));
  if (entry == nullptr) {
    dlclose(handle);
    return {nullptr, path + ": not a plug-in: it does not export " + kSymbol};
  }
  auto examined = cc::plugin::examine(entry(cc::plugin::kHostAbi));
  if (const auto* why = std::get_if<std::string>(&examined)) {
    std::string error = path + ": " + *why;
    dlclose(handle);
    return {nullptr, std::move(error)};
  }
  auto plugin = std::move(std::get<std::unique_ptr<cc::plugin::Plugin>>(examined));
  plugin->path = real;
  plugin->sha256 = sha256;
  cc::Registered registered = cc::add_plugin(std::move(plugin));
  if (registered.info == nullptr) {
    registered.error = path + ": " + registered.error;
    dlclose(handle);
  } else {
    name_in_crashes(reinterpret_cast<const void*>(entry), path);
  }
  return registered;
}

}  // namespace

cc::Registered load_plugin(const std::string& path) {
  std::string error;
  const std::string real = real_path(path, error);
  if (!error.empty()) return {nullptr, error};
  const config::Read<std::string> content = config::read_text_file(real, kMostPluginBytes);
  if (!content.ok()) return {nullptr, content.errors.front()};
  const std::string digest = sha256(content.value);
  if (auto known = loaded_already(real, digest)) return *known;
  const PluginTimeLimit limit;
  return take_up(real, path, real, digest);
}

cc::Registered load_plugin_content(const std::string& path, std::string_view content) {
  const std::string digest = sha256(content);
  if (auto known = loaded_already(path, digest)) return *known;
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const int file =
      memfd_create(name.substr(0, kMostMemoryName).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return {nullptr, path + ": " + std::generic_category().message(errno)};
  const std::string place = "/proc/self/fd/" + std::to_string(file);
  std::string_view rest = content;
  while (!rest.empty()) {
    const ssize_t n = write(file, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  cc::Registered out;
  if (!rest.empty() || fcntl(file, F_ADD_SEALS, kSeals) != 0) {
    out.error = path + ": no memory for a copy: " + std::generic_category().message(errno);
  } else {
    out = take_up(place, path, path, digest);
  }
  // The loader identifies objects by name first. While it keeps one of this name, no other file may
  // get the same name, so the descriptor stays open.
  if (dlopen(place.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr) close(file);
  return out;
}

config::ReaderOptions reader_options() {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  options.load_plugin = load_plugin;
  return options;
}

cc::plugin::Clock plugin_clock() { return {read_raw_clock, nullptr}; }

}  // namespace paceline
