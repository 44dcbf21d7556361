#include "tools/task/task_list.h"

#include "dataplane/base/hash.h"

namespace paceline::tools {

std::uint64_t TaskList::key() const {
  ContentHash hash;
  hash.number(size());
  for (std::size_t task = 0; task < size(); ++task) hash.number(task_key(task));
  return hash.value();
}

}  // namespace paceline::tools
