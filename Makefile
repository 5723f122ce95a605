# Every target makes its own environment when it is missing or older than the files that define it.
PYTHON ?= python3
TASK ?= poetry
PROFILE ?= small
METHOD ?= tigs

VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin
# Two test processes with one thread each are faster than one with two.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

# key=value words for `tigs` from make variables; only those that are set.
SETTINGS = task=$(TASK) profile=$(PROFILE) $(MORE)
WHERE = $(if $(DATA),data.source=$(DATA)) $(if $(DATA_DIR),"data.dir=$(DATA_DIR)")
MORE = $(WHERE) $(if $(DEVICES),trainer.devices=$(DEVICES)) $(if $(NODES),trainer.nodes=$(NODES)) \
	$(if $(STRATEGY),trainer.strategy=$(STRATEGY)) $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help install demo data train eval sweep table claims rerun report dashboard bench test test-slow lint types format lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'
	@echo "  variables: TASK=dialog|poetry|aprc PROFILE=small|cpu|paper DATA=sample|download DATA_DIR=path MODEL=name"
	@echo "             METHOD=name|all LIMIT=n DEVICES=n NODES=n STRATEGY=auto|ddp ARGS=\"key=value ...\" FIGURES=file BENCH=\"--option ...\""

install: $(STAMP)  ## create or refresh .venv (the other targets do it by themselves)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..."; exit 2; }
	@echo "Installing into $(VENV) (a few minutes the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@# torch first and alone: a package that asks for any torch must find this one.
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock torch
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	@touch $@

data: $(STAMP)  ## prepare the corpus of TASK and print what is in it
	@$(BIN)/tigs data $(SETTINGS)

train: $(STAMP)  ## train every model of TASK, or only MODEL
	@$(BIN)/tigs train $(SETTINGS) $(if $(MODEL),model=$(MODEL))

eval: $(STAMP)  ## fill the test sets of TASK by METHOD, or by every method with METHOD=all
	@$(BIN)/tigs eval $(SETTINGS) method=$(METHOD) $(if $(LIMIT),eval.limit=$(LIMIT))

sweep: $(STAMP)  ## try settings of METHOD on validation templates, as ARGS="method.step_size=3,10,30"
	@$(BIN)/tigs sweep $(SETTINGS) method=$(METHOD)

# Figures of runs/, or where there are none of what was asked for, those that came with the project.
ASKED_TASK = $(if $(filter-out file,$(origin TASK)),$(TASK))
FIGURES_IN = $(if $(wildcard runs/$(or $(ASKED_TASK),*)/$(or $(1),*)/metrics),,$(if $(wildcard results/$(or $(1),cpu)),output_dir=results/$(or $(1),cpu)))
table: $(STAMP)  ## the paper's table with our figures beside the paper's; TASK and PROFILE choose among them
	@$(BIN)/tigs table $(ASKED) task=$(or $(ASKED_TASK),all) $(call FIGURES_IN,$(patsubst profile=%,%,$(ASKED))) $(ARGS)

claims: $(STAMP)  ## what the paper says of its results, held against our figures
	@$(BIN)/tigs claims profile=$(PROFILE) $(call FIGURES_IN,$(PROFILE)) $(ARGS)

rerun: $(STAMP)  ## one file of FIGURES again, from training to comparison
	@$(if $(FIGURES),,echo "make rerun FIGURES=results/cpu/poetry/cpu/metrics/tigs/random-25.json DATA_DIR=path"; exit 2)
	@$(BIN)/tigs rerun "$(FIGURES)" $(MORE)

report: $(STAMP)  ## all tables, pictures and examples as one HTML page
	@$(BIN)/tigs report $(ARGS)

dashboard: $(STAMP)  ## a W&B workspace that compares the methods
	@$(BIN)/tigs dashboard task=$(TASK) profile=$(PROFILE) $(ARGS)

# The profile is left to the command unless it was asked for: cpu if that model is trained, else small. A forward model that is
# missing is trained; GSN and BiBS are measured if theirs are there. TIGS starts from a beam of 5, as in the original code, whatever a
# profile has chosen since.
BENCH ?= --growth --exact 50
ASKED = $(if $(filter-out file,$(origin PROFILE)),profile=$(PROFILE))
bench: $(STAMP)  ## every search side by side: NLL, time and steps as a table, JSON and a plot in runs/bench/
	@$(if $(ASKED),,test -f runs/$(TASK)/cpu/models/forward/best.ckpt ||) \
		$(BIN)/tigs train task=$(TASK) $(ASKED) $(WHERE) model=forward
	@$(BIN)/tigs bench search task=$(TASK) $(ASKED) $(WHERE) method.beam_width=5 --json runs/bench/$(TASK).json $(BENCH) $(ARGS)

demo: $(STAMP)  ## everything on the built-in sample: train, fill by every method, table, page
	@$(BIN)/tigs train $(SETTINGS)
	@$(BIN)/tigs eval $(SETTINGS) method=all
	@$(BIN)/tigs table task=$(TASK) profile=$(PROFILE) $(ARGS)
	@$(BIN)/tigs report $(ARGS)

test: $(STAMP) lint types  ## lint, types and tests, in under ten minutes
	@$(PYTEST) -m "not slow"

test-slow: $(STAMP)  ## the tests that take long
	@$(PYTEST) -m slow

lint: $(STAMP)  ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	@$(BIN)/mypy

format: $(STAMP)  ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(STAMP)  ## write the versions in .venv to requirements.lock
	@{ head -n 1 requirements.lock; $(BIN)/pip freeze --exclude-editable | sed 's/^\(torch==[0-9.]*\)+.*/\1/'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean:  ## remove .venv and the caches of the tools; runs/ stays
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
