# Each target installs what it needs into .venv; a stamp of the requirements skips this while they are unchanged.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# On Linux, pip installs torch with CUDA, several GB, by default. For the CPU build:
#   make app TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
# Modules are compiled when they are first imported, as set-up does with those that the app needs; pip would compile all
PIP := $(BIN)/python -m pip install --no-compile --disable-pip-version-check --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
APP_STAMP := $(VENV)/.app-$(shell cat requirements.txt Makefile | cksum | cut -d' ' -f1)
DEV_STAMP := $(VENV)/.dev-$(shell cat requirements.txt requirements-cluster.txt requirements-optuna.txt requirements-dev.txt requirements-reference.txt Makefile | cksum | cut -d' ' -f1)
# numba compiles a file again when that file changes, but not when a function changes that it calls in another file
KERNELS := $(shell grep -rl --include='*.py' 'from numba import' bandits)
KERNEL_STAMP := $(VENV)/.kernels-$(shell cat $(KERNELS) | cksum | cut -d' ' -f1)
TEST_KERNEL_STAMP := $(VENV)/.test-kernels-$(shell cat $(KERNELS) | cksum | cut -d' ' -f1)
# Compiled modules are kept even if the environment forbids it: the app and the tests start many processes
export PYTHONDONTWRITEBYTECODE :=
APP_MODULES := pandas, plotly.graph_objects, pyarrow.parquet, sklearn.ensemble, streamlit.web.bootstrap, torch
PORT ?= 8501
ARGS ?=
MINUTES ?= 30
VERSIONS ?= 3.12 3.13

.PHONY: help setup setup-dev app test test-quick test-slow test-all lint bench stress mutants reproduce static docs versions clean

help:
	@echo "make app        install and start the app on http://127.0.0.1:$(PORT)"
	@echo "make test       install and run what must be true after every change: lint, types, quick tests (10 minutes)"
	@echo "make test-slow  run the slow tests: processes, kills, clusters, documents, browser journeys"
	@echo "make test-all   run make test and make test-slow (35 minutes)"
	@echo "make lint       run ruff and mypy only"
	@echo "make bench      measure speed as ratios and write benchmarks/RESULTS.md (10 minutes)"
	@echo "make reproduce  recompute the published figures and write docs/ (hours)"
	@echo "make stress     repeat kills, bit flips, malformed input and property tests; load tests (2 hours)"
	@echo "make mutants    put faults into the files that differ from the main branch; print those that no test notices"
	@echo "make static     write static/: a lesson and presets that run in the browser, without an installation"
	@echo "make docs       install MkDocs and write site/: guide, lessons and reference; links are checked"
	@echo "make versions   run the tests of the core with Python 3.12 and 3.13 (pyenv), without extras"
	@echo "make clean      delete .venv and the caches of the tools"
	@echo
	@echo "TORCH_INDEX=https://download.pytorch.org/whl/cpu  installs the CPU build of torch (Linux)"
	@echo "PORT=8600                                         starts the app on another port"
	@echo 'ARGS="-k linucb"                                  passes options to pytest, or to Streamlit'
	@echo 'ARGS="linear --sample 100 --seed 1"               names files of make mutants, and draws faults at random'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(APP_STAMP): $(VENV)/bin/python
	@echo "Installing requirements (a few minutes the first time) ..."
	@$(PIP) -r requirements.txt
	@rm -f $(VENV)/.app-* && touch $@

$(KERNEL_STAMP): $(APP_STAMP)
	@echo "Compiling the kernels ..."
	@rm -f $(VENV)/.kernels-* && find bandits -name '*.nb[ic]' -delete
	@$(BIN)/python -c "import $(APP_MODULES)"
	@$(BIN)/python -c "from bandits.runtime import kernels; any(map(kernels.compile_for, kernels.USUAL))"
	@touch $@

# those that the app compiles when an agent is first used, which tests would do in several processes at the same time
$(TEST_KERNEL_STAMP): $(KERNEL_STAMP) $(DEV_STAMP)
	@echo "Compiling the kernels of all agents ..."
	@rm -f $(VENV)/.test-kernels-*
	@$(BIN)/python -m tests.compile_kernels
	@touch $@

$(DEV_STAMP): $(APP_STAMP)
	@echo "Installing test requirements ..."
	@$(PIP) -r requirements.txt -r requirements-dev.txt
	@$(PIP) --no-deps --ignore-requires-python -r requirements-reference.txt
	@$(BIN)/python -m tests.browser.chromium
	@$(BIN)/python -m tests.serving.redis_server
	@rm -f $(VENV)/.dev-* && touch $@

setup: $(KERNEL_STAMP)
setup-dev: $(TEST_KERNEL_STAMP)

app: setup
	$(BIN)/python -m streamlit run app.py --server.port $(PORT) $(ARGS)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# in the order of tests/conftest.py, which says what one process runs
PYTEST := $(BIN)/python -m pytest --no-loadscope-reorder

# mypy reads the package in one process while the tests start in others; a third process uses what two leave idle
test: setup-dev
	@$(MAKE) --no-print-directory -j 2 lint test-quick

test-quick: setup-dev
	$(PYTEST) -n 3 -m "not slow" $(ARGS)

# tests of the browser and of kills wait for other processes: a third process uses what two leave idle
test-slow: setup-dev
	$(PYTEST) -n 3 -m slow --durations=30 $(ARGS)

test-all: test test-slow

bench: setup
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.speed.first_curve --write
	@$(BIN)/python -m benchmarks.measure

stress: setup-dev
	BANDITS_STRESS=1 $(PYTEST) -n 2 -m "not browser" $(ARGS) tests/slow/test_kill_worker_and_server.py tests/slow/test_kill_sweep.py tests/slow/test_shares.py \
		tests/storage/test_run_store.py tests/storage/test_damage.py tests/storage/test_crash_points.py tests/storage/test_whole_home.py \
		tests/experiments/test_malformed_input.py tests/experiments/test_validation.py tests/experiments/test_change_presets.py \
		tests/experiments/test_adaptation.py tests/agents/test_guards.py tests/agents/test_forgetting.py tests/agents/test_propensity.py \
		tests/results/test_change_conclusion.py tests/results/test_lost_clicks.py tests/results/test_preview.py \
		tests/results/test_price_of_forgetting.py tests/results/test_recovery.py tests/offpolicy/test_simulated.py \
		tests/experiments/test_row_invariance.py tests/experiments/test_compiled_stepping.py tests/models/test_gradient_covariance.py tests/agents/test_neural.py \
		tests/simulators/test_uploads.py tests/experiments/test_url.py tests/models/test_nonstationary.py \
		tests/contract/test_agents.py tests/agents/test_ties.py tests/slow/test_memory_estimates.py tests/slow/test_defaults.py tests/slow/test_published.py \
		tests/slow/test_exploration_verdicts.py tests/slow/test_first_run.py tests/slow/test_refinement.py tests/slow/test_stated_probabilities.py tests/results/test_sharing.py \
		tests/offpolicy/test_replayed_agent.py tests/offpolicy/test_promises.py tests/offpolicy/test_debiased.py tests/offpolicy/test_evaluation.py \
		tests/sweeps/test_at_best.py tests/diagnostics/test_plateau.py tests/diagnostics/test_findings.py tests/cli/test_plugins.py \
		tests/sweeps/test_block_check.py tests/sweeps/test_best_region.py tests/pages/test_arena.py tests/pages/test_what_if.py tests/pages/test_instant_channel.py \
		tests/serving/test_http.py tests/serving/test_api.py tests/lessons/test_checking.py tests/models/test_largest.py \
		tests/results/test_break_even.py tests/sweeps/test_wins_from.py tests/pages/test_shock_lab.py tests/pages/test_diagnostics.py \
		tests/slow/test_dask.py
	BANDITS_STRESS=1 $(BIN)/python -m pytest $(ARGS) tests/browser
	$(BIN)/python -m benchmarks.reproduction.ranking scale
	$(BIN)/python -m benchmarks.load.viewers --viewers 30 --minutes $(MINUTES)
	$(BIN)/python -m benchmarks.load.mixed --sessions 50 --minutes 5
	$(BIN)/python -m benchmarks.load.attacks
	$(BIN)/python -m benchmarks.random_memory 200
	$(BIN)/python -m benchmarks.load.serving --kills 60
	$(BIN)/python -m benchmarks.load.serving --throughput

mutants: setup-dev
	$(BIN)/python -m tests.mutants $(ARGS)

reproduce: setup
	$(BIN)/python -m benchmarks.reproduction.tables
	$(BIN)/python -m benchmarks.reproduction.warm_start
	$(BIN)/python -m benchmarks.reproduction.static_mlp
	$(BIN)/python -m benchmarks.reproduction.showdown
	$(BIN)/python -m benchmarks.reproduction.ranking
	$(BIN)/python -m benchmarks.reproduction.published
	$(BIN)/python -m benchmarks.reproduction.levers --write
	$(BIN)/python -m benchmarks.reproduction.sessions
	$(BIN)/python -m benchmarks.reproduction.networks
	$(BIN)/python -m benchmarks.reproduction.rollout
	$(BIN)/python -m benchmarks.reproduction.trained_versions
	$(BIN)/python -m benchmarks.reproduction.trained_versions --worlds 20 --decisions 100000
	$(BIN)/python -m benchmarks.reproduction.sources
	$(BIN)/python -m benchmarks.reproduction.questions --write
	$(BIN)/python -m benchmarks.reproduction.preset_values --write
	$(BIN)/python -m bandits lesson check --seeds 8
	@$(BIN)/python -m benchmarks.measure

static: setup
	$(BIN)/python -m docs.make_static

docs: setup
	@$(PIP) -r requirements.txt -r requirements-docs.txt
	$(BIN)/python -m docs.make_site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -f build/mkdocs.yml --strict --quiet
	@echo "Open site/index.html"

# the core alone: without the app and without the other extras
CORE := numpy|pandas|scikit-learn|scipy|numba|llvmlite|pyarrow|pydantic|platformdirs|threadpoolctl|tqdm|plotly
CORE_TESTS := tests/base/test_selection.py tests/tables $(addprefix tests/models/test_,$(addsuffix .py,logistic beta_draws empirical_bayes nonstationary)) \
	tests/agents/test_plain_agents.py tests/agents/test_ties.py $(addprefix tests/experiments/test_,$(addsuffix .py,history labels url))
versions: $(addprefix version-,$(VERSIONS))
version-%:
	@python=$$(ls -d ~/.pyenv/versions/$*.*/bin/python 2>/dev/null | tail -1); $${python:-python$*} -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet $$(grep -hE '^($(CORE)|pytest|hypothesis)==' requirements.txt requirements-dev.txt)
	$(VENV)-$*/bin/python -m pytest -m "not slow" $(CORE_TESTS)

clean:
	rm -rf $(VENV) $(VENV)-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
