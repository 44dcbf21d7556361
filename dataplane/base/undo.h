// Undoes a step of something that may still fail: by an early return, or by an exception.
#pragma once

#include <utility>

namespace paceline {

// Calls `undo` when it goes, unless keep() was called. `undo` must not throw.
template <class Function>
class Undo {
 public:
  explicit Undo(Function undo) : undo_(std::move(undo)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (!kept_) undo_();
  }
  void keep() { kept_ = true; }

 private:
  Function undo_;
  bool kept_ = false;
};

}  // namespace paceline
