# `ctest` runs the consumers in C and C++ (Tests/Consumers), each as a test of its own: hosts built
# straight from the checkout, and with what this build tree installs. The tests bring their own
# compilers when they run, so configuring needs none. Their names are those that the suite's own
# runner takes (Tests/TestSupport/unittests.py).
find_program(CORDWOOD_PYTHON python3 DOC "Runs the tests")
if(NOT CORDWOOD_PYTHON OR NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/Tests/Consumers)
    message(STATUS "Without tests: they need python3 and the directory Tests")
    return()
endif()

set(runner ${CORDWOOD_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/Tests/TestSupport/unittests.py
    ${CMAKE_CURRENT_SOURCE_DIR}/Tests/Consumers)
file(GLOB test_files ${CMAKE_CURRENT_SOURCE_DIR}/Tests/Consumers/test_*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test_files})

execute_process(COMMAND ${runner} --list OUTPUT_VARIABLE names RESULT_VARIABLE failed
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\n" ";" names "${names}")
# pip and SwiftPM bring hosts of their own, which `./dev test` runs.
list(FILTER names EXCLUDE REGEX "PythonTest|SwiftTest")
if(failed OR NOT names)
    add_test(NAME consumers COMMAND ${runner}) # says why, and fails
endif()
foreach(name ${names})
    add_test(NAME ${name} COMMAND ${runner} ${name}
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED "
        ENVIRONMENT "CORDWOOD_LIBRARY_DIR=${CORDWOOD_LIBRARY_DIR};\
CORDWOOD_CMAKE_BUILD=${CMAKE_CURRENT_BINARY_DIR};CMAKE_GENERATOR=${CMAKE_GENERATOR}")
endforeach()
