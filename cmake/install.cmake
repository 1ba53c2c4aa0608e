# What `cmake --install` puts under the prefix. The library's file has its full version, its soname
# the ABI's number: libcordwood.so -> libcordwood.so.0 -> libcordwood.so.0.1.0.
# Not of type PATH: CMake would take -DCMAKE_INSTALL_LIBDIR=lib64 for a directory of the checkout.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Where libraries go, below the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CORDWOOD_ABI 0) # raised when a struct or function changes meaning; ./dev build sets the soname
set(lib libcordwood.so)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cordwood)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
file(CREATE_LINK ${lib}.${PROJECT_VERSION} ${generated}/${lib}.${CORDWOOD_ABI} SYMBOLIC)
file(CREATE_LINK ${lib}.${CORDWOOD_ABI} ${generated}/${lib} SYMBOLIC)

install(DIRECTORY include/cordwood DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(PROGRAMS ${cordwood_shared} DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RENAME ${lib}.${PROJECT_VERSION})
install(FILES ${generated}/${lib}.${CORDWOOD_ABI} ${generated}/${lib} ${cordwood_archive}
        DESTINATION ${CMAKE_INSTALL_LIBDIR})

configure_package_config_file(cmake/cordwood-config.cmake.in ${generated}/cordwood-config.cmake
    INSTALL_DESTINATION ${package_dir}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${generated}/cordwood-config-version.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/cordwood-config.cmake ${generated}/cordwood-config-version.cmake
        DESTINATION ${package_dir})

# The prefix may be named at install time only, so the file finds it from where it stands.
list(TRANSFORM CORDWOOD_SYSTEM_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE system_flags)
list(JOIN system_flags " " CORDWOOD_SYSTEM_FLAGS)
file(RELATIVE_PATH CORDWOOD_PC_TO_PREFIX
     /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/cordwood.pc.in ${generated}/cordwood.pc @ONLY)
install(FILES ${generated}/cordwood.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
