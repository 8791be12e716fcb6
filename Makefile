# What developers run; CONTRIBUTING.md describes the main targets.

GO ?= go

# Tools run at these versions, and are none of the program's dependencies.
GOFUMPT     = $(GO) run mvdan.cc/gofumpt@v0.12.0
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI    = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0
GREMLINS    = $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
GORELEASER  = $(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0

BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w"

.PHONY: build
build: # one static binary in bin/loki
	$(BUILD) -o bin/loki ./cmd/loki

# What an unpacked release has, beside the program.
.PHONY: manual
manual: build # the manual page and completions, in bin
	@mkdir -p bin/completions
	bin/loki --man >bin/loki.1 && gzip -9nf bin/loki.1
	for s in bash zsh fish elvish nushell powershell; do bin/loki --completions $$s >bin/completions/loki.$$s || exit 1; done

PREFIX ?= $(HOME)/.local

.PHONY: install
install: manual # the program, its manual page and completions below PREFIX; DESTDIR is put in front of it
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' sh ./install.sh --from bin

.PHONY: uninstall
uninstall: # removes what make install or install.sh has installed below PREFIX
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' sh ./install.sh --uninstall

.PHONY: pruned
pruned: # fails if something keeps the linker from dropping methods, which costs 15 MB, or if the program is larger than 60 MB
	@! $(GO) build -ldflags=-dumpdep -o /dev/null ./cmd/loki 2>&1 | grep -m 3 '<ReflectMethod>'
	@f=$$(mktemp) && trap 'rm -f "$$f"' EXIT && GOOS=linux GOARCH=amd64 $(GO) build -ldflags='-s -w' -o "$$f" ./cmd/loki && size=$$(wc -c <"$$f") && echo "linux/amd64: $$size bytes" && test "$$size" -le 60000000

.PHONY: test
test: # all tests, with samples of the largest sets of inputs; LOKI_TEST=full leaves nothing out
	$(GO) test ./...

# The race detector leaves out SQLite itself, C translated to Go, and the C library that it uses: what it could
# find there is not ours, and it makes them many times as slow. Our use of the driver is watched. go vet has a
# target of its own.
UNWATCHED = -race=false -d=checkptr=0
RACE      = -race -vet=off -gcflags='modernc.org/sqlite/lib=$(UNWATCHED)' -gcflags='modernc.org/libc=$(UNWATCHED)' -gcflags='modernc.org/memory=$(UNWATCHED)'

# By default each program with the detector sleeps for a second before it ends, in case another goroutine is just about to
# report something: two and a half minutes for 150 packages.
PACKAGES = ./...
SKIP     =
.PHONY: race
race: # all tests with the race detector, but for those that SKIP matches; LOKI_TEST=full leaves nothing out
	GORACE=atexit_sleep_ms=0 $(GO) test $(RACE) -timeout 25m -shuffle=on -skip '$(SKIP)' $(PACKAGES)

.PHONY: soak
soak: # whole, what the other tests try a part of, and each kill of the kill tests; half an hour
	LOKI_TEST=full LOKI_KILL_TEST=full $(GO) test -timeout 60m ./...

.PHONY: fleet
fleet: # three servers on one database with 500 runs, while servers are killed and the database restarts; needs PostgreSQL
	LOKI_TEST=full $(GO) test -timeout 20m -count=1 -run 'TestFleet$$' -v ./internal/frontend/server

.PHONY: temporal
temporal: # the program for Temporal, which is a module of its own: its tests, without a server
	cd cmd/loki-temporal && $(GO) test -mod=mod -timeout 240s $(PACKAGES)

# go vet would compile the server a second time. -args -update writes the history that the replay test of the driver reads.
.PHONY: temporal-kill
temporal-kill: # runs on a real Temporal server whose workers are killed; its first compilation takes 12 minutes of CPU time
	cd cmd/loki-temporal/killtest && $(GO) test -vet=off -timeout 900s -count=1 -v .

.PHONY: check
check: format vet staticcheck tidy test # what has to pass before a commit

.PHONY: format
format: # names the files that are not formatted, and fails if there are any
	@files=$$($(GOFUMPT) -l .) || exit 1; \
	if [ -n "$$files" ]; then printf 'not formatted, run make fix:\n%s\n' "$$files"; exit 1; fi

.PHONY: fix
fix: # formats all files
	$(GOFUMPT) -w .

.PHONY: vet
vet: # also the modules of their own that the others do not see, but for the one with the server of Temporal
	$(GO) vet ./...
	cd bench/rag/peers && $(GO) vet -mod=mod ./... # its go.mod follows the program's
	cd cmd/loki-temporal && $(GO) vet -mod=mod ./... # likewise

.PHONY: staticcheck
staticcheck:
	$(STATICCHECK) ./...
	cd cmd/loki-temporal && $(STATICCHECK) ./...

.PHONY: tidy
tidy: # shows what go mod tidy would change, and fails if that is anything
	$(GO) mod tidy -diff
	cd cmd/loki-temporal && $(GO) mod tidy -diff
	cd cmd/loki-temporal/killtest && $(GO) mod tidy -diff

.PHONY: lint
lint: # the further linters of .golangci.yml; the first run takes minutes
	$(GOLANGCI) run

.PHONY: vuln
vuln: # known vulnerabilities in what the program calls; needs https://vuln.go.dev
	$(GOVULNCHECK) ./...

.PHONY: cross
cross: # the program builds for every system it is for
	@for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
		echo "$$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(BUILD) -o /dev/null ./cmd/loki || exit 1; \
	done

# make bench BENCH=Chain COUNT=10 > new.txt, for benchstat
BENCH ?= .
COUNT ?= 1

.PHONY: bench
bench: # a table of the engine's speed
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./bench/...

.PHONY: bench-rag
bench-rag: # knowledge bases beside bleve and chromem-go, which are in a module of their own
	cd bench/rag/peers && $(GO) run -mod=mod . -quality ../../.. && $(GO) run -mod=mod .

# Where the documents are kept that the comparison of readers fetches: some 60 MB from Debian, Go and npm.
DOCUMENTS ?= $(HOME)/.cache/loki-bench-documents

.PHONY: bench-documents
bench-documents: # what is read of real documents, beside pdftotext, pandoc and LibreOffice as far as they are installed
	bench/documents/fetch.sh $(DOCUMENTS)
	$(GO) run ./bench/documents -below 97 $(DOCUMENTS)
	$(GO) run ./bench/documents -damage 200 $(DOCUMENTS)

# Finding short inputs is worth little here and takes most of the time, hence the
# limit on minimizing.
FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: # every fuzz test for FUZZTIME
	@grep -rHoE '^func Fuzz([A-Z0-9_][A-Za-z0-9_]*)?\(' --include='*_test.go' . | sort | while IFS=: read -r file func; do \
		name=$${func#func }; name=$${name%?}; \
		echo "$${file%/*} $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$${file%/*}" || exit 1; \
	done

# How long all endpoints of the server are sent requests of all kinds.
API_FUZZTIME ?= 5m

.PHONY: fuzz-api
fuzz-api: # valid, nearly valid and hostile requests to every endpoint that the OpenAPI document has
	LOKI_API_FUZZ=$(API_FUZZTIME) $(GO) test -count=1 -timeout 30m -v -run TestHostileRequests ./internal/frontend/server

.PHONY: attack
attack: # 100,000 bad keys, 5,000 slow connections, hostile bodies, and twice the load that a server takes; minutes
	LOKI_TEST=full $(GO) test -count=1 -timeout 30m -v -run 'TestBadKeys|TestBadBodies|TestSlowClients|TestOverload' ./internal/frontend/server

# How long a server gets 80 % of the load that it can take.
LOAD_TIME ?= 10m

.PHONY: load
load: # ten lines with the rate, the slowest requests and the memory, and whether they stay the same
	LOKI_LOAD=$(LOAD_TIME) $(GO) test -count=1 -timeout 0 -run '^$$' -bench Steady -benchtime 1x ./bench/server

.PHONY: deploy-check
deploy-check: # the files of deploy/, with the tools that are installed: systemd-analyze, nginx
	cd deploy/testdata/check && $(GO) vet . && $(GO) run . ../../kubernetes/*.yaml
	@if command -v systemd-analyze >/dev/null; then deploy/testdata/check/unit.sh; else echo "skipped: systemd-analyze is not installed"; fi
	@if command -v nginx >/dev/null && command -v openssl >/dev/null; then deploy/testdata/check/nginx.sh; else echo "skipped: nginx or openssl is not installed"; fi

# How many bytes are typed in each of the editor's two modes.
RANDOM_BYTES ?= 10485760

.PHONY: repl-random
repl-random: # types 10 MB of random bytes at the line editor
	LOKI_RANDOM_BYTES=$(RANDOM_BYTES) $(GO) test -count=1 -timeout 30m -run TestRandomBytes ./internal/frontend/repl/line

TEXTS ?= 100000

.PHONY: shells
shells: # runs TEXTS texts that are allowed unasked in bash, dash, zsh and mksh, and looks for files that changed
	LOKI_TEXTS=$(TEXTS) $(GO) test -count=1 -timeout 300m -v -run 'TestShells$$' ./internal/tool/permission

# One package at a time, without those below it: each change is compiled and tested, which
# takes a minute for a hundred of them and more. What lives is a change that no test of the
# package notices. What timed out is either endless or was only slow: look at it. WORKERS=2
# is faster on an idle machine.
PKG     ?= ./internal/llm/engine
WORKERS ?= 1

.PHONY: mutants
mutants: # the changes to the code of PKG that its own tests do not notice
	$(GREMLINS) unleash --workers $(WORKERS) --timeout-coefficient 100 --exclude-files / --output-statuses lt $(PKG)

# A release of install.sh knows where its releases are and who signs them.
STAMPED ?= bin/release/install.sh

.PHONY: bin/release/install.sh
bin/release/install.sh:
	@mkdir -p $(@D)
	sed -e 's|LOKI_RELEASE_FEED:-}|LOKI_RELEASE_FEED:-$(LOKI_RELEASE_FEED)}|' -e 's|LOKI_RELEASE_KEY:-}|LOKI_RELEASE_KEY:-$(LOKI_RELEASE_KEY)}|' install.sh >$(STAMPED)
	@chmod +x $(STAMPED)

# The program that signs is built once, and SBOMs need syft.
RELEASE = GOBIN=$(CURDIR)/bin/tools $(GO) install aead.dev/minisign/cmd/minisign@v0.3.0 && PATH=$(CURDIR)/bin/tools:$$PATH $(GORELEASER) release --clean
NO_SYFT = $$(command -v syft >/dev/null || echo --skip=sbom)

KEY := bin/release/snapshot

.PHONY: snapshot
snapshot: # a release in bin/dist, as users would get it, signed with a key of its own
	@mkdir -p bin/release
	GOBIN=$(CURDIR)/bin/tools $(GO) install aead.dev/minisign/cmd/minisign@v0.3.0
	@test -f $(KEY).key || bin/tools/minisign -G -W -p $(KEY).pub -s $(KEY).key
	LOKI_SIGNING_KEY=$(KEY).key LOKI_RELEASE_KEY=$$(tail -n 1 $(KEY).pub) && export LOKI_SIGNING_KEY LOKI_RELEASE_KEY && $(RELEASE) --snapshot $(NO_SYFT)

.PHONY: release
release: # publishes the release of the tag that is checked out, as a draft; docs/updates.md names the variables
	$(RELEASE) $(NO_SYFT)

.PHONY: packages
packages: # the packages for Linux of this computer's architecture, in bin/dist; make snapshot makes all others too
	@mkdir -p bin/release
	sed "s/^\( *targets:\).*/\1 [linux_$$($(GO) env GOARCH)]/" .goreleaser.yaml >bin/release/packages.yaml
	$(GORELEASER) release --clean --snapshot --config bin/release/packages.yaml --skip=sign,sbom,homebrew,scoop,nix

.PHONY: packages-check
packages-check: packages # installs the package for Debian, runs the program and removes it; needs dpkg and root
	deploy/testdata/check/deb.sh bin/dist/*.deb

ACTIONLINT = $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: scripts
scripts: # install.sh and the workflows for GitHub
	@if command -v shellcheck >/dev/null; then shellcheck install.sh deploy/testdata/check/*.sh; else echo "skipped: shellcheck is not installed"; fi
	$(ACTIONLINT)
