#!/usr/bin/env bash
# Builds what hosts link and run: libcordwood.so, libcordwood.a and the command-line tool. Both
# libraries contain the Swift runtime, zstd, lz4, libsodium, zlib, jansson and expat, with every
# name except cw_* hidden, so that a host needs only libc, whatever it links itself.
# `build.sh quick` optimises file by file, for short cycles of an edit and a test (mutate.py).
set -euo pipefail
kind="${1:-release}"

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
needs_swift

# One build at a time: two suites that are started by hand both call this.
mkdir -p build/work
exec 8> build/work/lock
flock 8

# Tests, checks and benchmarks all call this script. It skips the build when neither the sources nor
# the tools have changed: the stamp is a checksum of both.
stamp() {
    local swift name
    swift="$(readlink -f "$(command -v swift)")"
    {
        stat -L -c '%n %s %Y' "$swift" "$(dirname "$swift")"/{clang,swift-frontend} || true
        for name in zstd lz4 sodium z jansson expat stdc++; do
            stat -L -c '%n %s %Y' "$(gcc -print-file-name="lib$name.a")" || true
        done
        { find Sources include Package.swift tools/{build,common,swiftpm}.sh tools/droppable.py \
            tools/unprinted.txt "$@" -type f -print0 || true; } | sort -z | xargs -0 sha256sum
        echo "$PWD $kind"
    } 2>/dev/null | sha256sum
}
outputs=(build/lib/libcordwood.so build/lib/libcordwood.so.0 build/lib/libcordwood.a
    build/bin/cordwood build/work/libcordwood.so build/work/archives/libzstd.a)
made="$(stat -L -c '%n %s %Y' "${outputs[@]}" 2>/dev/null || true)"
if [ "$(cat build/work/stamp 2>/dev/null || true)" = "$(stamp Package.resolved) $made" ]; then
    echo "built before: build/lib/libcordwood.so build/lib/libcordwood.a build/bin/cordwood"
    exit 0
fi

for tool in gcc ld objcopy strip ar python3; do
    if ! command -v "$tool" >/dev/null; then
        echo "build: no $tool in PATH: install GCC, binutils and Python 3" >&2
        exit 1
    fi
done
before="$(stamp)"
static="$(swift_static)"
if [ ! -f "$static/libswiftCore.a" ]; then
    echo "build: no libswiftCore.a in $static: put the bin directory of a whole toolchain" \
        "(https://swift.org/install) first in PATH" >&2
    exit 1
fi
arch="$(uname -m)"
work=build/work
mkdir -p build/lib build/bin "$work/archives"

# Our own pkg-config files name a directory with only .a files, so that -lzstd is the static one.
mkdir -p "$work/pkgconfig"
for name in zstd lz4 sodium z jansson expat; do
    archive="$(gcc -print-file-name="lib$name.a")"
    if [ ! -f "$archive" ]; then
        echo "build: no lib$name.a beside the compiler's libraries: install the package with it" \
            "(./dev build does so on Debian)" >&2
        exit 1
    fi
    if [ "$name" = jansson ]; then
        # Debian's is not meant for shared libraries: its json_loadf, which is never called,
        # compares a file with stdin. A word of ours replaces stdin (Sources/CShims/shims.c).
        rm -f "$work/archives/lib$name.a"
        objcopy --redefine-sym stdin=cwi_no_stdin "$archive" "$work/archives/lib$name.a"
    else
        ln -sf "$archive" "$work/archives/lib$name.a"
    fi
    package="lib$name"
    case "$name" in
        z) package=zlib ;;
        jansson | expat) package="$name" ;;
    esac
    printf '%s\n' "Name: $package" "Description: $package, static" "Version: 1" \
        "Libs: -L$PWD/$work/archives -l$name" > "$work/pkgconfig/$package.pc"
done

products="$(tools/swiftpm.sh "$kind" build --show-bin-path)"
# The compiler keeps an object whose code is the same, even if the flags have changed.
if [ ! -e "$products/has-sections" ]; then
    rm -f "$products"/Cordwood*.build/*.swift.o
    mkdir -p "$products" && touch "$products/has-sections"
fi
# SwiftPM adds to the archive but never removes the object of a deleted file.
rm -f "$products/libCordwoodABI.a"
tools/swiftpm.sh "$kind" build --product cordwood
tools/swiftpm.sh "$kind" build --product CordwoodABI
abi="$work/archives/libCordwoodABI.a"
python3 tools/droppable.py "$products/libCordwoodABI.a" "$abi"

# The runtime's locks go through the gate at which a fork waits (Sources/CShims/fork.c): in a child,
# a lock that another thread held would stay taken forever. Its mutexes are renamed, so that no
# others are affected; the linker wraps its `once`. What the runtime prepares for its own backtraces
# is left out: it ends a static program without /proc, and may install handlers of signals.
without_backtraces() {
    ar x --output "$work" "$1" Backtrace.cpp.o
    objcopy --remove-section=.init_array "$work/Backtrace.cpp.o"
    ar r "$1" "$work/Backtrace.cpp.o"
    rm -f "$work/Backtrace.cpp.o"
}
# The runtime also gets its memory by way of Sources/CShims/reserve.c: it ends the process where
# malloc has none. Its operators new and delete are renamed with it.
renamed=()
for pair in pthread_mutex_lock=lock pthread_mutex_unlock=unlock malloc=malloc calloc=calloc \
    realloc=realloc free=free strdup=strdup posix_memalign=memalign _Znwm=new \
    _ZnwmSt11align_val_t=aligned _ZdlPvm=free_sized _ZdlPvmSt11align_val_t=free_aligned; do
    renamed+=(--redefine-sym "${pair%=*}=cwi_runtime_${pair#*=}")
done
for name in swiftCore swift_Concurrency; do
    objcopy "${renamed[@]}" "$static/lib$name.a" "$work/renamed.a"
    [ "$name" != swiftCore ] || without_backtraces "$work/renamed.a"
    python3 tools/droppable.py "$work/renamed.a" "$work/archives/lib$name.a"
done
rm -f "$work/renamed.a"
for name in swiftSynchronization swiftGlibc; do
    python3 tools/droppable.py "$static/lib$name.a" "$work/archives/lib$name.a"
done
# The names of Unicode characters, 0.5 MB, which are never asked for (Sources/CShims/shims.c).
names=_swift_stdlib_getScalarName
# Texts of the standard library's types, 0.2 MB, which are never printed (Sources/CShims/shims.c).
unprinted=()
while read -r name _; do
    [ "${name:0:1}" = '$' ] || continue
    unprinted+=("-Wl,--wrap=$name" "-Wl,--defsym=__wrap_$name=cwi_no_text")
done < tools/unprinted.txt
# Swift's append path, MessagePath (append, text, write), which no C code calls: the check of the
# hot path reads it in build/work.
# shellcheck disable=SC2016
message=('6appendySbSpySo10cwi_loggerVG_s6UInt32VAISvSitFZ'
    '4textySbSpySo10cwi_loggerVG_s6UInt32VSSs6UInt64VA2KtFZ'
    '5writeys5Int32VSpySo10cwi_loggerVG_s6UInt32VAA0C5FrameVtFZ')
# shellcheck disable=SC2016
message=("${message[@]/#/-Wl,--undefined=\$s12CordwoodCore11MessagePathO}")
once=_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_
random=swift_stdlib_random
usable=malloc_usable_size # how large a block is (Sources/CShims/reserve.c)

# The libraries that the objects name in their autolink entries, as archives. Groups, because
# Swift's own archives refer to one another in circles. Without the regular expressions, which are
# 2 MB: a call that needs them fails the link (CordwoodFormats/Text/TextSearch).
runtime=(-L"$work/archives" -L"$static" -lswiftSynchronization -lswiftCore -lswift_Concurrency
    -lswiftGlibc -ldispatch -lBlocksRuntime)
packed=(-l:libzstd.a -l:liblz4.a -l:libsodium.a -l:libz.a -l:libjansson.a -l:libexpat.a)

clang="$(dirname "$(readlink -f "$(command -v swift)")")/clang"
printf '%s\n' '#include "CMemory.h"' \
    'unsigned char cwi_reserve[CWI_RESERVE_BYTES] __attribute__((aligned(4096)));' |
    "$clang" -x c -c -fPIC -I Sources/CShims/include -I include -o "$work/reserve.o" -
cat > "$work/exports.map" <<'MAP'
{ global: cw_*; local: *; };
MAP
# -z nodelete: our threads and thread-local destructors outlive a dlclose.
"$clang" -shared -fuse-ld=lld -static-libgcc -o "$work/libcordwood.so" \
    "$static/$arch/swiftrt.o" "$work/reserve.o" \
    -Wl,--whole-archive "$abi" -Wl,--no-whole-archive \
    -Wl,--start-group "${runtime[@]}" "${packed[@]}" -l:libstdc++.a -Wl,--end-group \
    -Wl,--as-needed -lm -lpthread -ldl \
    -Wl,--wrap="$once" -Wl,--wrap="$names" -Wl,--wrap="$random" -Wl,--wrap="$usable" \
    "${unprinted[@]}" -Wl,--icf=safe "${message[@]}" \
    -Wl,--version-script="$work/exports.map" -Wl,--gc-sections -Wl,--no-undefined \
    -Wl,-soname,libcordwood.so.0 -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
    -Wl,-z,pack-relative-relocs
# The table of local names stays in build/work: the disassembly check reads it.
strip --strip-all -o "$work/stripped.so" "$work/libcordwood.so"
mv -f "$work/stripped.so" build/lib/libcordwood.so
# As strip wrote them, pages lie in the cache in large pieces, of which a fault maps more than it
# needs: 0.7 MiB resident in each host. Read from the disk, they come as needed.
sync build/lib/libcordwood.so
dd if=build/lib/libcordwood.so iflag=nocache count=0 status=none
ln -sf libcordwood.so build/lib/libcordwood.so.0
# One relocatable object with local names. --force-group-allocation dissolves COMDAT groups: a C++
# host has groups of the same names, and the linker would drop ours.
ld -r --force-group-allocation --wrap="$once" --wrap="$names" --wrap="$random" --wrap="$usable" \
    -o "$work/all.o" \
    "$static/$arch/swiftrt.o" "$work/reserve.o" \
    --whole-archive "$abi" --no-whole-archive \
    --start-group "${runtime[@]}" "${packed[@]}" --end-group
echo 'cw_*' > "$work/keep"
objcopy --wildcard --keep-global-symbols="$work/keep" --strip-debug "$work/all.o" \
    "$work/cordwood.o"
strip --strip-unneeded "$work/cordwood.o"
rm -f "$work/libcordwood.a" "$work/all.o"
ar rcsD "$work/libcordwood.a" "$work/cordwood.o"
rm -f "$work/cordwood.o"
mv -f "$work/libcordwood.a" build/lib/libcordwood.a

strip --strip-all -o "$work/cordwood" "$products/cordwood"
mv -f "$work/cordwood" build/bin/cordwood
# Files edited meanwhile are built by the next run.
if [ "$(stamp)" = "$before" ]; then
    echo "$(stamp Package.resolved) $(stat -L -c '%n %s %Y' "${outputs[@]}")" > "$work/stamp"
fi
echo "built build/lib/libcordwood.so build/lib/libcordwood.a build/bin/cordwood"
