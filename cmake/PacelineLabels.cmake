# Run after a test executable is built: writes the ctest labels of its cases to OUTPUT.
#   EXECUTABLE  the test executable     PREFIX  what catch_discover_tests put before each name
#   LABELS      labels of every case, separated by commas; the tags [slow] and [threads] add theirs
cmake_minimum_required(VERSION 3.25)


string(REPLACE "," ";" common "${LABELS}")

function(cases_matching spec out)
  execute_process(COMMAND "${EXECUTABLE}" ${spec} --list-test-names-only OUTPUT_VARIABLE names)
  string(REGEX REPLACE "\n$" "" names "${names}")
  string(REPLACE "\n" ";" names "${names}")
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

cases_matching("" all)
cases_matching("[slow]" slow)
cases_matching("[threads]" threads)

set(script "")
foreach(case IN LISTS all)
  set(labels ${common})
  foreach(tag slow threads)
    if(case IN_LIST ${tag})
      list(APPEND labels ${tag})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES labels)
  if(labels)
    string(APPEND script "set_tests_properties([==[${PREFIX}${case}]==] PROPERTIES LABELS [==[${labels}]==])\n")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "${script}")
