#!/usr/bin/env bash
# Builds fuzz targets with libFuzzer: the library's Swift and C with coverage of every edge and
# every comparison, in a scratch folder of its own, and each target linked with it. Flags on the
# command line only; the manifest knows nothing of this.   build.sh TARGET…
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tools/common.sh
source tools/common.sh

work="$PWD/build/work"
scratch=build/fuzz/swift
static="$(swift_static)"
arch="$(uname -m)"
clang="$(dirname "$(readlink -f "$(command -v swift)")")/clang"

swift_build() {
    PKG_CONFIG_PATH="$work/pkgconfig" swift build -c release --static-swift-stdlib \
        --scratch-path "$scratch" -Xswiftc -sanitize=fuzzer -Xcc -fsanitize=fuzzer-no-link \
        -Xcc -g -Xswiftc -enable-testing "$@"
}
mkdir -p build/fuzz/guided "$scratch"
# What the ordinary build fetched is fetched already.
for part in checkouts repositories workspace-state.json; do
    [ -e "$scratch/$part" ] || [ ! -e ".build/$part" ] || cp -r ".build/$part" "$scratch/$part"
done
products="$(swift_build --show-bin-path)"
runtime=(-L"$static" -lswiftSynchronization -lswiftCore -lswift_Concurrency
    -lswift_StringProcessing -lswift_RegexParser -lswiftGlibc -ldispatch -lBlocksRuntime)
packed=(-l:libzstd.a -l:liblz4.a -l:libsodium.a -l:libz.a -l:libjansson.a -l:libexpat.a)

# One in C calls the library as hosts do.
c_target() {
    if [ -z "${made_library:-}" ]; then
        rm -f "$products/libCordwoodABI.a"
        swift_build --product CordwoodABI
        made_library=yes
    fi
    "$clang" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -fsanitize=fuzzer -fuse-ld=lld \
        -Iinclude "Tests/Fuzz/$1.c" -o "build/fuzz/guided/$1" \
        "$static/$arch/swiftrt.o" "$products/libCordwoodABI.a" \
        -Wl,--start-group "${runtime[@]}" "${packed[@]}" -lstdc++ -Wl,--end-group \
        -lm -lpthread -ldl
}

# One in Swift sees the store's own types.
swift_target() {
    local map modules=(-I"$products/Modules" -Iinclude -ISources/CShims/include)
    swift_build --target CordwoodStore
    for map in Sources/C*/module.modulemap; do modules+=(-I"${map%/*}"); done
    swiftc -O -wmo -g -parse-as-library -static-stdlib -sanitize=fuzzer "${modules[@]}" \
        -module-name Fuzz "Tests/Fuzz/$1.swift" Tests/CordwoodStoreTests/BlockFile.swift \
        "$products"/{CordwoodStore,CordwoodCore,CordwoodFormats,CShims}.build/*.o \
        -L"$work/archives" "${packed[@]}" -o "build/fuzz/guided/$1"
}

for target in "$@"; do
    if [ -e "Tests/Fuzz/$target.swift" ]; then swift_target "$target"; else c_target "$target"; fi
done
