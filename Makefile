# Thin on purpose: everything is built by Meson; this file gives the usual words for it.

BUILD ?= build
prefix ?= /usr/local
SITE ?=
FUZZ_SECONDS ?= 60
FUZZ_FOUND ?=
POWER_STATES ?= 200
UPGRADE ?= 8,300

.DEFAULT_GOAL := build
.PHONY: help build run ring check test asan test-asan analyze test-inject tsan fuzz fuzz-peers fuzz-coverage fuzz-minimise test-power test-upgrade bench format install clean packages-run packages-test

help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | while IFS='	' read -r word text; do printf 'make %-13s %s\n' "$$word" "$$text"; done

packages-run:
	@tools/install-packages run

packages-test:
	@tools/install-packages run test

$(BUILD)/build.ninja: | packages-run
	@meson setup $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }; rm -f $(BUILD).log

build: packages-run $(BUILD)/build.ninja ## build the program: build/mnemon
	@log=$$(ninja -C $(BUILD) mnemon mnemon.1 mnemon.bash 2>&1) || { echo "$$log" >&2; exit 1; }

run: build ## build and start; SITE=https://… archives that site first
	@tools/run $(BUILD)/mnemon "$(SITE)"

ring: build ## start four nodes on 127.0.0.2 to 127.0.0.5 that archive a small site as one ring
	@tools/ring $(BUILD)/mnemon

check: packages-test ## before a commit: format, layers, and the unit tests of what has changed
	@tools/test format layers changed

test: packages-test ## install what is missing, build, run every test and check
	@tools/test

asan: packages-test ## the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/test asan

test-asan: packages-test ## every system test against a program with sanitizers; for the night, takes an hour
	@tools/test asan-system

test-inject: packages-test ## let every call for memory, files and threads fail once; for the night, takes hours
	@tools/test inject

analyze: packages-test $(BUILD)/build.ninja ## what clang's analyzer and gcc -fanalyzer find that is not explained; for the night
	@BUILD=$(BUILD) nice tools/analyze

tsan: packages-test ## the unit tests under ThreadSanitizer
	@tools/test tsan

fuzz: packages-test ## fuzz every target for FUZZ_SECONDS (60) each; FUZZ_FOUND=DIR keeps what is new
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_FOUND="$(FUZZ_FOUND)" tools/test fuzz

fuzz-peers: packages-test ## fuzz a node by members that speak every message of the protocol, for FUZZ_SECONDS (60)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/test fuzz-peers

fuzz-coverage: packages-test ## how many lines of each parser the fuzz corpora reach; fails below 85 %
	@tools/fuzz-coverage

fuzz-minimise: packages-test ## keep of the fuzz corpora only what reaches something; FUZZ_FOUND=DIR adds what a run has found
	@tools/fuzz-minimise $(if $(FUZZ_FOUND),--from $(FUZZ_FOUND))

test-power: packages-test ## power failures: POWER_STATES (200) states of each story; for the night, takes half an hour
	@POWER_STATES=$(POWER_STATES) tools/test power

test-upgrade: packages-test ## upgrade a ring of the release before, node by node; UPGRADE (8,300): nodes and pages
	@UPGRADE=$(UPGRADE) tools/test upgrade

bench: packages-test ## measure against the alternatives, side by side
	@tools/bench

format: packages-test ## format all C files in place
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

install: build ## install the program and libmnemon under prefix (/usr/local), with DESTDIR in front
	@meson configure $(BUILD) -Dprefix=$(prefix)
	@log=$$(ninja -C $(BUILD) product 2>&1) || { echo "$$log" >&2; exit 1; }
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet
	@echo "installed under $(DESTDIR)$(prefix)"

clean: ## remove everything that was built
	@rm -rf build build-*
