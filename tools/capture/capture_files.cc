#include "tools/capture/capture_files.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "dataplane/config/fresh_file.h"
#include "dataplane/config/toml/quantity.h"
#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;
constexpr const char* kExtension = ".pcapng";

struct CaptureLimits {
  std::uint64_t bytes = 256'000'000;  // per file
  std::uint64_t packets = ~std::uint64_t{0};
};

// Returns an error, or an empty text.
std::string read_limits(const LinkCaptureOptions& options, CaptureLimits& limits) {
  if (options.packets != 0) limits.packets = options.packets;
  if (options.limit.empty()) return {};
  const auto bytes = config::parse_bytes(options.limit);
  if (!bytes.ok()) return "--capture-limit " + options.limit + ": " + bytes.error;
  if (bytes.value < 1000) return "--capture-limit " + options.limit + ": allowed is 1kB or more";
  limits.bytes = bytes.value;
  return {};
}

}  // namespace

Nanos since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

WholeFile::~WholeFile() {
  if (beside_.empty()) return;
  out_.close();
  std::error_code ignored;
  fs::remove(beside_, ignored);
}

std::string WholeFile::open(const std::string& path) {
  const std::string beside = path + ".partial";
  errno = config::make_fresh_file(beside);
  if (errno == 0) out_.open(beside, std::ios::binary | std::ios::trunc);
  if (!out_.is_open())
    return fmt::format("{}: cannot be written: {}", beside, std::strerror(errno));
  path_ = path;
  beside_ = beside;
  return {};
}

std::string WholeFile::finish() {
  errno = 0;
  out_.close();
  if (!out_) return fmt::format("{}: writing failed: {}", path_, std::strerror(errno));
  std::error_code error;
  fs::rename(beside_, path_, error);
  if (error) return fmt::format("{}: cannot be replaced: {}", path_, error.message());
  beside_.clear();
  return {};
}

void LinkCaptureOptions::add_to(const config::Command& command) {
  const config::Option capture =
      command
          .option("--capture", paths,
                  "write what crosses a link, both ways, with real payload and ICRC; the "
                  "file's name is the link's: host0, leaf0-spine1, ... (repeatable)")
          .type("LINK.pcapng")
          .one_by_one();
  command
      .option("--capture-limit", limit,
              "stop writing a capture before it exceeds this size (default: 256MB)")
      .type("SIZE")
      .needs(capture);
  command
      .option("--capture-packets", packets,
              "stop writing a capture after this many packets (default: no limit)")
      .type("N")
      .positive()
      .needs(capture);
}

CaptureFiles::~CaptureFiles() { discard(); }

void CaptureFiles::discard() {
  for (const auto& file : files_) {
    file->capture.reset();
    file->out.close();
    std::error_code ignored;
    fs::remove(file->beside, ignored);
  }
  files_.clear();
}

std::vector<std::string> CaptureFiles::open(const config::Scenario& scenario,
                                            const workload::NodeNumbers& numbers,
                                            const LinkCaptureOptions& options, Nanos epoch) {
  CaptureLimits limits;
  if (std::string wrong = read_limits(options, limits); !wrong.empty()) return {std::move(wrong)};
  std::vector<std::string> errors;
  if (options.paths.empty()) return errors;
  const std::vector<NamedLink> links = link_names(scenario, numbers);
  for (const std::string& path : options.paths) {
    if (fs::path(path).extension() != kExtension) {
      errors.push_back(fmt::format("--capture {}: expected LINK{}, such as host0{}", path,
                                   kExtension, kExtension));
      continue;
    }
    const LinkByName found = link_by_name(scenario, links, fs::path(path).stem().string());
    if (!found.error.empty()) {
      errors.push_back(fmt::format("--capture {}: {}", path, found.error));
      continue;
    }
    const auto same = [&found](const auto& file) { return file->link == found.index; };
    if (std::any_of(files_.begin(), files_.end(), same)) {
      errors.push_back(
          fmt::format("--capture {}: link {} is captured already", path, links[found.index].name));
      continue;
    }
    if (auto wrong = check_output(path); !wrong.empty()) {
      errors.insert(errors.end(), wrong.begin(), wrong.end());
      continue;
    }
    files_.push_back(std::make_unique<File>());
    File& file = *files_.back();
    file.path = path;
    file.beside = path + ".partial";
    file.link = found.index;
  }
  const WorldPlan world = plan_world(scenario);
  for (std::size_t i = 0; i < files_.size() && errors.empty() && world.error.empty(); ++i) {
    File& file = *files_[i];
    const NamedLink& link = links[file.link];
    errno = config::make_fresh_file(file.beside);
    if (errno == 0) file.out.open(file.beside, std::ios::binary | std::ios::trunc);
    if (!file.out.is_open()) {
      errors.push_back(fmt::format("{}: cannot be written: {}", file.beside, std::strerror(errno)));
      break;
    }
    const std::string description =
        fmt::format("emulated link, outbound from {} to {}", link.first, link.second);
    LinkCaptureConfig config;
    config.application = "paceline " PACELINE_VERSION;
    config.name = link.name;
    config.description = description;
    config.rate = world.fabric.links[file.link].rate;
    config.epoch = epoch;
    config.most_bytes = limits.bytes;
    config.most_packets = limits.packets;
    file.capture = std::make_unique<LinkCapture>(file.out, config);
  }
  if (!errors.empty()) discard();
  return errors;
}

std::vector<LinkTapping> CaptureFiles::taps() const {
  std::vector<LinkTapping> taps;
  for (const auto& file : files_) {
    if (file->capture != nullptr) taps.push_back({file->link, file->capture.get()});
  }
  return taps;
}

std::vector<std::string> CaptureFiles::finish(Picos end) {
  std::vector<std::string> errors;
  for (const auto& file : files_) {
    file->capture->finish(end);
    errno = 0;
    file->out.close();
    if (!file->out) {
      errors.push_back(fmt::format("{}: writing failed: {}", file->path, std::strerror(errno)));
      continue;
    }
    std::error_code error;
    fs::rename(file->beside, file->path, error);
    if (error) {
      errors.push_back(fmt::format("{}: cannot be replaced: {}", file->path, error.message()));
    }
  }
  return errors;
}

std::string CaptureFiles::summary() const {
  std::string text;
  for (const auto& file : files_) {
    text += fmt::format("capture    {}: {} packets, {} of them not delivered\n", file->path,
                        file->capture->seen(), file->capture->dropped());
  }
  return text;
}

std::string CaptureFiles::warnings() const {
  std::string text;
  for (const auto& file : files_) {
    const LinkCapture& capture = *file->capture;
    if (capture.full_at() == kNever) continue;
    text += fmt::format(
        "paceline: {}: limit reached at {:.3f} us of the run: the first {} of {} packets are "
        "in it\n",
        file->path, static_cast<double>(capture.full_at().count) / 1e6, capture.written(),
        capture.seen());
  }
  return text;
}

}  // namespace paceline::tools
