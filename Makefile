# Every target sets up .venv first where needed, and is quick when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Packages that are too heavy for every run; LibreTranslate asks for an older numpy than the rest.
INTERCHANGE := .venv-interchange
LIBRETRANSLATE := .venv-libretranslate

.DEFAULT_GOAL := help
.PHONY: help install demo test check format hard-test mutation-test interchange-test huggingface-test \
	libretranslate-test workers-test machines-test gpu-stand-in gpu-test serve-test capture clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

install: $(INSTALLED)  ## Set up .venv with seqtool and all that its tests need

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,fast,serve,cjk]'
	touch $@

demo: install  ## Train on the demo corpus, translate from stdin, print a BLEU score (a few minutes)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh data/demo.sh

test: install  ## Run the tests
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: install  ## Format, lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports

# The soak takes one of the three processes, and hardly any time of a core.
SOAK_MINUTES ?= 30
hard-test: install  ## Damage, kills, full disks, hostile files, long lines and a soak, all counted (30 to 40 minutes)
	$(BIN)/python -m pytest tests/deep/hard --numprocesses 3 --dist worksteal --soak-minutes $(SOAK_MINUTES)

workers-test: install  ## Compare 1, 2 and 4 workers over 200 steps, and kill single ones (10 minutes on two cores)
	$(BIN)/python -m pytest tests/deep/test_workers.py -s

machines-test: install  ## Train on two machines that vanish (network namespaces: needs root and iproute2; 10 minutes)
	$(BIN)/python -m pytest tests/deep/test_machines.py -s

gpu-stand-in: install  ## Run on a pretend GPU that counts every copy and wait (needs a C++ compiler; some minutes)
	$(BIN)/python -m pytest tests/test_gpu_stand_in.py tests/deep/test_gpu.py -s

ON ?= cuda
gpu-test: install  ## Try everything on the GPUs of this machine, and print a table (some minutes; ON=cpu or stand-in)
	$(BIN)/python benchmarks/gpu_test.py --on $(ON)

serve-test: install  ## Ten thousand hostile requests to seqtool serve, slow clients, huge lines (some minutes)
	$(BIN)/python -m pytest tests/deep/test_serve.py -s

interchange-test:  ## Compare with the real transformers and Argos Translate (downloads 1.5 GB, takes some minutes)
	test -x $(INTERCHANGE)/bin/python || $(PYTHON) -m venv $(INTERCHANGE)
	$(INTERCHANGE)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev,fast,serve,cjk,interchange]'
	$(INTERCHANGE)/bin/python -m pytest tests/deep/test_interchange.py tests/deep/test_argos.py -s

huggingface-test: install  ## The part of it that CI runs: installs transformers into .venv (two minutes)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[huggingface]'
	$(BIN)/python -m pytest tests/deep/test_interchange.py -k "swish or our_own" -s

libretranslate-test: install  ## Let the real LibreTranslate serve an exported package (downloads 1 GB)
	test -x $(LIBRETRANSLATE)/bin/python || $(PYTHON) -m venv $(LIBRETRANSLATE)
	$(LIBRETRANSLATE)/bin/pip install --quiet "$$(grep ^torch== constraints.txt)" libretranslate==1.9.6
	PATH="$(CURDIR)/$(LIBRETRANSLATE)/bin:$$PATH" $(BIN)/python -m pytest tests/deep/test_libretranslate.py -s

mutation-test: install  ## Break the code in chosen places and see that a test notices each (some minutes)
	$(BIN)/python tests/deep/mutations.py

capture: install  ## Draw docs/first-run.svg from a real run of the demo, and docs/serve.png after make demo
	$(BIN)/python docs/capture.py docs/first-run.svg
	$(BIN)/python docs/screenshot.py checkpoints/demo docs/serve.png

format: install  ## Format the code and sort its imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove .venv and caches (run directories stay)
	rm -rf $(VENV) $(INTERCHANGE) $(LIBRETRANSLATE) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
