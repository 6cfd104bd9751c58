#!/bin/sh
# An image is loaded and worked on. Then its user turns away: the next image does not come for 40
# seconds. Then the work on both goes on. The pipe's writer waits until somebody reads.
set -e
mkfifo wake.ppm
(exec >wake.ppm; sleep 40; cat small.ppm) &
convert-im6.q16 -limit thread 1 big.ppm -modulate 110,90 -unsharp 0x1 ppm:wake.ppm \
    -flip -modulate 95 -append out.ppm
wait
