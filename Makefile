# AIOpsLab. `make help` lists the targets.

GO ?= go
export CGO_ENABLED = 0

# Property tests draw the same cases each time, so that a suite that passes goes on passing until the code changes.
# `go test` by itself draws new ones: `go test ./workload -rapid.checks=100000` for many.
export RAPID_SEED ?= 1

# A larger GOGC spares the compiler an eighth of its CPU time. It does not change what is built.
COMPILE = GOGC=400 $(GO)

# Debugging information, which no binary here keeps, costs the compiler a sixth of its time. Who runs a debugger, or go by
# hand, has Go's own settings. Flags that the user has set, by `go env -w` as well, stay.
LEAN = -gcflags=all=-dwarf=false
export GOFLAGS := $(filter-out $(LEAN),$(shell $(GO) env GOFLAGS)) $(LEAN)

# No symbol table, no debugging information, and no padding between functions, which saves 2 %.
LDFLAGS = -s -w -funcalign=1
TOOL = $(COMPILE) tool -modfile=tools/go.mod
TEST = $(TOOL) gotestsum --format pkgname-and-test-fails $(AGAIN)

# Packages that do not link the Kubernetes control plane: cheap to test with the race detector, and
# portable.
LIGHT = $(addsuffix /...,$(addprefix ./,aci agent app campaign fault grade guard image kit llm observe problem record report server session \
	shell workload world $(addprefix internal/,adopt builtin dist english kuberc logs manifest nesting socketpair strict term thought token) \
	$(addprefix cloud/embedded/,chance chaos cri kubeproxy loopback netpolicy provisioner vfs vnet))) ./cloud ./cloud/kube ./test/fidelity ./test/realcluster/...

# What `make run` shows.
PROBLEM ?= revoke_auth_mongodb-mitigation-1

# What releases are for.
DIST_ARCHS = amd64 arm64

.PHONY: help build labapp dist run test race lint ci fix bench hostile pictures docs-test conformance realcluster clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## build bin/aiopslab
	$(COMPILE) build -buildvcs=auto -ldflags='$(LDFLAGS)' -o bin/aiopslab ./cmd/aiopslab

labapp: ## build bin/labapp, which containers of `aiopslab images build` run
	$(COMPILE) build -ldflags='$(LDFLAGS)' -o bin/labapp ./cmd/labapp

# The version is the commit's tag, or its date. Nothing that is made depends on where or when, only on the commit and on
# Go's own version.
dist: ## make what people install, in dist/: archives, Debian packages, images, checksums
	rm -rf dist
	for arch in $(DIST_ARCHS); do \
		GOOS=linux GOARCH=$$arch $(COMPILE) build -trimpath -buildvcs=true -ldflags='$(LDFLAGS)' \
			-o dist/programs/$$arch/ ./cmd/aiopslab ./cmd/labapp || exit; \
	done
	$(COMPILE) run ./internal/dist

run: build ## watch an agent work on an incident, and its verdict
	bin/aiopslab run $(PROBLEM) --hand-over alert

# What takes longest begins first, and has all the others beside it: as many as there are processors. Users of an
# application on a starved machine are not served, and its tests fail. It is make lint that vets.
test: ## run all tests
	$(TEST) --packages='./internal/cli ./test/faults ./cloud/embedded ./test/apps ./...' -- \
		-timeout 30m -vet=off

race: ## run the tests of the packages without a control plane under the race detector
	CGO_ENABLED=1 $(TEST) --packages='$(LIGHT)' -- -timeout 30m -vet=off -race

lint: ## vet, staticcheck, formatting, width, tidiness
	$(COMPILE) vet ./...
	GOOS=darwin $(COMPILE) vet $(LIGHT)
	$(TOOL) staticcheck ./...
	@out=$$($(TOOL) gofumpt -l .); test -z "$$out" || { echo "gofumpt: run 'make fix' for:" $$out; exit 1; }
	$(COMPILE) test -run TestWidth ./internal/policy
	$(GO) mod tidy -diff
	$(GO) -C examples/outside mod tidy -diff

# A package in which something is left running is not forgiven before it has passed.
WHOLE = GO='$(GO)' .ci/whole bin/tests.json -timeout 30m -vet=off

# In this order: what is quick to find is found first. A few tests that fail are run once more, by themselves: on a
# machine that others use, a wait may be too short. The summary names them, a check on a real cluster says that it was
# repeated, and a race that was found is not forgiven.
ci: AGAIN = --jsonfile=bin/tests.json --rerun-fails=1 --rerun-fails-max-failures=10 --rerun-fails-abort-on-data-race
ci: ## all that CI does on a clean clone (.ci/run): lint, race, a problem on a real cluster, test
	$(MAKE) lint
	mkdir -p bin
	$(MAKE) race AGAIN='$(AGAIN)'
	CGO_ENABLED=1 $(WHOLE) -race
	test/realcluster/run || test $$? = 3 || { \
		echo "REPEATED: the check on a real cluster failed, and is run once more; what it said is above" >&2; \
		test/realcluster/run && echo "REPEATED: it passed the second time, so something is flaky" >&2; }
	$(MAKE) test AGAIN='$(AGAIN)'
	$(WHOLE)

fix: ## format and tidy
	$(TOOL) gofumpt -w .
	$(GO) mod tidy
	$(GO) -C examples/outside mod tidy

bench: build ## measure speed and memory, compare with stock settings, and try 10,000 agents in transactions
	$(COMPILE) test ./guard -run TestNeverLeftWorse -v -count=1 -rapid.checks=10000
	$(COMPILE) run ./internal/bench

hostile: ## try everything an enemy would (CLASS=memory for one class)
	$(COMPILE) test ./internal/cli -run TestHostile -v -count=1 -timeout 4h -hostile -hostile.class='$(CLASS)'
	test -n '$(CLASS)' || $(COMPILE) test ./test/faults -run TestSockShop -v -count=1 -wrong

pictures: ## paint the pictures of the docs: the pages in a browser, by their tests
	mkdir -p docs/pictures
	AIOPSLAB_PICTURES=$(CURDIR)/docs/pictures $(COMPILE) test -count 1 -run 'TestBrowser.*Readable' ./server/page

docs-test: ## run every command of README and docs
	$(COMPILE) test ./internal/cli -run TestDoc -v -count=1 -timeout 4h -docs

conformance: ## run Kubernetes' conformance suite (GROUP=sig-cli for one group)
	test/conformance/run $(GROUP)

realcluster: ## prove a problem on a real Kubernetes of one node, where the machine can have one (Linux, root)
	test/realcluster/run

clean: ## remove what was built
	rm -rf bin dist
