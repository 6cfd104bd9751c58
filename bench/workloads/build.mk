# A parallel build of real C: the single-file libraries of Debian's package libstb-dev, each compiled
# once for every way of optimising it. `make -f build.mk -j32 WAYS="0 1 2"`; objects go where make runs.
HEADERS ?= /usr/include/stb
WAYS ?= 1
PARTS := sprintf image_resize image_write herringbone_wang_tile ds hexwave c_lexer include dxt \
    rect_pack perlin leakcheck divide
OBJECTS := $(foreach way,$(WAYS),$(PARTS:%=%.$(way).o))

all: $(OBJECTS)

define compile
%.$(1).o: $(HEADERS)/stb_%.h
	$$(CC) -c -w -O$(1) -x c -DSTB_$$(shell echo $$* | tr a-z A-Z)_IMPLEMENTATION \
	    -include $$< /dev/null -o $$@
endef
$(foreach way,$(WAYS),$(eval $(call compile,$(way))))

.PHONY: all
