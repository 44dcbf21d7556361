// Runs of a league on disk: read at the start, appended as they finish, so that nothing that was
// run is lost or run twice. A run is found by the hash of everything that determines it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/league/cell.h"
#include "control/league/plan/plan.h"

namespace paceline::tools {

// Of each cell of a plan, a hash of what determines its runs: this program, byte by byte, the
// scenario's text, what is laid over it, the files it names, a plug-in.
std::vector<std::uint64_t> cell_keys(const league::Plan& plan);

class LeagueStore {
 public:
  // Reads what is there; a file that is not there is an empty one. With `fresh` nothing is read,
  // and what is there is replaced.
  LeagueStore(std::string path, bool fresh);

  // Null when it has yet to be run.
  const league::Run* find(std::uint64_t key) const;
  // Appends a line. An error text when it cannot be written.
  std::string add(std::uint64_t key, const league::Run& run);

 private:
  std::string path_;
  std::map<std::uint64_t, league::Run> runs_;
  bool fresh_;         // until the first line
  bool torn_ = false;  // the last line of the file has no end
};

}  // namespace paceline::tools
