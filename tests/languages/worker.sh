#!/bin/sh
# Calls a server as fast as a limiter allows, in three loops of one session, until a file appears.
#
#   worker.sh NAME PORT PATH STOP    (with SHMLIMIT, the tool, and TMPDIR in the environment)
set -eu
name=$1 port=$2 path=$3 stop=$4

work() {
    headers=$(mktemp)
    while [ ! -e "$stop" ]; do
        status=$("$SHMLIMIT" run "$name" -- curl -s --max-time 5 -o /dev/null -D "$headers" -w '%{http_code}' \
            "http://127.0.0.1:$port$path") || exit 1
        # Successes need not be recorded.
        [ "$status" = 200 ] || "$SHMLIMIT" record "$name" --headers "$headers" >/dev/null || exit 1
    done
    rm -f "$headers"
}

work & first=$!
work & second=$!
work & third=$!
wait $first
wait $second
wait $third
