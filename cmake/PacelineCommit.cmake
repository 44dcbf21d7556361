# Writes a C++ source with the version and the commit that this tree is at. Run at every build, as
#
#   cmake -DSOURCE=... -DVERSION=0.2.0 -DOUT=... -P PacelineCommit.cmake
#
# The file changes only if the commit does, so that nothing else is linked anew. In a tree that
# `git archive` made, commit.txt has the commit; where neither is there, the version stands alone.
cmake_minimum_required(VERSION 3.25)

set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  # Unpacked inside another repository, that one's commit says nothing about this tree.
  file(REAL_PATH "${SOURCE}" source)
  if(NOT failed AND top STREQUAL source)
    execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(commit STREQUAL "")
  file(STRINGS "${SOURCE}/cmake/commit.txt" archived LIMIT_COUNT 1)
  if(archived MATCHES "^[0-9a-f]+$")
    string(SUBSTRING "${archived}" 0 12 commit)
  endif()
endif()
if(commit)
  set(VERSION "${VERSION} (${commit})")
endif()
set(text "#include \"dataplane/base/build_version.h\"\n\nnamespace paceline {\n\nconst char* build_version() { return \"${VERSION}\"; }\n\n}  // namespace paceline\n")
set(before "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE "${OUT}" "${text}")
endif()
