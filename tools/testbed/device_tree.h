// The device files that a kernel would have for the NIC instances of a service, as a tree of files
// for dataplane/verbs/files: /dev/infiniband/uverbsN (a link to /dev/null: a character device that
// may be read and written), /dev/infiniband/rdma_cm (which dataplane/verbs/files opens itself),
// /sys/class/infiniband/NAME and /sys/class/infiniband_verbs/uverbsN.
#pragma once

#include <string>
#include <vector>

#include "tools/testbed/nic_list.h"

namespace paceline::tools {

struct TreeFile {
  std::string path;  // below the tree's root, without a slash at its beginning
  std::string text;
  bool link = false;  // a symbolic link to `text`
};

// N is the place of an instance in the list, as in ibv_device::dev_name. Instances that are gone
// have no files. Counters are 0 in the tree: dataplane/verbs/files asks for them on each read.
std::vector<TreeFile> device_tree(const NicListing& listing);

// Writes the tree into a folder below `runtime`. The folder's name depends on the service's socket
// and on the content, so programs of one service share it. `folder` is empty where `error` is not.
struct WrittenTree {
  std::string folder;
  std::string error;
};
WrittenTree write_device_tree(const std::string& runtime, const std::string& socket,
                              const std::vector<TreeFile>& files);

// Removes all trees of a service that has ended.
void remove_device_trees(const std::string& runtime, const std::string& socket);
// Also removes the trees of services that do not answer any more: they were killed, or never taken
// down.
void remove_left_trees(const std::string& runtime);

}  // namespace paceline::tools
