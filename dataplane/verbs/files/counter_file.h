// Files of sysfs that count: `counters` and `hw_counters` of a port. Their place is taken by memory
// with the number as it is when it is read from its beginning, also by programs that keep the file
// open. A FILE that is rewound keeps the number that it was opened with.
#pragma once

#include <sys/types.h>

#include "dataplane/verbs/files/redirect.h"

namespace paceline::files {

class CounterFile {
 public:
  // `file`, just opened, which the program must not see if it is a counter of the tree: returns the
  // descriptor for it; -1 with errno: EIO where the service is gone, ENODEV where the NIC is.
  static int in_place_of(int file, const Path& path, int flags);
  // Whether this process has opened one by that number; it may be another file's by now.
  static bool may_be(int file);
  // Before it is read from `at`; -1: from where it stands. 0 or an errno; nothing happens to other
  // files, and in the middle of one.
  static int refresh(int file, off_t at);
};

}  // namespace paceline::files
