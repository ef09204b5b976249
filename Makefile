# Builds and tests need Go alone. `make help` prints the text after each ##.

GO      ?= go
FUZZ    ?= 20s
KILLS   ?= 1000
MESSAGES ?= 10000000
QUIET   ?= 10000
SEEDS   ?= 2000
SEED    ?= 1
DIST    := dist

HTTP1   := nethttpomithttp2# the page is served by HTTP/1.1 alone
STATIC  := CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -tags $(HTTP1) -ldflags "-s -w"
# The long tests, and others at full length
SLOW    := -tags slow,$(HTTP1)
# Packages without a goroutine, in them or in their tests, where the race detector has nothing to find
ALONE   := ./ci/... ./cmd/edge-lab ./configs ./lab/... ./model/... ./persist \
	./internal/config ./internal/dataset ./internal/eval ./internal/exit ./internal/inspect ./internal/predict ./internal/process ./internal/propose ./internal/report/... ./internal/statefile \
	./online/active ./online/conformal ./online/drift ./online/fleet ./online/forest ./online/mixture ./online/natural ./online/score ./online/train ./online/wire \
	./stream/codec ./stream/field ./stream/membership ./stream/signal/... ./stream/topic ./test/rules ./test/simulation/patch

# Tests that learn for long, run commands, measure memory, or damage each part of a file, in a test's own
# goroutine or in processes with one, and long ones of daemons that shorter ones also run
LASTING := $(shell paste -sd'|' ci/race.txt)

.PHONY: help build test slow race torture faults load soak simulate defects endure bench fuzz cover lint vuln arm sizes emulate demo clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

build: ## build ./edge for this machine
	$(GO) build -trimpath -o edge ./cmd/edge

test: ## run the quick tests, about four minutes of processor time
	$(GO) test ./...

slow: ## run the long tests, and those at full length that are shorter in `make test`: kills, failing operations, power cuts, failpoints, load, soak
	$(GO) test $(SLOW) -timeout 30m -p 4 $(if $(SKIP),-skip '$(SKIP)') $(shell $(GO) run ./ci/long)

race: ## run the quick tests with the race detector, the packages that last longest first, but for tests that last long in one goroutine
	CGO_ENABLED=1 $(GO) test -race -short -timeout 30m -p 4 -skip '^($(LASTING))$$' $(filter-out $(shell $(GO) list $(ALONE)),$(shell $(GO) list ./... | sort -r))

torture: ## kill a daemon KILLS (1000) times under load from mosquitto, the daemons of a fleet, and for ten minutes the servers of its cluster, and stop its broker
	CI=true EDGE_TORTURE=$(KILLS) EDGE_CLUSTER=600 EDGE_FLAPPING=600 $(GO) test $(SLOW) ./test/torture -run '^(TestTorture|TestTortureOfFleet|TestFleetOnCluster|TestFleetOnFlappingBroker)$$' -count 1 -timeout 150m -v

faults: ## let each disk operation of a daemon fail, be its last, or be lost to a power cut; let it panic between any two steps
	CI=true EDGE_OPERATIONS=1 EDGE_CUTS=20 $(GO) test $(SLOW) ./test/faults -run 'EachOperation|^TestPowerLoss$$|^TestFailpoints$$|^TestPanicInTheLearner$$' -count 1 -timeout 60m -v

load: ## send a daemon twice the labels that it can learn, for ten minutes
	CI=true EDGE_LOAD=600 $(GO) test $(SLOW) ./test/load -run '^TestLoad$$' -count 1 -timeout 60m -v

soak: ## send a daemon MESSAGES (10 000 000), a fault in each QUIET (10 000), and watch its memory
	CI=true EDGE_SOAK=$(MESSAGES) EDGE_SOAK_QUIET=$(QUIET) $(GO) test $(SLOW) ./test/load -run '^TestSoak$$' -count 1 -timeout 12h -v

simulate: ## simulate SEEDS (2000) schedules of node, broker, network and disk in virtual time, from SEED on
	$(GO) run ./test/simulation/patch -o $(DIST)/simulation test/simulation/patches/runtime.txt
	$(GO) test -c -overlay $(DIST)/simulation/overlay.json -o $(DIST)/simulation/test ./test/simulation
	cd test/simulation && ./run.sh ../../$(DIST)/simulation/test $(SEED) $(SEEDS) $(if $(TRACE),-trace)

defects: ## plant each defect of test/simulation/patches/defects, print the first seed that detects it
	SEEDS=$(SEEDS) test/simulation/defects.sh

endure: ## train small models with a million samples one by one, and 250 000 of one class
	EDGE_ENDURE=50 $(GO) test ./online -run '^TestEndure' -count 1 -timeout 60m -v

bench: ## run all benchmarks: each part, a step beside gonum and OpenBLAS, the daemon beside an echo and other programs, its writes, wake-ups, memory, start and recovery
	$(GO) test -run '^$$' -bench . -benchmem ./model/... ./online ./persist ./stream/...
	docs/results/steps.sh
	$(GO) test ./test/load -run '^$$' -bench EndToEnd -benchtime 20000x
	for part in peers writes idle start models recovery; do echo "== $$part"; docs/results/$$part.sh || exit 1; done

fuzz: ## run every fuzz target for FUZZ (20s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) $$pkg; \
		done; \
	done

cover: ## run all tests, including the long ones, and write dist/coverage.html
	@mkdir -p $(DIST)
	$(GO) test $(SLOW) -timeout 30m -coverpkg=./... -coverprofile=$(DIST)/coverage.out ./...
	$(GO) tool cover -html=$(DIST)/coverage.out -o $(DIST)/coverage.html
	$(GO) tool cover -func=$(DIST)/coverage.out | tail -n 1

lint: ## run gofmt, go vet and staticcheck, also on the long tests
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt'd: $$unformatted"; exit 1; fi
	$(GO) vet $(SLOW) ./...
	$(GO) tool staticcheck $(SLOW) ./...
	for module in packaging model/dense/bench; do (cd $$module && $(GO) vet ./...) || exit 1; done

vuln: ## search the dependencies for known vulnerabilities; needs vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...

# build FILES builds the program for each of ARCHES, as FILES followed by its name.
build = @set -e; for arch in $(ARCHES); do \
		case $$arch in armv*) export GOARCH=arm GOARM=$${arch\#armv} ;; *) export GOARCH=$$arch ;; esac; \
		echo "$(1)$$arch"; $(STATIC) $(2) -o $(1)$$arch ./cmd/edge; \
	done

arm: ARCHES = armv6 armv7 arm64 amd64
arm: ## build static Linux binaries for armv6, armv7, arm64 and amd64 into dist/
	$(call build,$(DIST)/edge_linux_)

sizes: ## print the share of each module in the arm64 program
	GOARCH=arm64 $(subst -s -w,-w,$(STATIC)) -o $(DIST)/edge_symbols ./cmd/edge
	$(GO) run ./ci/sizes $(DIST)/edge_symbols

emulate: ## run quick tests on arm64 and armv6, emulated; needs qemu-user-static; ALL=all leaves out none for its length
	mkdir -p $(DIST)/emulated/arm64 $(DIST)/emulated/armv6
	GOARCH=arm GOARM=6 $(STATIC) -o $(DIST)/emulated/armv6/edge ./cmd/edge
	ci/emulate/run $(ALL)

.PHONY: packages release
packages: ARCHES = amd64 arm64 armv7 armv6 riscv64
packages: man ## make deb, rpm, apk and ipk packages, images, bills of material, checksums in dist/release; MAINTAINER, HOMEPAGE, LICENSE go into them
	rm -rf $(DIST)/bin
	mkdir -p $(DIST)/bin/completion
	$(call build,$(DIST)/bin/edge_,-buildvcs=true)
	cp -r $(DIST)/man $(DIST)/bin/man
	for shell in bash zsh fish; do $(GO) run ./cmd/edge completion $$shell >$(DIST)/bin/completion/edge.$$shell; done
	cd packaging && $(GO) run . --arch "$(ARCHES)" --bin ../$(DIST)/bin --dist ../$(DIST)/release \
		$(if $(MAINTAINER),--maintainer '$(MAINTAINER)') $(if $(HOMEPAGE),--homepage '$(HOMEPAGE)') $(if $(LICENSE),--license '$(LICENSE)')

release: lint test race slow packages ## check, test and make a release

.PHONY: man
man: ## write the manual pages into dist/man; their date is that of the last commit
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(GO) test ./cmd/edge -run '^TestManPages$$' -count 1 -args -man $(CURDIR)/$(DIST)/man

demo: ## run the demo for 30 seconds
	$(GO) run ./cmd/edge demo --for 30s

clean: ## remove what was built
	rm -rf edge $(DIST)
