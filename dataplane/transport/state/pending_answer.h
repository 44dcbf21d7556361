// A responder's answer that waits until all earlier READ responses have been sent. There is at most
// one: a later answer replaces it and acknowledges everything that it did (coalescing, vol. 1,
// 9.7.5.1.2).
#pragma once

#include <utility>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/wire/headers/aeth.h"

namespace paceline::transport {

class PendingAnswer {
 public:
  struct Answer {
    Psn psn;
    wire::Aeth aeth;
    bool becn;  // echoes a congestion mark
  };

  bool due() const { return due_; }
  // Keeps the mark of the answer that it replaces, or that was dropped before it.
  void put(Psn psn, wire::Aeth aeth, bool becn) {
    due_ = true;
    psn_ = psn;
    aeth_ = aeth;
    becn_ = becn_ || becn;
  }
  // Requires due().
  Answer take() {
    due_ = false;
    return {psn_, aeth_, std::exchange(becn_, false)};
  }
  // Another answer says everything that this one would have said, except the mark.
  void drop() { due_ = false; }

 private:
  bool due_ = false;
  bool becn_ = false;
  Psn psn_;
  wire::Aeth aeth_{};
};

}  // namespace paceline::transport
