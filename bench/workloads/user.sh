#!/bin/sh
# One user of a multi-user load: a round of small programs, each forked and executed by the shell.
# With the number of lines that they work on.
set -e
seq 1 "${1:-3000}" >numbers
sort -R numbers >mixed
sort -n mixed | uniq | wc -l
awk '{ sum += $1 * $1 } END { print sum }' mixed
gzip -c mixed | gzip -dc | cmp - mixed
grep -c '7' numbers
sed 's/\(.\)\(.*\)/\2\1/' numbers | tail -n 1
od -c numbers | cut -c 1-40 | md5sum
