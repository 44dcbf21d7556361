#include "dataplane/driver/plugin_load.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>

#include "cc/plugin/plugin.h"
#include "dataplane/driver/tsc_clock.h"

namespace paceline {

namespace {

constexpr const char* kSymbol = "paceline_cc_plugin";

// Never twice from the same failure, and never empty.
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

}  // namespace

cc::Registered load_plugin(const std::string& path) {
  std::string error;
  const std::string real = real_path(path, error);
  if (!error.empty()) return {nullptr, error};
  // All symbols now: not in the middle of traffic. Its own: two plug-ins may use the same names.
  void* const handle = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, path + ": " + loader_error()};
  using Entry = const paceline_cc_algorithm* (*)(std::uint32_t);
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kSymbol));
  if (entry == nullptr) {
    dlclose(handle);
    return {nullptr, path + ": no plug-in, for it does not export " + kSymbol};
  }
  auto examined = cc::plugin::examine(entry(cc::plugin::kHostAbi));
  if (const auto* why = std::get_if<std::string>(&examined)) {
    error = path + ": " + *why;
    dlclose(handle);
    return {nullptr, error};
  }
  auto plugin = std::move(std::get<std::unique_ptr<cc::plugin::Plugin>>(examined));
  plugin->path = real;
  cc::Registered registered = cc::add_plugin(std::move(plugin));
  if (registered.info == nullptr) {
    registered.error = path + ": " + registered.error;
    dlclose(handle);
  }
  return registered;
}

config::ReaderOptions reader_options() {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  options.load_plugin = load_plugin;
  return options;
}

cc::plugin::Clock plugin_clock() { return {read_raw_clock, nullptr}; }

}  // namespace paceline
