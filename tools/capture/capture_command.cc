// `paceline capture`: what a port receives, or what crosses a NIC of a service, as a file.

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/clock/wall_clock.h"
#include "dataplane/port/capture/port_capture.h"
#include "dataplane/port/packet_pool.h"
#include "tools/capture/capture_files.h"
#include "tools/capture/service_capture.h"
#include "tools/cli/cli.h"
#include "tools/ports/opened_ports.h"
#include "tools/service_link/runtime_folder.h"

namespace paceline::tools {

namespace {

struct CaptureOptions {
  std::string file;
  std::string testbed;
  std::string port;
  std::string limit = "256MB";
  std::string duration;
  std::string name = kDefaultTestbed;
  std::string socket;
  std::string nic;
  std::string ring;
  std::uint64_t packets = 0;
  std::uint32_t snap = 0;
  bool quiet = false;
};

// If nothing came for this long, the thread need not look again at once.
constexpr Picos kIdle = picos_from_micros(50);

// Errors of all options.
std::vector<std::string> read_capture_limits(const CaptureOptions& options,
                                             PortCaptureConfig& config,
                                             ServiceCaptureOptions& service) {
  std::vector<std::string> errors;
  const auto bytes = config::parse_bytes(options.limit);
  if (!bytes.ok()) {
    errors.push_back("--limit " + options.limit + ": " + bytes.error);
  } else if (bytes.value < 1000) {
    errors.push_back("--limit " + options.limit + ": allowed is 1kB or more");
  }
  service.most_bytes = config.most_bytes = bytes.value;
  if (options.packets != 0) config.most_packets = options.packets;
  service.most_packets = options.packets;
  if (!options.duration.empty()) {
    const auto time = config::parse_time(options.duration);
    if (!time.ok()) {
      errors.push_back("--duration " + options.duration + ": " + time.error);
    } else if (time.value.count <= 0) {
      errors.push_back("--duration " + options.duration + ": allowed is more than 0");
    }
    service.duration = time.value;
  }
  if (!options.ring.empty()) {
    const auto ring = config::parse_bytes(options.ring);
    if (!ring.ok()) {
      errors.push_back("--ring " + options.ring + ": " + ring.error);
    } else if (ring.value < kLeastCaptureBytes || ring.value > kMostCaptureBytes) {
      errors.push_back(fmt::format("--ring {}: allowed is {} to {} bytes", options.ring,
                                   kLeastCaptureBytes, kMostCaptureBytes));
    }
    service.ring_bytes = ring.value;
  }
  if (options.snap != 0) service.snap = options.snap;
  return errors;
}

// A port that this command opens, or a NIC of a service.
std::vector<std::string> read_capture_place(const CaptureOptions& options,
                                            ServiceCaptureOptions& service) {
  const bool of_service = !options.nic.empty();
  const bool opens = !options.testbed.empty() || !options.port.empty();
  if (of_service == opens) {
    return {"expected a NIC of a service (--nic), or a port to open (--testbed and --port)"};
  }
  if (opens) {
    if (options.testbed.empty() || options.port.empty()) {
      return {"--testbed and --port belong together"};
    }
    if (!options.socket.empty() || options.name != kDefaultTestbed || options.snap != 0 ||
        !options.ring.empty()) {
      return {"--name, --socket, --snap and --ring are for a NIC of a service (--nic)"};
    }
    return {};
  }
  service.nic = options.nic;
  service.file = options.file;
  service.quiet = options.quiet;
  service.socket = options.socket.empty() ? service_socket(options.name) : options.socket;
  if (!options.socket.empty()) {
    service.how_else = " --socket " + options.socket;
  } else if (options.name != kDefaultTestbed) {
    service.how_else = " --name " + options.name;
  }
  return {};
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
  ServiceCaptureOptions service;
  std::vector<std::string> errors = read_capture_place(options, service);
  for (std::string& wrong : read_capture_limits(options, config, service)) {
    errors.push_back(std::move(wrong));
  }
  if (!errors.empty()) return report_errors(errors);
  if (!options.nic.empty()) return capture_of_service(service);
  const Picos duration = service.duration;
  if (const auto wrong = check_output(options.file); !wrong.empty()) return report_errors(wrong);
  const PortOpening opening = open_port(options.testbed, options.port);
  if (!opening.errors.empty()) return report_errors(opening.errors);
  if (!options.quiet) {
    for (const std::string& line : opening.ports->report()) fmt::print(stderr, "{}\n", line);
  }
  WholeFile file;
  if (const std::string wrong = file.open(options.file); !wrong.empty()) {
    return report_errors({wrong});
  }
  const std::string description = "received by port " + options.port + " of " + options.testbed;
  config.application = "paceline " PACELINE_VERSION;
  config.name = options.port;
  config.description = description;
  config.rate = opening.port->info().link_rate;
  TscWallClock clock;
  config.epoch = since_1970();
  const Interrupt interrupt;
  PortCapture capture(file.out(), config);
  if (!options.quiet) fmt::print(stderr, "capturing; Ctrl-C ends it\n");
  const Picos end = take_frames(*opening.port, capture, config, duration, clock);
  const std::uint64_t lost = opening.ports->lost(options.port);
  capture.finish(end, lost);
  if (const std::string wrong = file.finish(); !wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n", wrong);
    return kExitFailed;
  }
  if (!options.quiet) {
    fmt::print("capture    {}: {} of {} frames in {:.3f} s; the device dropped {}\n", options.file,
               capture.written(), capture.seen(), static_cast<double>(end.count) * 1e-12, lost);
  }
  return kExitGood;
}

}  // namespace

void add_capture_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<CaptureOptions>();
  const config::Command command =
      app.subcommand("capture", "write the frames of a NIC or a port into a pcapng file");
  command.option("-w,-o,--out", options->file, "the file").type("FILE.pcapng").required();
  take_shipped_files(
      command.option("--testbed", options->testbed, "the ports of this machine (docs/ports.md)")
          .type("FILE.toml"));
  command.option("--port", options->port, "the name of the port in it").type("NAME");
  command
      .option("--nic", options->nic,
              "instead of --testbed and --port: this NIC of a running service")
      .type("NIC");
  command.option("--name", options->name, "name of the testbed, if there are several")
      .shows_default();
  command.option("--socket", options->socket,
                 "socket of the service, instead of the one that follows from the name");
  command.option("--duration", options->duration, "stop after this time").type("TIME");
  command.option("--packets", options->packets, "stop after so many frames").type("N").positive();
  command.option("--limit", options->limit, "the most bytes of the file (default: 256MB)")
      .type("SIZE");
  command
      .option("--snap", options->snap,
              "with --nic: keep so many bytes of each frame (default: all)")
      .type("N")
      .within(kLeastCaptureSnap, kMostCaptureSnap);
  command
      .option("--ring", options->ring,
              "with --nic: buffer for frames on their way to the file (default: 32MiB)")
      .type("SIZE");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "With --nic it captures a NIC of a running service in both directions; frames dropped at "
      "the\n"
      "NIC have the reason in a comment. Programs run on: the capture delays and drops nothing.\n"
      "Frames that come faster than they can be written are counted as missed.\n"
      "With --testbed and --port this command opens a port itself and consumes what it receives:\n"
      "use it on a link without other receivers, or on a mirror port (promiscuous = true in the\n"
      "testbed file). A frame's time is when its burst was taken from the device. Frames that the\n"
      "device dropped are in the statistics at the file's end. Links of an emulated fabric are\n"
      "captured by\n"
      "  paceline emulate SCENARIO --capture host0.pcapng\n"
      "Examples:\n"
      "  paceline capture --nic h0 -w h0.pcapng --duration 10s\n"
      "  paceline capture --name b --nic h1 -w h1.pcapng --snap 128 --packets 100000\n"
      "  paceline capture --testbed t.toml --port host0 -w in.pcapng --packets 1000 && \\\n"
      "      tshark -r in.pcapng -Y infiniband\n"
      "Exit status: 0 good (also after Ctrl-C), 1 there is no service, it has ended, or writing\n"
      "failed, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
