// `paceline capture`: what a port receives, as a file.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "dataplane/config/quantity.h"
#include "dataplane/driver/wall_clock.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port_capture.h"
#include "tools/capture_files.h"
#include "tools/cli.h"
#include "tools/opened_ports.h"

namespace paceline::tools {

namespace {

struct CaptureOptions {
  std::string file;
  std::string testbed;
  std::string port;
  std::string limit = "256MB";
  std::string duration;
  std::uint64_t packets = 0;
  bool quiet = false;
};

// Nothing came for this long: the thread need not look again at once.
constexpr Picos kIdle = picos_from_micros(50);

std::vector<std::string> read_capture_limits(const CaptureOptions& options,
                                             PortCaptureConfig& config, Picos& duration) {
  std::vector<std::string> errors;
  const auto bytes = config::parse_bytes(options.limit);
  if (!bytes.ok()) {
    errors.push_back("--limit " + options.limit + ": " + bytes.error);
  } else if (bytes.value < 1000) {
    errors.push_back("--limit " + options.limit + ": allowed is 1kB or more");
  }
  config.most_bytes = bytes.value;
  if (options.packets != 0) config.most_packets = options.packets;
  duration = kNever;
  if (!options.duration.empty()) {
    const auto time = config::parse_time(options.duration);
    if (!time.ok()) {
      errors.push_back("--duration " + options.duration + ": " + time.error);
    } else if (time.value.count <= 0) {
      errors.push_back("--duration " + options.duration + ": allowed is more than 0");
    }
    duration = time.value;
  }
  return errors;
}

// Until the limit, the end of `duration` or Ctrl-C. Returns when that was.
Picos take_frames(Port& port, PortCapture& capture, const PortCaptureConfig& config, Picos duration,
                  WallClock& clock) {
  const Picos begin = clock.now();
  std::array<Packet*, 64> burst;
  Picos now{0};
  while (!Interrupt::flag().load() && now < duration && !capture.full() &&
         capture.written() < config.most_packets) {
    const std::size_t n = port.rx(burst);
    now = clock.now() - begin;
    for (std::size_t i = 0; i < n; ++i) {
      capture.frame(now, CaptureDirection::inbound, *burst[i]);
      port.packets().free(burst[i]);
    }
    if (n == 0) clock.wait(clock.now() + kIdle);
  }
  return now;
}

int run(const CaptureOptions& options) {
  PortCaptureConfig config;
  Picos duration = kNever;
  if (const auto errors = read_capture_limits(options, config, duration); !errors.empty()) {
    return report_errors(errors);
  }
  if (const auto errors = check_output(options.file); !errors.empty()) {
    return report_errors(errors);
  }
  const PortOpening opening = open_port(options.testbed, options.port);
  if (!opening.errors.empty()) return report_errors(opening.errors);
  if (!options.quiet) {
    for (const std::string& line : opening.ports->report()) fmt::print(stderr, "{}\n", line);
  }
  errno = 0;
  const std::string beside = options.file + ".partial";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  if (!out) {
    return report_errors({fmt::format("{}: cannot be written: {}", beside, std::strerror(errno))});
  }
  const std::string description = "received by port " + options.port + " of " + options.testbed;
  config.application = "paceline " PACELINE_VERSION;
  config.name = options.port;
  config.description = description;
  config.rate = opening.port->info().link_rate;
  TscWallClock clock;
  config.epoch = since_1970();
  const Interrupt interrupt;
  PortCapture capture(out, config);
  if (!options.quiet) fmt::print(stderr, "capturing; Ctrl-C ends it\n");
  const Picos end = take_frames(*opening.port, capture, config, duration, clock);
  const std::uint64_t lost = opening.ports->lost(options.port);
  capture.finish(end, lost);
  out.close();
  std::error_code error;
  std::filesystem::rename(beside, options.file, error);
  if (!out || error) {
    fmt::print(stderr, "paceline: error: {}: writing failed: {}\n", options.file,
               error ? error.message() : "no room?");
    return kExitFailed;
  }
  if (!options.quiet) {
    fmt::print("capture    {}: {} of {} frames in {:.3f} s; the device dropped {}\n", options.file,
               capture.written(), capture.seen(), static_cast<double>(end.count) * 1e-12, lost);
  }
  return kExitGood;
}

}  // namespace

void add_capture_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CaptureOptions>();
  CLI::App* command =
      app.add_subcommand("capture", "write what a port receives into a pcapng file");
  command->add_option("-o,--out", options->file, "the file")->type_name("FILE.pcapng")->required();
  command->add_option("--testbed", options->testbed, "the ports of this machine (docs/ports.md)")
      ->type_name("FILE.toml")
      ->required();
  command->add_option("--port", options->port, "the name of the port in it")
      ->type_name("NAME")
      ->required();
  command->add_option("--duration", options->duration, "stop after this time")->type_name("TIME");
  command->add_option("--packets", options->packets, "stop after so many frames")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_option("--limit", options->limit, "stop before the file is larger (default: 256MB)")
      ->type_name("SIZE");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command->footer(
      "The port is opened by this command, which takes whatever it receives: it captures a link\n"
      "with nobody else on it, or a mirror of one (promiscuous = true in the testbed file). Links\n"
      "of an emulated fabric, both ways and with what was dropped on them marked, are captured by\n"
      "  paceline emulate SCENARIO --capture host0.pcapng\n"
      "Times are the moments at which a burst was taken from the device. What the device dropped\n"
      "is in the statistics at the file's end.\n"
      "Examples:\n"
      "  paceline capture --testbed configs/testbeds/af_packet.toml --port host0 -o in.pcapng\n"
      "  paceline capture --testbed t.toml --port host0 -o in.pcapng --packets 1000 && \\\n"
      "      tshark -r in.pcapng -Y infiniband\n"
      "Exit status: 0 good (Ctrl-C ends a capture well), 1 writing failed, 2 bad input.");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
