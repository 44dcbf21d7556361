// A send queue that is drained (SQD): no request begins, and its owner may want to know when those
// that were begun are complete (vol. 1, 10.3.1.5).
#pragma once

#include <cstdint>

namespace paceline::transport {

class Drain {
 public:
  bool active() const { return stage_ != Stage::off; }
  bool waits() const { return stage_ == Stage::waits; }  // for requests that were begun
  bool done() const { return stage_ == Stage::done; }

  void begin(bool notify) {
    stage_ = Stage::waits;
    notify_ = notify;
  }
  // All begun requests are complete. True: the owner wants to be told. Requires waits().
  bool finish() {
    stage_ = Stage::done;
    return notify_;
  }
  void end() { stage_ = Stage::off; }

 private:
  enum class Stage : std::uint8_t { off, waits, done };
  Stage stage_ = Stage::off;
  bool notify_ = false;
};

}  // namespace paceline::transport
