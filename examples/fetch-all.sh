#!/bin/sh
# Makes many calls, four at a time as the preset allows, and never more than the limit, however many copies of this script run.
#   seq 1 100 | examples/fetch-all.sh
# Put your own call in place of echo: curl -fsS "https://api.example.org/3/movie/$1"
xargs -P 8 -n 1 shmlimit run tmdb -- sh -c 'echo "movie $1"' sh
