#include "tests/support/pinned_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace paceline::test {

namespace {

constexpr std::uint64_t kMostMarks = 16;

// Frames between two entries of a trail: kStep times a power of two.
std::uint64_t distance(std::uint64_t frames, std::uint64_t step) {
  while (frames / step > kMostMarks) step *= 2;
  return step;
}

}  // namespace

void FrameTrail::add(Picos at, std::initializer_list<std::uint64_t> facts,
                     std::span<const std::byte> header, std::span<const std::byte> payload) {
  hash_.add(static_cast<std::uint64_t>(at.count));
  for (const std::uint64_t fact : facts) hash_.add(fact);
  hash_.add(header);
  hash_.add(payload);
  if (++frames_ % kStep == 0) marks_.push_back({hash_.value(), at});
}

std::string FrameTrail::text() const {
  const std::uint64_t every = distance(frames_, kStep) / kStep;
  std::string out;
  for (std::uint64_t i = every; i <= marks_.size(); i += every) {
    out += fmt::format("{}{:04x}", out.empty() ? "" : ".", marks_[i - 1].hash & 0xFFFF);
  }
  return out;
}

std::string FrameTrail::first_difference(const std::string& pinned,
                                         std::uint64_t pinned_frames) const {
  const std::uint64_t every = distance(pinned_frames, kStep) / kStep;
  std::uint64_t i = every;
  Picos from{0};
  for (std::size_t at = 0; i <= marks_.size() && at + 4 <= pinned.size(); at += 5, i += every) {
    const Mark& mark = marks_[i - 1];
    if (fmt::format("{:04x}", mark.hash & 0xFFFF) != pinned.substr(at, 4)) {
      return fmt::format("first between frames {} and {} of {}, at {:.3f} to {:.3f} us",
                         (i - every) * kStep, i * kStep, frames_,
                         static_cast<double>(from.count) / 1e6,
                         static_cast<double>(mark.at.count) / 1e6);
    }
    from = mark.at;
  }
  return fmt::format("first after frame {} of {}, at {:.3f} us or later", (i - every) * kStep,
                     frames_, static_cast<double>(from.count) / 1e6);
}

std::string PinnedRun::line(std::string_view name) const {
  std::string out = fmt::format("{:<36} frames {:<6}", name, frames);
  for (const auto& [what, hash] : hashes) out += fmt::format(" {} {:016x}", what, hash);
  return out + " trail " + (trail.empty() ? "-" : trail);
}

std::map<std::string, PinnedRun> read_pinned(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  std::map<std::string, PinnedRun> runs;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    std::string what;
    PinnedRun run;
    words >> name;
    while (words >> what) {
      if (what == "frames") {
        words >> std::dec >> run.frames;
      } else if (what == "trail") {
        words >> run.trail;
      } else {
        words >> std::hex >> run.hashes[what];
      }
    }
    if (run.trail == "-") run.trail.clear();
    if (words.bad() || run.frames == 0 || run.hashes.empty() || runs.count(name) != 0) {
      throw std::runtime_error(fmt::format("{}:{}: not a line of a run: {}", path, number, line));
    }
    runs.emplace(name, std::move(run));
  }
  return runs;
}

void write_pinned(const std::string& path, const std::string& heading,
                  const std::map<std::string, PinnedRun>& runs) {
  std::ofstream out(path);
  out << heading;
  for (const auto& [name, run] : runs) out << run.line(name) << '\n';
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

PinnedRun pin(const FrameTrail& trail, std::map<std::string, std::uint64_t> others) {
  others["wire"] = trail.hash();
  return {trail.frames(), std::move(others), trail.text()};
}

std::string difference(const PinnedRun& pinned, const PinnedRun& run, const FrameTrail& trail) {
  std::string out;
  for (const auto& [what, hash] : run.hashes) {
    const auto found = pinned.hashes.find(what);
    if (found != pinned.hashes.end() && found->second == hash) continue;
    out += fmt::format("{}{}", out.empty() ? "other " : ", ", what);
  }
  if (pinned.hashes.size() > run.hashes.size()) out += "; a hash is missing";
  if (run.hashes != pinned.hashes || run.frames != pinned.frames) {
    const auto wire = pinned.hashes.find("wire");
    const bool same_frames = wire != pinned.hashes.end() && wire->second == trail.hash();
    out += same_frames ? "; all frames are the same"
                       : "; frames differ " + trail.first_difference(pinned.trail, pinned.frames);
  }
  return out;
}

}  // namespace paceline::test
