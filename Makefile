# The two commands that a newcomer needs are `make demo` and `make test`. They
# need Go, make and a C compiler (for the race detector), and nothing else.

STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Tests with a model run this many random cases each, without the race detector.
CHECKS = 500

# How long the soak runs.
SOAK = 30m

.PHONY: demo test lint unit models simulation examples e2e fuzz mutate soak bench bench-check growth memory

# The main job: a controller at work for 15 seconds, on an embedded server.
demo:
	go run ./examples/controller -for 15s

# Everything: style, tests with the race detector, examples, the real API server.
test: lint unit models simulation examples e2e

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	cd e2e && go vet ./...
	cd e2e && $(STATICCHECK) ./...
	cd bench && go vet ./...
	cd bench && $(STATICCHECK) ./...

# All of them in the sizes of the reports that they are about, and then with the
# race detector.
unit:
	go test -timeout 10m . -full
	go test -race -timeout 10m . -rapid.checks=50
	go test -race -timeout 10m ./informertest/... ./mutate
	cd bench && go test -timeout 10m ./...

models:
	go test -timeout 10m -run 'Model|Weather' . ./informertest/... -rapid.checks=$(CHECKS) -rapid.steps=100

# Whole informers: 10,000 histories of a scripted source in two parts, 1,000 with
# the race detector, and 500 of a server. They print which faults struck when.
simulation:
	go test -timeout 10m -run 'Simulation$$' -v . -rapid.checks=5000
	go test -race -timeout 10m -run 'Simulation$$' -v . -rapid.checks=500
	go test -timeout 10m -run 'SimulationServer$$' -v . -rapid.checks=500

# Each fuzz target for so long, from its seeds and its corpus in testdata.
FUZZTIME = 20s

fuzz:
	@for package in . ./informertest; do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "fuzz: $$target"; \
			go test -run NONE -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package || exit 1; \
		done; \
	done

# Each program is built, run, and its output checked.
examples:
	go test -race -timeout 10m ./examples/...

# Builds kube-apiserver and etcd from Go modules: about five minutes the first
# time.
e2e:
	cd e2e && go test -race -parallel 4 -timeout 30m ./...

# Breaks the code in hundreds of ways, one at a time: for each, a test that names
# the broken promise has to fail. See `go doc ./mutate`.
mutate:
	go run ./mutate

# 20 informers on a server that is killed, restarted and compacted at random. Not
# part of the tests: it takes SOAK, and a few minutes more.
soak:
	cd e2e && go test -run 'TestSoak$$' -soak $(SOAK) -timeout 0 -v .

# This library and client-go side by side: see bench/README.md. ROWS chooses rows
# by the beginning of their names (make bench ROWS=W1,S3), QUICK=1 does less.
# bench-check fails if a row is more than 15 % below its bar.
ROWS =
QUICK =
BENCH = cd bench && go run ./cmd/table -rows '$(ROWS)' $(if $(QUICK),-quick)

bench:
	$(BENCH) -json $(if $(ROWS)$(QUICK),last.json,RESULTS.json)

bench-check:
	$(BENCH) -check

# What a cache of 1,000 to 1,000,000 objects costs, as plots in bench/plots.
growth:
	cd bench && go run ./cmd/growth

# What one idle informer, one more handler and a small program cost.
memory:
	cd bench && go run ./cmd/memory
