#include "tools/capture/service_capture.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/driver/clock/wall_clock.h"
#include "dataplane/port/capture/capture_ring_reader.h"
#include "dataplane/port/capture/port_capture.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "tools/capture/capture_files.h"
#include "tools/cli/cli.h"
#include "tools/service_link/control_request.h"
#include "tools/service_link/service_absence.h"

namespace paceline::tools {

namespace {

// If nothing came for this long, sleep: at 100 Gb/s the default ring holds 2.7 ms.
constexpr Picos kRingPause = picos_from_micros(200);
// Frames between two looks at other events.
constexpr int kFramesInARow = 1024;

enum class RingEnd : std::uint8_t { asked, service_gone, broken };

// The ring and page that the service has handed over.
struct HandedRing {
  ControlConnection connection;  // while it lives, so does the capture
  attach::SharedMemory ring;
  attach::SharedMemory page;
  CaptureRingReader reader;
};

std::string not_as_said(std::string_view what) {
  return fmt::format("the service handed over an invalid capture: {}", what);
}

int begin_capture(const ServiceCaptureOptions& options, HandedRing& out) {
  const std::string control = service::control_socket_beside(options.socket);
  int error = out.connection.open(control);
  ControlConnection::Answer answer;
  if (error == 0) {
    answer = out.connection.ask({{"op", "capture"},
                                 {"nic", options.nic},
                                 {"bytes", options.ring_bytes},
                                 {"snap", options.snap}});
    error = answer.code;
  }
  if (error == ETIMEDOUT) {
    fmt::print(stderr, "paceline: error: {}\n", service_absence(control, error, "", ""));
    return kExitFailed;
  }
  if (error != 0) {
    fmt::print(stderr,
               "paceline: error: no service answers at {} ({}). Those of this user are told by\n"
               "  paceline testbed status{}\n",
               control, std::strerror(error), options.how_else);
    return kExitFailed;
  }
  if (!answer.errors.empty()) return report_errors(answer.errors);
  const auto bytes_of = [&](const char* name) {
    const auto at = answer.body.find(name);
    return at != answer.body.end() && at->is_number_unsigned() ? at->get<std::size_t>() : 0;
  };
  std::string wrong;
  if (answer.descriptors.size() != 2) {
    wrong = not_as_said("it has no two descriptors");
  } else if (!out.ring.open(std::move(answer.descriptors[0]), bytes_of("bytes"), false) ||
             !out.page.open(std::move(answer.descriptors[1]),
                            std::max(bytes_of("page_bytes"), sizeof(CaptureReaderPage)), true)) {
    wrong = not_as_said(std::strerror(errno));
  } else if (wrong = out.reader.open(out.ring.bytes(),
                                     *reinterpret_cast<CaptureReaderPage*>(out.page.data()));
             !wrong.empty()) {
    wrong = not_as_said(wrong);
  }
  if (wrong.empty()) return kExitGood;
  fmt::print(stderr, "paceline: error: {}\n", wrong);
  return kExitFailed;
}

class RingToFile {
 public:
  RingToFile(HandedRing& handed, PortCapture& capture, const ServiceCaptureOptions& options)
      : handed_(handed),
        reader_(handed.reader),
        capture_(capture),
        most_(options.most_packets != 0 ? options.most_packets : ~std::uint64_t{0}) {}

  RingEnd run(Picos duration, WallClock& clock) {
    const Picos start = clock.now();
    RingEnd end = RingEnd::asked;
    while (!full() && !Interrupt::flag().load() && clock.now() - start < duration) {
      // Checked before the last look into the ring: what the ring then has is everything.
      const bool gone = handed_.connection.closed();
      const bool any = take(kFramesInARow);
      if (!reader_.error().empty()) return RingEnd::broken;
      if (gone && !any) return RingEnd::service_gone;
      if (!any) clock.wait(earlier(clock.now() + kRingPause, saturating_add(start, duration)));
    }
    // The file has all packets that crossed before the end.
    const std::uint64_t until = reader_.written();
    while (!full() && reader_.read() < until && take(1)) {
    }
    if (!reader_.error().empty()) end = RingEnd::broken;
    return end;
  }

 private:
  bool full() const { return capture_.full() || capture_.written() >= most_; }
  // False: the ring was empty.
  bool take(int most) {
    int taken = 0;
    CapturedFrame frame;
    while (taken < most && !full() && reader_.next(frame)) {
      capture_.frame(frame);
      ++taken;
    }
    return taken != 0;
  }

  HandedRing& handed_;
  CaptureRingReader& reader_;
  PortCapture& capture_;
  std::uint64_t most_;
};

}  // namespace

int capture_of_service(const ServiceCaptureOptions& options) {
  if (const auto errors = check_output(options.file); !errors.empty()) {
    return report_errors(errors);
  }
  const Interrupt interrupt;
  HandedRing handed;
  if (const int code = begin_capture(options, handed); code != kExitGood) return code;
  WholeFile file;
  if (const std::string wrong = file.open(options.file); !wrong.empty()) {
    return report_errors({wrong});
  }
  const CaptureRingReader& reader = handed.reader;
  const std::string description = "what the service at " + options.socket + " sends and receives";
  PortCaptureConfig config;
  config.application = "paceline " PACELINE_VERSION;
  config.name = options.nic;
  config.description = description;
  config.rate = reader.rate();
  config.epoch = Nanos{reader.epoch_unix_ns()};
  config.begin = reader.begin();
  config.snap = reader.snap() == kMostCaptureSnap ? 0 : reader.snap();
  config.most_bytes = options.most_bytes;
  PortCapture capture(file.out(), config);
  TscWallClock clock;
  if (!options.quiet) fmt::print(stderr, "capturing; Ctrl-C ends it\n");
  const Picos start = clock.now();
  const RingEnd end = RingToFile(handed, capture, options).run(options.duration, clock);
  const Picos span = clock.now() - start;
  const std::uint64_t missed = reader.missed();
  capture.finish(reader.begin() + span, missed);
  if (const std::string wrong = file.finish(); !wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n", wrong);
    return kExitFailed;
  }
  if (!options.quiet) {
    fmt::print("capture    {}: {} frames in {:.3f} s, {} missed\n", options.file, capture.written(),
               static_cast<double>(span.count) * 1e-12, missed);
  }
  if (missed != 0) {
    fmt::print(stderr,
               "paceline: {}: {} frames are missing: they came faster than they could be written. "
               "--snap {} keeps the headers alone, --ring makes room for more\n",
               options.file, missed, 2 * kLeastCaptureSnap);
  }
  if (end == RingEnd::broken) {
    fmt::print(stderr, "paceline: error: {}: the capture ends here\n", reader.error());
    return kExitFailed;
  }
  if (end == RingEnd::service_gone) {
    fmt::print(stderr, "paceline: error: the service has ended, and the capture with it\n");
    return kExitFailed;
  }
  return kExitGood;
}

}  // namespace paceline::tools
