# Bellhop's tasks. `make` alone prints this list.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CODE   := shared infra functions tests
# pip takes fifteen times as long, and is tried where uv finds no index (uv does not read pip.conf).
UV     := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip

# Images that are to stay small set it: each process would compile again all that it loads.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help install control-plane demo package release charts site terraform reference test test-oldest test-thorough test-fast collect coverage lint types imports docs house check format bench oracle fuzz mutants golden lock clean

help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it
demo: install ## Show the whole pipeline between two real clusters; KEEP=1 leaves it running
	@$(BIN)/python -m infra.lab build --without-controllers >/dev/null
	@$(BIN)/python -m infra.demo $(if $(filter-out no,$(KEEP)),--keep) $(if $(RECORD),--record $(RECORD))

control-plane: install ## Find or build the Kubernetes API server that demo and tests run on (4 minutes, once)
	@$(BIN)/python -m infra.lab build

##@ Ship it
package: install ## Build the functions' packages into dist; CLOUD=gcp for one, CHARTS=no without Helm
	@$(BIN)/python -m infra.package $(CLOUD)$(if $(filter no,$(CHARTS)), --no-charts)

release: install ## Build the files of a release into dist/release; PACKAGES=no IMAGE=no for fewer
	@$(BIN)/python -m infra.release $(if $(filter no,$(PACKAGES)),--no-packages) $(if $(filter no,$(IMAGE)),--no-image)

charts: install ## Pack the Helm charts into dist/charts
	@$(BIN)/python -m infra.charts

site: install ## Build the documentation as a site into dist/site, and check its links
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --jobs 2 -c infra/site . dist/site

##@ Work on it
install: $(READY) ## Make the virtual environment in .venv, with locked versions

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Bellhop needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) …"
	@awk '/^uv==/ {on = 1} on; on && !/\\$$/ {exit}' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock
	@{ $(UV) sync --quiet --require-hashes requirements.lock && $(UV) install --quiet --no-deps -e .; } || { \
	  echo "uv could not install; trying pip, which takes two minutes …" >&2 && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .; }
	@touch $@

terraform: install ## Format the Terraform modules, and write the tables of their READMEs
	terraform fmt -recursive terraform
	@$(BIN)/python -m infra.terraform_tables

reference: install ## Write the generated parts of the docs: commands, settings and values of the charts
	@$(BIN)/python -m infra.cli_page
	@$(BIN)/python -m infra.settings_page
	@$(BIN)/python -m infra.charts_page

# Some tests wait for servers while others compute, so there is one worker more than cores; each needs
# up to 2 GB. Files begin in the order of tests/conftest.py, which also says which tests need only
# `make check`.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 7 ? cores + 1 : 8)))
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
TRACED = tests/cli tests/contract tests/functions tests/golden tests/unit $(wildcard tests/infra/test_forwarder_*.py)

test: install control-plane ## Run the tests that a change needs, on real API servers; WORKERS=2 for less memory
	$(PYTEST) --part $(or $(PART),test)

test-oldest: install control-plane ## Run on Kubernetes 1.20 what must hold on the oldest version
	env -u KUBEBUILDER_ASSETS $(PYTEST) -m "oldest and not rest" $(shell grep -rl 'mark\.oldest' tests --include='*.py')

test-thorough: install control-plane oracle ## Run what repeats at length what the others show, before a release
	$(PYTEST) --part thorough

collect: install ## Compile all tests once, so that no worker of a parallel run has to
	@$(BIN)/python -m pytest --collect-only -q --part landing >/dev/null

test-fast: install ## Run the tests that need no servers
	$(BIN)/python -m pytest tests/unit

coverage: install control-plane oracle ## Run the tests of the library, and report which lines they run
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --part landing -m "not clocked" $(TRACED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: install ## Lint, and check the formatting
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: install ## Check the types
	$(BIN)/mypy shared infra functions tests/lab

imports: install ## Check that the layers hold
	$(BIN)/lint-imports --verbose --no-cache

docs: install ## Check that links and examples of the docs hold
	$(BIN)/python -m pytest tests/docs

house: install ## Count lines, concepts and private words; RATCHET=write keeps what fell
	@$(BIN)/python -m tests.house $(if $(filter write,$(RATCHET)),--lower)

check: lint types imports oracle ## Everything that CI runs
	$(MAKE) test PART=landing

format: install ## Format the code
	$(BIN)/ruff check --fix-only --quiet $(CODE)
	$(BIN)/ruff format --quiet $(CODE)

bench: install control-plane ## Run the benchmarks: ratios against a floor measured in the same run
	$(BIN)/python -m tests.benchmarks

oracle: install ## Build the Go oracle that template tests compare with (once)
	@$(BIN)/python -m tests.golden.programs oracle

fuzz: oracle control-plane ## Play 5,000 histories, and fuzz the template engine, for some minutes; FUZZ=1000 for longer
	PYTHONPATH=. $(BIN)/python -m tests.fakes.histories $$(($(or $(FUZZ),100) * 50))
	BELLHOP_FUZZ=1 $(BIN)/python -m pytest --timeout 0 tests/unit/histories/test_deaths.py tests/unit/configuration/test_*deaths.py
	BELLHOP_FUZZ=1 $(BIN)/python -m pytest --timeout 0 -m rest tests/unit
	BELLHOP_FUZZ=$(or $(FUZZ),100) $(BIN)/python -m pytest --timeout 0 tests/unit/gotemplate/test_properties.py
	BELLHOP_FUZZ=$(or $(FUZZ),100) $(BIN)/python -m pytest --timeout 0 tests/functions/test_fuzzed_requests.py
	@for round in $$(seq $$(($(or $(FUZZ),100) / 5 + 1))); do \
	  BELLHOP_FUZZ=1 $(BIN)/python -m pytest -q --timeout 0 tests/unit/gotemplate/test_oracle.py || exit 1; done

# mutmut takes the name of a module from its path below `src`, and its settings from setup.cfg.
MUTANTS = build/mutants
mutants: install ## Break one MODULE in small ways, and list what TESTS do not notice; WORKERS=1 for less load
	@test -n "$(MODULE)" -a -n "$(TESTS)" || { \
	  echo "make mutants MODULE=shared/bellhop/catalog/dependencies.py TESTS=tests/unit/catalog/test_dependencies.py" >&2; exit 1; }
	@rm -rf $(MUTANTS) && mkdir -p $(MUTANTS) && ln -s $(CURDIR)/shared $(MUTANTS)/src
	@ln -s $(addprefix $(CURDIR)/,docs functions infra pyproject.toml tests) $(MUTANTS)
	@printf '%s\n' '[mutmut]' 'source_paths = src' 'only_mutate = $(MODULE:shared/%=src/%)' 'also_copy =' \
	  ' docs' ' functions' ' infra' 'pytest_add_cli_args_test_selection =' $(TESTS:%=' %') > $(MUTANTS)/setup.cfg
	cd $(MUTANTS) && $(CURDIR)/$(BIN)/mutmut run --max-children $(WORKERS)
	@cd $(MUTANTS) && $(CURDIR)/$(BIN)/mutmut results

golden: install ## Make the golden files again with real Go, real Lua and kubectl 1.32 or newer
	$(BIN)/python -m tests.golden.gotemplate.regenerate
	$(BIN)/python -m tests.golden.lua.make
	$(BIN)/python -m tests.golden.patches.make

lock: install ## Lock the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile -q pyproject.toml --extra aws --extra cel --extra gcp --extra nats --group dev --universal \
	  --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements.lock --upgrade
	$(BIN)/uv pip compile -q pyproject.toml --extra aws --extra gcp --constraint requirements.lock --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --python-version 3.11 --python-platform linux -o infra/serve/requirements.txt

clean: ## Remove what was built here; the control plane and the oracle stay in their cache
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage .coverage.*
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +
