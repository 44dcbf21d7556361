// `paceline replay`: sends a capture into a port.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "dataplane/driver/ports/frame_replay.h"
#include "tools/cli/cli.h"
#include "tools/ports/opened_ports.h"

namespace paceline::tools {

namespace {

struct ReplayOptions {
  std::string file;
  std::string testbed;
  std::string port;
  std::string speed = "original";
  std::uint64_t loop = 1;
  std::uint64_t count = 0;
  bool quiet = false;
};

// 0: as fast as the port takes them. Negative: not a speed.
double read_speed(const std::string& text) {
  if (text == "original") return 1;
  if (text == "max") return 0;
  const std::string number = !text.empty() && text[0] == 'x' ? text.substr(1) : text;
  try {
    std::size_t used = 0;
    const double value = std::stod(number, &used);
    return used == number.size() && value >= 1e-3 && value <= 1e6 ? value : -1;
  } catch (const std::exception&) {
    return -1;
  }
}

// The whole file once, before anything is sent: no frame leaves of a file that is broken.
std::string check_file(const std::string& path, std::uint64_t& frames) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return path + ": cannot be opened: it is a folder";
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return fmt::format("{}: cannot be opened: {}", path, std::strerror(errno));
  CaptureReader reader(in);
  FrameRead frame;
  while (reader.next(frame)) {
  }
  frames = reader.frames();
  if (!reader.error().empty()) return path + ": " + reader.error();
  return frames == 0 ? path + ": no frames in it" : "";
}

std::string replay_text(const FrameReplayReport& report, const ReplayOptions& options) {
  const double seconds = std::max(static_cast<double>(report.elapsed.count) * 1e-12, 1e-9);
  std::string text = fmt::format(
      "replayed   {} frames, {} bytes, in {:.3f} s ({:.0f} frames/s, {:.3f} Gb/s) into {}\n",
      report.sent, report.bytes, seconds, static_cast<double>(report.sent) / seconds,
      8e-9 * static_cast<double>(report.bytes) / seconds, options.port);
  if (!report.late_ns.empty()) {
    const auto micros = [&report](double q) {
      return static_cast<double>(report.late_ns.quantile(q)) / 1e3;
    };
    text += fmt::format("late       p50 {:.1f} us, p99 {:.1f}, most {:.1f}\n", micros(0.5),
                        micros(0.99), micros(1));
  }
  if (report.out_of_order != 0) {
    text += fmt::format("order      {} frames were captured before the one in front of them\n",
                        report.out_of_order);
  }
  if (report.received != 0) {
    text += fmt::format("received   {} frames meanwhile, let go\n", report.received);
  }
  return text;
}

int run(const ReplayOptions& options) {
  const double speed = read_speed(options.speed);
  if (speed < 0) {
    return report_errors({"--speed " + options.speed +
                          ": allowed are original, max, and a factor from 0.001 to 1000000"});
  }
  std::uint64_t frames = 0;
  if (const std::string error = check_file(options.file, frames); !error.empty()) {
    return report_errors({error});
  }
  const PortOpening opening = open_port(options.testbed, options.port);
  if (!opening.errors.empty()) return report_errors(opening.errors);
  if (!options.quiet) {
    for (const std::string& line : opening.ports->report()) fmt::print(stderr, "{}\n", line);
  }
  TscWallClock clock;
  const Interrupt interrupt;
  FrameReplayOptions settings;
  settings.speed = speed;
  settings.stop = &Interrupt::flag();
  if (options.count != 0) settings.frames = options.count;
  FrameReplay replay(*opening.port, clock, settings);
  bool good = true;
  for (std::uint64_t i = 0; good && (options.loop == 0 || i < options.loop); ++i) {
    if (replay.done()) break;
    std::ifstream in(options.file, std::ios::binary);
    CaptureReader reader(in);
    good = replay.run(reader);
  }
  if (!options.quiet) fmt::print("{}", replay_text(replay.report(), options));
  if (!replay.error().empty()) {
    fmt::print(stderr, "paceline: error: {}: {}\n", options.file, replay.error());
    return kExitFailed;
  }
  return good ? kExitGood : kExitInterrupted;
}

}  // namespace

void add_replay_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<ReplayOptions>();
  const config::Command command =
      app.subcommand("replay", "send the frames of a capture into a port, as they are");
  command.option("FILE", options->file, "pcap or pcapng, Ethernet, frames not cut short")
      .required();
  take_shipped_files(
      command.option("--testbed", options->testbed, "the ports of this machine (docs/ports.md)")
          .type("FILE.toml")
          .required());
  command.option("--port", options->port, "the name of the port in it").type("NAME").required();
  command
      .option("--speed", options->speed,
              "original (default): with the file's gaps between frames; max: as fast as the "
              "port takes them; x2, x0.5: that many times as fast")
      .type("SPEED");
  command
      .option("--loop", options->loop, "send the file so many times; 0: until Ctrl-C (default: 1)")
      .type("N");
  command.option("--count", options->count, "stop after so many frames").type("N").positive();
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Frames leave byte for byte: addresses, checksums, PSNs and the ICRC are those of the file\n"
      "(frames below 60 bytes are padded). Frames that arrive meanwhile are discarded. The whole\n"
      "file is read first; an error in it is reported with its byte.\n"
      "Examples:\n"
      "  paceline replay trace.pcapng --testbed configs/testbeds/af_packet.toml --port host0\n"
      "  paceline replay trace.pcap --testbed t.toml --port host0 --speed x10 --loop 100\n"
      "  paceline replay storm.pcap --testbed t.toml --port host0 --speed max --count 1000000\n"
      "Exit status: 0 good, 1 the port stopped taking frames, 2 bad input, 130 interrupted.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
