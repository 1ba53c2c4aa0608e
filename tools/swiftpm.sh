#!/usr/bin/env bash
# Runs SwiftPM with the flags of one of our builds, which share their objects only if the flags are
# the same:
#
#     swiftpm.sh release WORD…    what hosts link and run (tools/build.sh, swift_hosts.py)
#     swiftpm.sh quick WORD…      the same, optimised file by file, in .build-quick: an edit costs
#                                 the files that it changes (tools/mutate.py)
#     swiftpm.sh tests WORD…      the Swift tests, in .build-tests, with the invariants that no
#                                 other build checks
#
# The packages that servers and the command line need, NIO and ArgumentParser, do not change with
# our sources. They are built once, as for release, in ${XDG_CACHE_HOME:-~/.cache}/cordwood-build,
# under a key of their versions, the toolchain and how they are built; then the compiler gets their
# modules and the linker one archive. Nothing there is needed: a build of its own (`swift build`)
# builds the packages from source, as any package does, and what is missing is made again.
set -euo pipefail
kind="$1"
shift

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
needs_swift
# Debug information is what only debuggers read. (The index is said to be that, too, but the tests
# are found in it.)
common=(-debug-info-format none)
# A section for each function: the linker drops those never called.
release=("${common[@]}" -c release --static-swift-stdlib
    -Xswiftc -Xfrontend -Xswiftc -function-sections)
case "$kind" in
    release)
        flags=("${release[@]}")
        export PKG_CONFIG_PATH="$PWD/build/work/pkgconfig" # with the static libraries
        ;;
    quick)
        flags=("${common[@]}" -c debug --static-swift-stdlib --scratch-path .build-quick
            -Xswiftc -O -Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -O2)
        export PKG_CONFIG_PATH="$PWD/build/work/pkgconfig"
        ;;
    tests)
        flags=("${common[@]}" --scratch-path .build-tests -Xswiftc -DCORDWOOD_INVARIANTS)
        ;;
esac

# The lines of the manifest that name those packages, and what we use of them.
packages="$(sed -n '/package(url:.*\(swift-nio\|swift-argument-parser\)"/s/^ *//p' Package.swift)"
products='.product(name: "ArgumentParser", package: "swift-argument-parser"),
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"),'
named="${XDG_CACHE_HOME:-}"
[ "${named:0:1}" = / ] || named="$HOME/.cache"
prebuild() {
    mkdir -p "$prebuilt/Sources/Prebuilt"
    cat > "$prebuilt/Package.swift" <<SWIFT
// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "prebuilt",
    products: [.library(name: "Prebuilt", type: .static, targets: ["Prebuilt"])],
    dependencies: [$packages],
    targets: [.target(name: "Prebuilt", dependencies: [$products])]
)
SWIFT
    echo 'public let prebuilt = 0' > "$prebuilt/Sources/Prebuilt/prebuilt.swift"
    swift build --package-path "$prebuilt" --product Prebuilt "${release[@]}"
    local bin map tools
    bin="$(swift build --package-path "$prebuilt" "${release[@]}" --show-bin-path)"
    # One object: a program links all of it or nothing, for some conformances are found only at run
    # time.
    ld -r -o "$prebuilt/prebuilt.o" --whole-archive "$bin/libPrebuilt.a"
    rm -f "$prebuilt/libPrebuilt.a"
    ar rcsD "$prebuilt/libPrebuilt.a" "$prebuilt/prebuilt.o"
    # The libraries that it names. The compiler reads them only from the objects of a package.
    tools="$(dirname "$(readlink -f "$(command -v swift)")")"
    "$tools/swift-autolink-extract" "$prebuilt/prebuilt.o" -o "$prebuilt/libraries"
    rm -f "$prebuilt/prebuilt.o"
    {
        printf '%s\n' -Xswiftc "-I$bin/Modules"
        # Modules in C: SwiftPM makes a map where the package has none.
        for map in "$bin"/*.build/module.modulemap \
            "$prebuilt"/.build/checkouts/*/Sources/*/include/module.modulemap; do
            printf '%s\n' -Xswiftc -Xcc -Xswiftc "-fmodule-map-file=$map"
        done
    } > "$prebuilt/flags.new"
    mv "$prebuilt/flags.new" "$prebuilt/flags"
}
key="$( (echo "$packages $products $(uname -m) ${release[*]}" && swift --version 2>&1 &&
    declare -f prebuild) | sha256sum | cut -c 1-16)"
prebuilt="$named/cordwood-build/packages-$key"

mkdir -p "$named/cordwood-build"
exec 9> "$named/cordwood-build/packages-$key.lock"
flock 9
[ -e "$prebuilt/flags" ] || prebuild >&2
exec 9>&-
mapfile -t with < "$prebuilt/flags"
with+=(-Xlinker --start-group -Xlinker "$prebuilt/libPrebuilt.a")
static="$(swift_static)"
while read -r library; do
    # Parts of a static library, which a shared one has inside.
    name="lib${library#-l}"
    [ "$kind" = tests ] && [ -e "$static/$name.a" ] &&
        [ ! -e "${static/%swift_static\/linux/swift/linux}/$name.so" ] && continue
    with+=(-Xlinker "$library")
done < "$prebuilt/libraries"
with+=(-Xlinker --end-group)

CORDWOOD_PREBUILT="$prebuilt" exec swift "$1" "${flags[@]}" "${with[@]}" "${@:2}"
