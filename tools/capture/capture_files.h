// `--capture LINK.pcapng` of `paceline emulate` and `join`: one file per link. It is written under
// another name while the run continues, and renamed when the run is over, interrupted or not. So a
// file with the final name is always complete.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/config/command/command.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "dataplane/port/capture/link_capture.h"
#include "tools/run/link_names.h"

namespace paceline::tools {

// Now, by the machine's clock: the epoch of a capture of what really happens.
Nanos since_1970();

// A file that is written beside its place and put there when it is whole.
class WholeFile {
 public:
  WholeFile() = default;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  // An unfinished file leaves no trace.
  ~WholeFile();

  // Returns an error, or an empty text.
  std::string open(const std::string& path);
  std::string finish();
  std::ofstream& out() { return out_; }

 private:
  std::string path_;
  std::string beside_;  // empty: there is no such file
  std::ofstream out_;
};

// The options of a command that captures links.
struct LinkCaptureOptions {
  std::vector<std::string> paths;
  std::string limit;
  std::uint64_t packets = 0;

  void add_to(const config::Command& command);
};

class CaptureFiles {
 public:
  CaptureFiles() = default;
  CaptureFiles(const CaptureFiles&) = delete;
  CaptureFiles& operator=(const CaptureFiles&) = delete;
  // Unfinished files leave no trace.
  ~CaptureFiles();

  // Opens a file per path, whose stem names the link of the fabric. `scenario` is prepared.
  // `epoch`: the real time of the run's time 0, since 1970, if it has one. Returns all errors;
  // after any, nothing is left behind.
  std::vector<std::string> open(const config::Scenario& scenario,
                                const workload::NodeNumbers& numbers,
                                const LinkCaptureOptions& options, Nanos epoch = Nanos{0});
  std::vector<LinkTapping> taps() const;
  // The run is over. Returns all errors.
  std::vector<std::string> finish(Picos end);
  // After finish(): a line per file for people, and how much did not fit, if anything.
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
