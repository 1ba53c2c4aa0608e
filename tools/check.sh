#!/usr/bin/env bash
# Checks the sources and the library without running them. Each check prints what is wrong and
# where; this script runs them all and counts.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

passed=0
failed=0
failures=()

run() {
    local name="$1" log
    shift
    if log="$("$@" 2>&1)"; then
        passed=$((passed + 1))
        echo "ok    $name${log:+  ($(tail -n 1 <<<"$log"))}"
    else
        failed=$((failed + 1))
        failures+=("$name")
        echo "FAIL  $name"
        printf '      %s\n' "${log//$'\n'/$'\n'      }"
    fi
}

shell_scripts() {
    local scripts
    mapfile -t scripts < <(git ls-files -- '*.sh' dev .ci/run)
    shellcheck -x "${scripts[@]}"
}

swift_format() {
    swift format lint --strict --parallel --recursive Sources Tests Package.swift
}

linked_libraries() {
    local needed
    needed="$(readelf -d build/lib/libcordwood.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')"
    if grep -vE '^(libc|libm|ld-linux-.*)\.so' <<<"$needed"; then
        echo "libcordwood.so needs more than libc and libm"
        return 1
    fi
    if nm build/work/libcordwood.so | grep -qw swift_task_create; then
        echo "libcordwood.so carries the runtime of tasks: see tools/build.sh"
        return 1
    fi
    if [ "$(stat -L -c %s build/lib/libcordwood.so)" -gt 12200000 ]; then
        echo "libcordwood.so has grown beyond 12.2 MB"
        return 1
    fi
    readelf -d build/lib/libcordwood.so | grep -q NODELETE
}

# Each header by itself, in every language it is for.
header() {
    local compiler file
    local strict=(-Wall -Wextra -Werror -pedantic -Wshadow -Wconversion -Wsign-conversion)
    for file in include/cordwood/*.h include/cordwood/*.hpp; do
        for compiler in "gcc -x c -std=c11" "g++ -x c++ -std=c++17"; do
            [[ $file = *.hpp && $compiler = gcc* ]] && continue
            # shellcheck disable=SC2086
            echo "#include \"$file\"" | $compiler "${strict[@]}" -Iinclude -I. -fsyntax-only - ||
                return 1
        done
    done
}

# Only if mypy is present: it is not installed for this.
types() {
    (cd bindings/python && mypy --cache-dir ../../build/mypy)
}

# The promised limit on bytes of source, and the types.
page() {
    local bytes
    bytes="$(cat Sources/CViewerPage/page/* | wc -c)"
    if [ "$bytes" -gt 150000 ]; then
        echo "the page has $bytes bytes of source, at most 150000"
        return 1
    fi
    echo "$bytes bytes"
    tsc --allowJs --checkJs --strict --noEmit --target es2022 --module es2022 \
        --moduleResolution node --lib es2022,dom,dom.iterable Sources/CViewerPage/page/app.js
}

run build tools/build.sh
run layers python3 tools/check_layers.py
run format-tables python3 tools/check_format.py
run names python3 tools/check_names.py
run hot-path python3 tools/check_hotpath.py
run header-append python3 tools/check_append.py
run header-append-arm python3 tools/check_append_arm.py
run linked-libraries linked_libraries
run header header
run tidy python3 tools/check_tidy.py
run page page
run mutations python3 tools/mutate.py --check
if command -v mypy >/dev/null; then run types types; fi
if command -v shellcheck >/dev/null; then run shell shell_scripts; fi
if swift format --version >/dev/null 2>&1; then run swift-format swift_format; fi

[ "$failed" -eq 0 ] || echo "failed: ${failures[*]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
