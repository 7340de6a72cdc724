# Carrel. `make` alone says what there is; everything below is a short way to say a longer command.
BUILD   ?= build
prefix  ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
MESON_FLAGS = $(if $(filter true 1,$(CI)),-Dwerror=true)

help: ## show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build build/carrel, and beside it build/carrel-build, build/carreld and build/carrel-blob
	@tools/install-deps build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) $(MESON_FLAGS) >$(BUILD).log || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@ninja --quiet -C $(BUILD) src/carrel src/carrel-build src/carreld src/carrel-blob
	@ln -f $(BUILD)/src/carrel $(BUILD)/src/carrel-build $(BUILD)/src/carreld $(BUILD)/src/carrel-blob $(BUILD)/

run: build ## see it work: commands in a sandbox, and what they can't reach
	@tools/install-deps run
	@tools/allow-userns $(BUILD)/carrel
	@tools/demo $(BUILD)/carrel

test: ## build and test everything, as root (when you are) and as a plain user; STRICT=1 forgives no flaky test
	@tools/install-deps build test
	@STRICT=$(STRICT) tools/run-tests $(BUILD)

test-vm: ## Linux 6.1 with cgroup v2 only, in a virtual machine: limits, escapes, doctor, the daemon, quotas
	@tools/install-deps build test vm
	@tools/test-vm

test-use: ## real programs (browsers, office, compilers, servers) and CPython's tests, in carrel; takes an hour
	@tools/install-deps build test use
	@tools/test-use $(BUILD)

test-packages: build ## 60 popular packages and awkward sets, compared with uv file by file; takes half an hour
	@tests/packages/compare.py $(BUILD)/carrel

test-shell: ## the shell grammar, compared with shfmt, bash and dash on 100,000 scripts; takes ten minutes
	@tools/install-deps build test
	@ninja --quiet -C $(BUILD) tests/shell/shell-commands
	@tests/shell/compare.py $(BUILD)/tests/shell/shell-commands

test-judge: build ## the judge of commands, compared with what 100,000 commands run (COUNT=, SEED=); takes half an hour
	@tools/install-deps build judge
	@tools/allow-userns $(BUILD)/carrel
	@tests/judge/compare.py $(BUILD)/carrel $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

sdk: build ## write the generated files of sdk/, after a change of the API or of the clients
	@sdk/generate-python $(BUILD)/carrel
	@CARREL=$(abspath $(BUILD)/carrel) node sdk/typescript/tools/update.mjs

bench: build ## measure against bwrap, crun, runc, uv; writes bench/results.md
	@tools/install-deps bench
	@bench/run $(BUILD)/carrel

lint: ## format, rooms, messages, shell scripts, man pages, static analysis
	@tools/install-deps build style lint
	@tools/lint $(BUILD)

fuzz: ## run every fuzz target for FUZZ_SECONDS (60) each
	@tools/install-deps build fuzz
	@tools/fuzz $(BUILD)/fuzz $(FUZZ_SECONDS)

install: build ## install to DESTDIR/prefix (/usr/local)
	@tools/install-files $(BUILD)/carrel "$(DESTDIR)" "$(prefix)"

uninstall: ## remove what `make install` installed
	@tools/uninstall-files "$(DESTDIR)" "$(prefix)"

clean: ## remove what was built
	rm -rf $(BUILD)

.PHONY: help build run test test-vm test-use test-packages test-shell test-judge sdk bench lint fuzz install uninstall clean
