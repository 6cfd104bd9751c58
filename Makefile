# Tidemark. `make help` lists what there is.
#
# Every target installs what it needs and this machine lacks (scripts/deps); where it can't, it
# says what is missing and what would install it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# In continuous integration a skipped test is a failure.
ifdef CI
export REQUIRE_ALL ?= 1
endif
BARE_TARGET := x86_64-unknown-none
# `make sim SEED=7` repeats one seed; without it, SEEDS fixed ones and FRESH new ones run.
SEEDS ?= 100
FRESH ?= 20

.PHONY: help
help: ## Lists the targets.
	@printf 'make TARGET, where TARGET is one of\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## Installs what building needs and this machine lacks.
	@scripts/deps build

.PHONY: deps-test
deps-test:
	@scripts/deps build test kernel

.PHONY: build
build: deps recorder ## Builds the command, its preload library and the recorder, optimised.
	$(CARGO) build --workspace --release
	@scripts/licence-texts $${CARGO_TARGET_DIR:-target}/licences.txt

# The tree may be moved afterwards; `uninstall` removes what `install` has put there.
.PHONY: install
install: ## Installs what `build` and `kernel` made, in PREFIX (/usr/local) of DESTDIR.
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

.PHONY: uninstall
uninstall: ## Removes what `install` put there: the same PREFIX, or where the tree is now.
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install remove

.PHONY: dist
dist: build kernel ## Sources, a wheel, a Debian package that is tried: in target/dist.
	@scripts/deps dist
	scripts/dist
	scripts/dist-smoke

# Without Valgrind everything else is still of use: it says what is missing, and goes on.
.PHONY: recorder
recorder: ## Builds the recorder: a Valgrind tool, for `tidemark record`.
	@scripts/deps record
	@$(MAKE) -C recorder || [[ $${REQUIRE_ALL:-} != 1 ]]

.PHONY: demo
demo: ## A program recorded, and run in less memory; thrashing. 3 minutes once built.
	@scripts/deps build demo
	@$(MAKE) recorder
	@$(CARGO) build --release --package tidemark-cli --package tidemark-shim --package tidemark-pool
	@scripts/demo

.PHONY: kernel
kernel: deps ## Builds the kernel and its programs.
	@scripts/kernel-build

.PHONY: kernel-demo
kernel-demo: kernel ## Boots the kernel, pages by three policies, compares with the lab.
	@scripts/deps kernel
	@$(CARGO) build --release --package tidemark-cli
	@scripts/kernel-demo

.PHONY: test
test: deps-test recorder kernel test-build ## Every test, small sizes. Minutes.
	scripts/tests

.PHONY: test-build
test-build: deps
	$(CARGO) build --workspace --lib --bins --tests

.PHONY: python-environment
python-environment: deps-test
	scripts/python-tests environment

.PHONY: python
python: deps-test ## The Python package, built, installed and tested in an environment of its own.
	scripts/python-tests

.PHONY: acceptance
acceptance: ## At full size, and tests of the kernel (LTP=FOLDER: LTP; MIRI=1: Miri). Hours.
	@scripts/deps build test acceptance
	$(CARGO) build --workspace --release
	TIDEMARK_ACCEPTANCE=full REQUIRE_ALL=1 $(CARGO) test --release --package tidemark-cli \
	    --test programs -- --test-threads=1
	KERNEL_TARGET=x86_64-unknown-linux-gnu $(CARGO) test --package tidemark-cli --test kernel -- \
	    --skip own_processor
	TIDEMARK_ACCEPTANCE=full REQUIRE_ALL=1 $(CARGO) test --release --package tidemark-cli \
	    --test guides
	scripts/kernel-selftests
	scripts/s3-server
	[[ -z '$(MIRI)' ]] || scripts/miri
	[[ -z '$(LTP)' ]] || scripts/ltp '$(LTP)'
	TIDEMARK_ACCEPTANCE=full scripts/python-tests fresh

.PHONY: check
check: deps ## Format, lints, layout rules, documentation, the core without an operating system.
	$(CARGO) fmt --all --check
	$(CARGO) run --quiet --package tidemark-tidy
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	@# By the compiler that clippy is: what it has just checked is then not checked again for this.
	wrapper=$$(rustc --print sysroot)/bin/clippy-driver; \
	    [[ ! -x $$wrapper ]] || export RUSTC_WORKSPACE_WRAPPER=$$wrapper \
	    CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__; \
	    RUSTDOCFLAGS='--deny warnings --allow rustdoc::private-intra-doc-links' \
	    $(CARGO) doc --workspace --no-deps --document-private-items --quiet
	scripts/check-bare $(BARE_TARGET)
	scripts/kernel-build check

.PHONY: sim
sim: deps ## Seeded simulation: SEED=n repeats one, SEEDS= and FRESH= say how many run.
	TIDEMARK_SEED='$(SEED)' TIDEMARK_SEEDS='$(SEEDS)' TIDEMARK_FRESH='$(FRESH)' \
	    $(CARGO) test --package tidemark-core --test all simulation:: -- --nocapture
	TIDEMARK_SEED='$(SEED)' TIDEMARK_SEEDS='$(SEEDS)' TIDEMARK_FRESH='$(FRESH)' \
	    $(CARGO) test --package tidemark-tasks --test simulation -- --nocapture

.PHONY: same-as
same-as: deps-test ## Compares what is decided and printed with the commit BEFORE=. Minutes.
	scripts/same-as '$(BEFORE)'

.PHONY: golden
golden: deps ## Rewrites golden tables, lists of counters, what guides print; review the change.
	TIDEMARK_GOLDEN=write $(CARGO) test --package tidemark-core --test all golden::
	TIDEMARK_GOLDEN=write $(CARGO) test --package tidemark-results --test formats
	TIDEMARK_GOLDEN=write $(CARGO) test --package tidemark-cli --test guides

.PHONY: fuzz
fuzz: deps ## Runs each fuzz target for FUZZ_SECONDS (60).
	scripts/fuzz $${FUZZ_SECONDS:-60}

.PHONY: bench
bench: deps ## Our workloads side by side with the kernel's own swap; writes bench/runs/.
	$(CARGO) build --release --package tidemark-cli --package tidemark-shim
	scripts/bench

.PHONY: bench-programs
bench-programs: deps ## Real programs in less memory than they take, and rivals. An hour.
	$(CARGO) build --release --package tidemark-cli --package tidemark-shim
	scripts/bench-programs

.PHONY: turns
turns: build ## Three programs that take turns: load control in the lab beside live. Some minutes.
	scripts/turns target/turns

.PHONY: top-pictures
top-pictures: build ## Makes the pictures of `tidemark top` in the guide again, from real runs.
	scripts/top-pictures

.PHONY: bench-recorder
bench-recorder: build ## What recording costs, beside Valgrind's own full trace. Minutes.
	scripts/bench-recorder

.PHONY: proof
proof: ## Licences, the oldest compiler, aarch64, new seeds: as far as can be here.
proof: licences compilers sim-new

.PHONY: licences
licences: deps
	scripts/check-licences

.PHONY: compilers
compilers: deps
	scripts/check-compilers

.PHONY: sim-new
sim-new: deps
	@$(MAKE) sim SEEDS=0 FRESH=20

.PHONY: structure
structure: ## Fields, functions, calls and lines of COMMITS (HEAD), as a measure of the structure.
	scripts/structure $(COMMITS)

.PHONY: comments
comments: ## Documentation comments at random (NUMBER, SEED), to be read without their code.
	scripts/draw-comments $(NUMBER) $(SEED)

.PHONY: ci
ci: check test proof ## What continuous integration runs, and a minute of fuzzing.
	scripts/fuzz --minute

.PHONY: clean
clean: ## Removes what building made.
	$(CARGO) clean
