// What the tuner keeps in the store: its mode, its state and its journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/store/store.h"
#include "control/tuner/online/tuner.h"

namespace paceline::daemon {

class TunerRecords {
 public:
  // All arguments outlive it. The store may be opened later.
  TunerRecords(Store& store, EventHub& hub, const Clock& clock)
      : store_(store), hub_(hub), clock_(clock) {}

  // The mode that a client has set, while the configuration says `configured`; else nothing.
  std::optional<tuner::online::Mode> mode(tuner::online::Mode configured) const;
  // Returns an error, or an empty text.
  std::string keep_mode(std::string_view mode, tuner::online::Mode configured,
                        const std::string& who, const std::string& why);
  void forget_mode();

  // Drops the oldest entries of a long journal.
  void prune();
  // Appends to the journal, logs the entry, and tells the listeners.
  void write(Json entry, std::string_view event);
  void write(const tuner::online::JournalEntry& entry);
  // Entries after number `after`, at most `most`.
  Json listed(std::int64_t after, std::size_t most) const;
  const Json& advised() const { return advised_; }  // the last entry that says what would be done
  const std::string& workload() const { return workload_; }  // in words

  // The state that was saved with this algorithm.
  std::optional<Json> state(std::string_view algorithm) const;
  // Continues with what the journal had said when `state` was saved.
  void adopt(const Json& state);
  void save(Json state);
  // Something has changed since save().
  bool unsaved() const { return unsaved_; }
  void touch() { unsaved_ = true; }

 private:
  Store& store_;
  EventHub& hub_;
  const Clock& clock_;
  Json advised_;
  std::string workload_;
  bool unsaved_ = false;
};

}  // namespace paceline::daemon
