#!/bin/bash
# A Redis server that is filled, asked and rewritten; run in the folder it may write to.
set -eu
redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly no --io-threads 1 &
server=$!
until redis-cli -s redis.sock ping > ping.txt 2>&1; do sleep 1; done
redis-benchmark -s redis.sock -n 12000 -r 8000 -d 200 -c 4 -q -t set,get,lpush,hset > speed.txt
redis-cli -s redis.sock shutdown nosave || true
wait "$server"
