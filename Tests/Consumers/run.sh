#!/bin/sh
# Builds and runs every kind of host; arguments go to unittest (for example -k Compiler).
exec python3 -m unittest discover -s "$(dirname "$0")" "$@"
