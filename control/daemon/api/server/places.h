// Limits for connections and event listeners. A read-only caller gets a share of the places, and
// all read-only callers together leave some free, so that they cannot keep an operator out.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

struct PlaceLimits {
  std::size_t most = 0;
  std::size_t most_each = 0;  // of one caller who may only read
  std::size_t kept = 0;       // reserved: read-only callers do not get them
};

class Places {
 public:
  Places(std::string what, PlaceLimits limits) : what_(std::move(what)), limits_(limits) {}

  // Takes a place. Returns an error if there is none, or an empty text.
  std::string take(const Caller& caller);
  void leave(const Caller& caller);
  std::size_t taken() const { return taken_; }

 private:
  std::string what_;
  PlaceLimits limits_;
  std::size_t taken_ = 0;
  std::size_t taken_by_readers_ = 0;
  std::map<std::string, std::size_t> taken_by_;  // of readers, by their name
};

// One place for as long as it lives.
class Place {
 public:
  Place(Places& places, Caller caller) : places_(places), caller_(std::move(caller)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (held_) places_.leave(caller_);
  }
  // Call it once; returns the result of Places::take().
  std::string take() {
    std::string wrong = places_.take(caller_);
    held_ = wrong.empty();
    return wrong;
  }

 private:
  Places& places_;
  Caller caller_;
  bool held_ = false;
};

}  // namespace paceline::daemon
