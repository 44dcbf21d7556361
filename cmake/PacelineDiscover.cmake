# Run after a test executable is built: writes the ctest script that registers its cases to OUTPUT.
#   EXECUTABLE  the test executable      PREFIX    what comes before each name
#   LABELS      labels of every case, separated by commas; the tags [slow] and [threads] add theirs
#   TIMEOUT     seconds for one case
#
# Catch2's own script neither sets labels by tag nor survives a bracket in a name ("in [0, 1)"), and a
# name that matches no case would pass in silence; --warn NoTests makes that a failure.
cmake_minimum_required(VERSION 3.25)

string(REPLACE "," ";" common "${LABELS}")
string(ASCII 1 open)
string(ASCII 2 close)
string(ASCII 3 semicolon)

# The names as a list, in which control characters stand for what a CMake list cannot hold.
function(cases_matching spec out)
  execute_process(COMMAND "${EXECUTABLE}" ${spec} --list-test-names-only
    OUTPUT_VARIABLE names ERROR_VARIABLE errors RESULT_VARIABLE result)
  # The exit code of a listing is the number of cases; text, or a crash, is an error.
  if(NOT result MATCHES "^[0-9]+$" OR errors)
    message(FATAL_ERROR "${EXECUTABLE} --list-test-names-only: ${result}\n${errors}")
  endif()
  string(REPLACE "[" "${open}" names "${names}")
  string(REPLACE "]" "${close}" names "${names}")
  string(REPLACE ";" "${semicolon}" names "${names}")
  string(REGEX REPLACE "\n+$" "" names "${names}")
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

  string(REPLACE "${open}" "[" name "${case}")
  string(REPLACE "${close}" "]" name "${name}")
  string(REPLACE "${semicolon}" ";" name "${name}")
  # What Catch would read as part of its pattern language.
  string(REGEX REPLACE "([][,\\])" "\\\\\\1" pattern "${name}")
  set(test "[==[${PREFIX}${name}]==]")
  string(APPEND script
    "add_test(${test} [==[${EXECUTABLE}]==] [==[${pattern}]==] --warn NoTests)\n"
    "set_tests_properties(${test} PROPERTIES TIMEOUT ${TIMEOUT} LABELS [==[${labels}]==])\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
