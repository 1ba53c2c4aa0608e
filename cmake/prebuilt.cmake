# The prebuilt library: build/lib of this checkout, or CORDWOOD_LIBRARY_DIR. Where it is missing the
# target `cordwood_library`, part of ALL, makes it with `./dev build`. A project that adds this
# directory with add_subdirectory gets cordwood::cordwood and cordwood::static, as an installed
# package gives them.
set(CORDWOOD_LIBRARY_DIR ${CMAKE_CURRENT_SOURCE_DIR}/build/lib
    CACHE PATH "Directory of libcordwood.so and libcordwood.a")
set(cordwood_shared ${CORDWOOD_LIBRARY_DIR}/libcordwood.so)
set(cordwood_archive ${CORDWOOD_LIBRARY_DIR}/libcordwood.a)

# `./dev build` would refuse the same Swift, but in the midst of a build.
if(CORDWOOD_LIBRARY_DIR STREQUAL "${CMAKE_CURRENT_SOURCE_DIR}/build/lib"
        AND NOT (EXISTS ${cordwood_shared} AND EXISTS ${cordwood_archive}))
    execute_process(
        COMMAND bash -c ". tools/common.sh; needs_swift"
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
        RESULT_VARIABLE refused ERROR_VARIABLE reason ERROR_STRIP_TRAILING_WHITESPACE)
    if(refused)
        string(REGEX REPLACE "^dev: " "" reason "${reason}")
        message(FATAL_ERROR "${reason}")
    endif()
endif()

add_custom_command(
    OUTPUT ${cordwood_shared} ${cordwood_archive}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/dev build
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "Building libcordwood with ./dev build"
    VERBATIM)
add_custom_target(cordwood_library ALL DEPENDS ${cordwood_shared} ${cordwood_archive})

# What the static library needs of the system. Swift's own runtime stands inside the archive.
set(CORDWOOD_SYSTEM_LIBRARIES stdc++ m pthread dl)

foreach(kind cordwood static)
    add_library(cordwood_${kind} INTERFACE)
    add_library(cordwood::${kind} ALIAS cordwood_${kind})
    add_dependencies(cordwood_${kind} cordwood_library)
    target_include_directories(cordwood_${kind} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/include)
endforeach()
target_link_libraries(cordwood_cordwood INTERFACE ${cordwood_shared})
target_link_libraries(cordwood_static INTERFACE ${cordwood_archive} ${CORDWOOD_SYSTEM_LIBRARIES})
