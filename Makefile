# The doors of the house. Each target is what its comment says and needs nothing
# but Go and make; tests of foreign clients need Node and Python 3 besides.

GO       ?= go
FUZZTIME ?= 30s

# The version stamp. VERSION_VAR is the one place that names the variable it is
# put into.
VERSION_VAR := main.version
VERSION     ?= $(shell git describe --always --dirty --tags 2>/dev/null || echo dev)

TOOL := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help run build test test-fast lint format bench fuzz corpus installs-live clients tasks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: build ## build, start the server, ask one question, show what happens
	$(GO) run ./test/quickstart

build: ## build bin/metier, stamped with the version
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X $(VERSION_VAR)=$(VERSION)' -o bin/metier ./cmd/metier

test: ## all tests with the race detector; test/sdk runs those of foreign clients
	$(GO) test -race ./...
	$(GO) test -run '^TestGate' ./internal/llm/openai ./test/bench
	$(GO) test ./test/hostile

test-fast: ## short tests, without the race detector: under a minute when built
	$(GO) test -short ./...

lint: ## format, vet, staticcheck, and the rules of the house
	@bad=$$($(TOOL) gofumpt -l .) || exit 1; \
		if [ -n "$$bad" ]; then echo "not formatted, run make format:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) test -count=1 ./internal/rules

format: ## write every file as lint wants it
	$(TOOL) gofumpt -w .

bench: ## measure against a bare reverse proxy
	$(GO) run ./test/bench

fuzz: ## run each fuzz test for FUZZTIME (30s)
	@set -e; grep -rn --include='*_test.go' -oE '^func Fuzz[A-Za-z0-9_]*' . \
		| sed -E 's|^(.*)/[^/]*:[0-9]+:func (.*)|\1 \2|' | sort | while read -r dir name; do \
		echo "fuzz $$dir $$name"; $(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null; \
	done

corpus: ## run over real skills and requests: METIER_CORPUS, METIER_CAPTURES
	@if [ -z "$(METIER_CORPUS)$(METIER_CAPTURES)" ]; then \
		echo "corpus: no folder: run make corpus METIER_CORPUS=/a/folder/of/skills METIER_CAPTURES=/a/folder/of/requests"; exit 2; fi
	METIER_CORPUS='$(METIER_CORPUS)' METIER_CAPTURES='$(METIER_CAPTURES)' \
		$(GO) test -count=1 -run 'Corpus|Captures' ./skill/... ./internal/server/... ./test/captures

installs-live: ## install one package each from the operator's own pip and npm registries
	METIER_INSTALLS_LIVE=1 $(GO) test -count=1 -run 'TestLive|TestReal' ./internal/workspace/packages

clients: build ## install coding agents from npm and have each finish a task through Metier
	$(GO) run ./test/clients $(CLIENTS)

tasks: ## thirty tasks of code work, with each class of mistakes, with recovery and without
	$(GO) run ./test/tasks

clean: ## remove what was built
	rm -rf bin
