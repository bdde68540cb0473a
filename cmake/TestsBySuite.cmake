# Run after a test program was linked: one test of CTest per suite of GoogleTest, each in a process of its own. A process
# that loads libtorch takes most of a second before its first test, so that one process per test, which
# gtest_discover_tests makes, would spend minutes on starting.
#
#   cmake -D PROGRAM=path -D PREFIX=room. -D OUTPUT=file -P TestsBySuite.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing RESULT_VARIABLE result TIMEOUT 60)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed (${result}):\n${listing}")
endif()
# Texts of parameters may hold what separates or groups the elements of a list.
string(REGEX REPLACE "#[^\n]*" "" listing "${listing}")
if(listing MATCHES "DISABLED_")
  message(FATAL_ERROR "${PROGRAM} has a disabled test, which would count as passed with its suite")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(script "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.($| )")  # tests stand indented below their suite
    set(suite ${CMAKE_MATCH_1})
    string(APPEND script "add_test([==[${PREFIX}${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n")
    string(APPEND script "set_tests_properties([==[${PREFIX}${suite}]==] PROPERTIES TIMEOUT 300)\n")
  endif()
endforeach()
if(script STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} has no test")
endif()
file(WRITE ${OUTPUT} "${script}")
