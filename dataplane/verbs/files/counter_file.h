// Counter files of sysfs: `counters` and `hw_counters` of a port. Memory replaces them; it holds
// the number of the moment at which it is read from its beginning, also for programs that keep the
// file open. A FILE that is rewound keeps the number that it was opened with.
#pragma once

#include <sys/types.h>

#include "dataplane/verbs/files/redirect.h"

namespace paceline::files {

class CounterFile {
 public:
  // Replaces `file`, just opened, if it is a counter of the tree: returns the descriptor that the
  // program sees instead; -1 with errno: EIO if the service is gone, ENODEV if the NIC is.
  static int in_place_of(int file, const Path& path, int flags);
  // Whether this process has opened one by that number; it may be another file's by now.
  static bool may_be(int file);
  // Before it is read from `at`; -1: from where it stands. 0 or an errno; nothing happens to other
  // files, and in the middle of one.
  static int refresh(int file, off_t at);
};

}  // namespace paceline::files
