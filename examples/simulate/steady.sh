#!/bin/sh
# Twenty calls a second for a minute, each answered 80 ms later.
exec awk 'BEGIN {
    for (i = 0; i < 1200; i++) {
        printf "{\"t\":%.0f,\"op\":\"acquire\"}\n", i * 50000000
        printf "{\"t\":%.0f,\"op\":\"record\",\"status\":200}\n", i * 50000000 + 80000000
    }
}'
