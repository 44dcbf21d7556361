# Run after a test executable is built: writes the ctest script that registers it to OUTPUT.
#   EXECUTABLE  the test executable      NAME      of the entries
#   RUNNER      command, as a list separated by commas, that runs cases (tests/support/run_cases.py)
#   LABELS      labels of every entry, separated by commas
#   TIMEOUT     seconds for one case
#   LEFT_OUT    tags of ordinary cases that do not run, as ~[tag]~[tag]
#
# One entry for the ordinary cases, NAME; one for those tagged [slow], [threads] or both, NAME/slow,
# NAME/threads, NAME/slow_threads; one for those tagged [nightly], NAME/nightly; and one for each that may be skipped, NAME/CASE: ctest can report only
# a whole entry as skipped. COST, the number of cases, lets ctest start the long ones first.
cmake_minimum_required(VERSION 3.25)

string(REPLACE "," ";" common "${LABELS}")
string(REPLACE "," ";" runner "${RUNNER}")
list(TRANSFORM runner REPLACE "(.+)" "[==[\\1]==]")
list(JOIN runner " " runner)
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

set(script "")
function(add_entry name spec cost timeout)
  set(labels ${common} ${ARGN})
  list(REMOVE_DUPLICATES labels)
  string(APPEND script
    "add_test([==[${name}]==] ${runner} [==[${EXECUTABLE}]==] [==[${spec}]==])\n"
    "set_tests_properties([==[${name}]==] PROPERTIES TIMEOUT ${timeout} COST ${cost} SKIP_RETURN_CODE 77 LABELS [==[${labels}]==])\n")
  set(script "${script}" PARENT_SCOPE)
endfunction()

function(add_group suffix spec)
  set(spec "${spec}~[may_skip]~[.]")  # [.]: hidden, for hands alone
  cases_matching("${spec}" cases)
  list(LENGTH cases count)
  if(count GREATER 0)
    # No group needs more than some cases' time; one that hangs is ended by the runner, case by case.
    math(EXPR timeout "${TIMEOUT} * 10")
    add_entry("${NAME}${suffix}" "${spec}" ${count} ${timeout} ${ARGN})
  endif()
  set(script "${script}" PARENT_SCOPE)
endfunction()

add_group("" "~[slow]~[threads]~[nightly]${LEFT_OUT}")
add_group("/slow" "[slow]~[threads]~[nightly]" slow)
add_group("/threads" "[threads]~[slow]~[nightly]" threads)
add_group("/slow_threads" "[slow][threads]~[nightly]" slow threads)
add_group("/nightly" "[nightly]" slow nightly)

cases_matching("[may_skip]~[.]" all)
cases_matching("[may_skip][slow]~[.]" slow)
cases_matching("[may_skip][threads]~[.]" threads)
foreach(case IN LISTS all)
  set(labels)
  foreach(tag slow threads)
    if(case IN_LIST ${tag})
      list(APPEND labels ${tag})
    endif()
  endforeach()
  string(REPLACE "${open}" "[" name "${case}")
  string(REPLACE "${close}" "]" name "${name}")
  string(REPLACE "${semicolon}" ";" name "${name}")
  # What Catch would read as part of its pattern language.
  string(REGEX REPLACE "([][,\\])" "\\\\\\1" pattern "${name}")
  add_entry("${NAME}/${name}" "${pattern}" 1 ${TIMEOUT} ${labels})
endforeach()
file(WRITE "${OUTPUT}" "${script}")
