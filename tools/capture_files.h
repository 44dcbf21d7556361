// `paceline emulate --capture LINK.pcapng`: one file per link, written while the run goes on beside
// its place and put there when the run is over, interrupted or not. What is in its place is always
// a whole file.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/driver/virtual_world.h"
#include "dataplane/port/link_capture.h"
#include "tools/link_names.h"
#include "tools/scenario_run.h"

namespace paceline::tools {

struct CaptureLimits {
  std::uint64_t bytes = 256'000'000;  // per file
  std::uint64_t packets = ~std::uint64_t{0};
};

class CaptureFiles {
 public:
  CaptureFiles() = default;
  CaptureFiles(const CaptureFiles&) = delete;
  CaptureFiles& operator=(const CaptureFiles&) = delete;
  // What was not finished leaves no trace.
  ~CaptureFiles();

  // Opens a file per path, whose stem names the link. All errors; on any, nothing is left behind.
  std::vector<std::string> open(const PreparedScenario& prepared,
                                const std::vector<std::string>& paths, const CaptureLimits& limits);
  std::vector<LinkTapping> taps() const;
  // The run is over. All errors.
  std::vector<std::string> finish(Picos end);
  // After finish(): a line per file for people; and what did not fit, if anything.
  std::string summary() const;
  std::string warnings() const;

 private:
  struct File {
    std::string path;
    std::string beside;
    std::uint32_t link = 0;
    std::ofstream out;
    std::unique_ptr<LinkCapture> capture;
  };
  void discard();

  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace paceline::tools
