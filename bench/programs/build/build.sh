# Builds everything anew: sixteen jobs at a time, or as many as a job server allows.
make -s clean
case "$MAKEFLAGS" in
*--jobserver*) exec make -s program ;;
*) exec make -s -j16 program ;;
esac
