# A thin front to meson; the work is in tools/ and meson.build.
#
#   make         set up what is missing and build into build/
#   make run     start stintd with a simulated fleet and sample teams, in run-data/, and this machine
#                as one more node where containers can be run
#   make test    everything CI runs; the last line is "N passed, M failed, K skipped"
#   make bench   the benchmarks
#   make nightly the long hunts: thread sanitizer, attacks, fuzzers, random worlds (hours)
#   make docs    write the generated pages of doc/reference/ from the programs' own tables
#   make format  rewrite the C files in the project's format
#   make lint    tidy, clang-tidy and cppcheck
#   make setup   install the packages the build needs (Debian 12)

# Where `make run` listens; port 0 is any free one.
LISTEN ?= 127.0.0.1:7878

C_FILES = $(shell find src tests fuzz bench -name '*.[ch]' 2>/dev/null)

.PHONY: all run setup test bench nightly docs format lint clean

all: setup
	@tools/configure build gcc
	@ninja -C build

run:
	@tools/setup run
	@QUICK=1 tools/configure build gcc
	@ninja -C build programs
	@LISTEN=$(LISTEN) tools/run build run-data

setup:
	@tools/setup

test:
	@tools/run-tests

bench: all
	@meson test -C build --no-rebuild --benchmark --verbose --num-processes 1

nightly:
	@tools/nightly

docs:
	@tools/configure build gcc
	@ninja -C build programs
	@tools/docs build

format: setup
	@clang-format -i $(C_FILES)

lint:
	@tools/setup lint
	@tools/lint

clean:
	rm -rf build build-asan build-fuzz build-lint build-quick build-tsan
