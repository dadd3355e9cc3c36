# make demo: build commq and ask a captured run who sends how much to whom.
# make test: install what the tests need and run them all.
# make man: write manual pages of all commands to bin/man (man -l bin/man/commq-query.1).
# make bench: measure the figures of bench/README.md, compare them with the last commit's and keep them in bench/figures.
# make long: what takes hours: every fuzz target for LONG seconds, 10^6 failures of disks, the programs at the edge, tests on arm64,
# and every query on both engines.
# make release: archives and packages for x86-64 and arm64 in dist.
# make fast: the tests that the machine can run as it is; skipped ones say why.

GO ?= go
DEMO = query density --store testdata/runs --run bt.C.64

# The tests of all packages share what they compile in this folder, whose name lets go test keep results.
TEST_CACHE := $(or $(TMPDIR),/tmp)/commq-test-$(shell id -u)-$(firstword $(shell pwd | cksum))

TEST_PARTS = test-commq-first test-commq-second test-packages

# Collecting garbage takes a third of the time of linters and tests, whose memory is small.
test lint: export GOGC ?= 400

.PHONY: all build demo man test $(TEST_PARTS) test-cache-gone bench long release fast lint generate clean

all: build

build:
	@scripts/setup build
	$(GO) build -o bin/commq ./cmd/commq

demo: build
	@echo "bin/commq $(DEMO)"
	@bin/commq $(DEMO) | awk 'NR <= 11; END { if (NR < 2) exit 1; print "... " NR - 1 " rows in all" }'

man:
	$(GO) test ./cmd/commq -run '^TestManPages$$' -man $(CURDIR)/bin/man

# The tests of cmd/commq take as long as all others together, and one at a time: two processes do half of them each,
# beside the other packages, two at once and those that take longest first. Many tests wait for ranks, daemons and
# browsers.
#
# Linting needs no package but git, and does not wait for the others: setting up mostly waits for the network.
test:
	@command -v git >/dev/null || scripts/setup packages
	@scripts/setup test & setup=$$!; $(MAKE) lint && scripts/setup packages && scripts/check-generated; \
	checked=$$?; wait $$setup && exit $$checked
	rm -rf '$(TEST_CACHE)'
	trap '$(MAKE) --no-print-directory --silent test-cache-gone' EXIT; \
	$(MAKE) --no-print-directory -k -j 3 $(TEST_PARTS)

# The flags of all go test: make lint has all that its vet has.
TESTS = $(GO) test -vet=off -timeout 2h

# A target of its own, as make -n runs a line with MAKE in it.
test-cache-gone:
	rm -rf '$(TEST_CACHE)'

# About half of the tests of cmd/commq, by their time.
COMMQ_FIRST = ^Test[A-D]
$(TEST_PARTS): export COMMQ_TEST_CACHE = $(TEST_CACHE)
$(TEST_PARTS): export COMMQ_TEST_ALL = 1
# Failures of disks per story, or half or a quarter of them: at least 10^4 in all (docs/validation/faults.md).
$(TEST_PARTS): export COMMQ_TEST_FAULTS = 820
test-commq-first:
	$(TESTS) ./cmd/commq -run '$(COMMQ_FIRST)'
test-commq-second:
	$(TESTS) ./cmd/commq -skip '$(COMMQ_FIRST)'
test-packages:
	packages=$$($(GO) list ./...) && \
	$(TESTS) -p 3 ./queries ./capture/shim ./packaging ./python ./ui ./notebooks ./writer ./capture/ingest ./predict $$(echo "$$packages" | grep -v '/cmd/commq$$')

# What commq costs beside its peers: at most an hour.
bench: build
	COMMQ_BENCH_COMMAND=$(CURDIR)/bin/commq scripts/bench keep $(BENCH)

# The number of times that make bench measures each figure.
BENCH ?= 20

LONG ?= 3600

long:
	scripts/long $(LONG)
	scripts/long trials 1000000
	scripts/long extremes
	scripts/setup arm64
	scripts/try-arm64
	scripts/long answers

release:
	scripts/release all dist

fast:
	$(GO) test -timeout 2h ./...

lint:
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags dimemas ./formats/dimemas ./models/simulate ./cmd/commq
	$(GO) tool staticcheck ./...

generate:
	$(GO) generate ./...

clean:
	rm -rf bin
