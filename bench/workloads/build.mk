# A parallel build of real C: the single-file libraries of Debian's package libstb-dev, each compiled
# once for every way of optimising it. `make -f build.mk -j32 WAYS="0 g 1"`; objects go where make runs.
HEADERS ?= /usr/include/stb
WAYS ?= 1
PARTS := sprintf image_resize herringbone_wang_tile ds hexwave c_lexer include dxt rect_pack perlin \
    leakcheck divide
OBJECTS := $(foreach way,$(WAYS),$(PARTS:%=%.$(way).o))
# What has a library's header bring its code along.
upper = $(subst a,A,$(subst b,B,$(subst c,C,$(subst d,D,$(subst e,E,$(subst f,F,$(subst g,G,$(subst \
    h,H,$(subst i,I,$(subst k,K,$(subst l,L,$(subst m,M,$(subst n,N,$(subst o,O,$(subst p,P,$(subst \
    r,R,$(subst s,S,$(subst t,T,$(subst v,V,$(subst w,W,$(subst x,X,$(subst z,Z,$1))))))))))))))))))))))

all: $(OBJECTS)

define compile
%.$(1).o: $(HEADERS)/stb_%.h
	$$(CC) -c -w -O$(1) -x c -DSTB_$$(call upper,$$*)_IMPLEMENTATION -include $$< /dev/null -o $$@
endef
$(foreach way,$(WAYS),$(eval $(call compile,$(way))))

.PHONY: all
