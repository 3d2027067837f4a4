# Everything runs in .venv, which the first target that needs it builds with pip and constraints.txt.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# Labelled data beside the checkout is used when it is there; without it the runs say so.
DATA := $(abspath $(wildcard ../shared/data))
ifneq ($(DATA),)
export CMA_DATA_DIR ?= $(DATA)
endif

.PHONY: help reproduce test check bench mutate audit report docs browser clean
help:           ## show this list
	@grep -E '^[a-z]+: .*##|^[a-z]+: +##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"CMA needs Python 3.11 to 3.13, not {v[0]}.{v[1]}: run make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

reproduce: $(INSTALLED) ## run every experiment and build the report
	$(RUN) -m experiments.everything; ran=$$?; [ $$ran -ne 130 ] || exit 130; \
	$(RUN) -m reproductions; judged=$$?; $(RUN) -m reports && [ $$ran -eq 0 ] && exit $$judged

test: $(INSTALLED) check ## run the checks and all tests
	$(RUN) -m pytest -q -n 2 --dist loadfile

check: $(INSTALLED) ## lint, format, types, import rules, packages that fit together
	$(RUN) -m pip check
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

bench: $(INSTALLED) ## measure the ratios against peers (minutes)
	$(RUN) -m pytest -q tests/benchmarks -p no:xdist --benchmark-disable-gc --benchmark-columns=median,iqr,rounds
	$(RUN) -m experiments experiment=scale scale.cells=[1000000] scale.queries=500 scale.checked=500
	$(RUN) -m reports

mutate: $(INSTALLED) ## remove each rule on purpose and see a test go red (minutes)
	$(RUN) -m tests.mutants.run
	$(RUN) -m tests.mutants.erasure.run
	$(RUN) -m reports

audit: $(INSTALLED) ## ask the advisory databases about every package (needs the network)
	$(RUN) -m pip install --quiet --disable-pip-version-check pip-audit
	$(RUN) -m pip_audit --skip-editable

report: $(INSTALLED) ## build the report again from the runs that are there
	$(RUN) -m reports

docs: $(INSTALLED) ## build the documentation into build/docs, its reference from the code
	$(RUN) docs/generate.py
	$(RUN) -m sphinx -W --keep-going -q -d build/doctrees -b html docs build/docs

browser: $(INSTALLED) ## look at the report page with a real browser (installs one: 500 MB)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(RUN) -m pytest -q -rs tests/browser

clean:          ## remove what was generated, keep the environment
	rm -rf runs reports/out build
