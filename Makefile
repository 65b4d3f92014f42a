# make demo | test | setup | lab | check | docs | wheels | fuzz | clean: see README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := gcc make flex bison bc libc6-dev patch xz-utils ccache python3-venv tshark
STACK_PACKAGES := g++ cmake perl libclang-dev libnuma-dev libssl-dev
# Results may depend on these: they come in the versions of qbkit/stacks/toolchains/debian.lock.
PINNED := iproute2 mininet
STACK_PINNED := chromium chromium-headless-shell firefox-esr libnss3-tools
SUDO := $(shell [ "$$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo sudo; } || echo no)

.PHONY: demo test fuzz setup lab check docs atlas wheels system pinned venv lock kernel stacks clean

# The demo needs two stacks only; all of them take 20 to 30 minutes to build on two cores.
demo: system venv pinned
	@$(BIN)/qbkit kernel --build --only constant || echo "qbkit: continuing without a kernel"
	@$(BIN)/qbkit stacks build tcp quic-go || echo "qbkit: the demo goes on with aioquic instead"
	@$(BIN)/python -m qbkit.cli.demo

# A test that set-up prepared must run: a skip of it is a failure. Python keeps byte code even where
# PYTHONDONTWRITEBYTECODE is set, as each process would compile all tests and all that it imports.
test: setup
	@QBKIT_NO_SKIPS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# Property tests with random examples, ten rounds; make test draws the same ones every time.
fuzz: venv
	@for round in 1 2 3 4 5 6 7 8 9 10; do \
	  $(BIN)/python -m pytest -q -m "hypothesis and not guest" --hypothesis-profile fuzz || exit 1; done

setup: system venv pinned kernel stacks
	@echo "qbkit: set up; try: make demo, make lab, or $(BIN)/qbkit --help"

# Notebooks, data and docs, the latter as pages rather than as text.
lab: venv
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp binder/overrides.json $(VENV)/share/jupyter/lab/settings/
	@$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb

check: venv
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

# The site, in build/docs. Its tutorials run on this machine; where no engine works, they open published runs.
docs: venv
	@echo "qbkit: building the documentation (the first time about 10 processor minutes: it executes the notebooks and writes the atlas)"
	@rm -rf docs/reference/generated
	@$(BIN)/python -m sphinx -q -W --keep-going -d build/docs-trees docs build/docs
	@echo "qbkit: open build/docs/index.html"

# The published data as a site, in build/atlas; it opens from the disk.
atlas: venv
	@echo "qbkit: writing the atlas of the published data (about a minute)"
	@$(BIN)/qbkit atlas data --out build/atlas

# qbkit, and what it needs to run, as wheels in build/wheels (packages/README.md).
wheels: setup
	@$(BIN)/python packages/wheels.py build/wheels

# Only apt needs root. Without root, print what to ask for, and continue where possible.
system:
	@missing=$$(for p in $(PACKAGES); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -z "$$missing" ]; then :; \
	elif ! command -v apt-get >/dev/null; then \
	  echo "qbkit: no apt here; install the equivalents of: $$missing"; \
	elif [ "$(SUDO)" = no ]; then \
	  echo "qbkit: without root or sudo; ask for: apt-get install $$missing"; \
	else \
	  echo "qbkit: installing $$missing (about 1 minute)"; \
	  $(filter-out no,$(SUDO)) apt-get update -qq && \
	  $(filter-out no,$(SUDO)) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

venv: $(VENV)/ready

# The exact versions of requirements.lock: results depend on them, aioquic's most of all.
#
# uv leaves byte code to the first import. Where Python may not write it (PYTHONDONTWRITEBYTECODE, a
# read-only disk), every command would compile all it imports: 8 processor seconds instead of 3.
$(VENV)/ready: pyproject.toml requirements.lock qbkit/__init__.py
	@echo "qbkit: installing the Python packages into $(VENV) (about 1 minute)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip -q --disable-pip-version-check install uv
	@$(BIN)/uv pip install -q -p $(VENV) -r requirements.lock
	@$(BIN)/uv pip install -q -p $(VENV) --no-deps -e .
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib qbkit || :
	@touch $@

# The newest versions that pyproject.toml allows, for every Python and system that it allows; and
# the newest packages of Debian's suites.
lock: venv
	@$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --extra notebooks --extra dev --extra docs --no-annotate \
	  --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml
	@$(BIN)/python -m qbkit.testbed.pin_writer

pinned: venv
	@$(BIN)/python -m qbkit.stacks.toolchains.install $(PINNED)

# Two kernels are built once per machine (about 15 processor minutes); drivers, once per version.
kernel: venv
	@$(BIN)/qbkit kernel --build || echo "qbkit: continuing without a kernel: notebooks show published runs, guest tests are skipped"

stacks: venv
	@$(MAKE) --no-print-directory system PACKAGES="$(STACK_PACKAGES)"
	@$(MAKE) --no-print-directory pinned PINNED="$(STACK_PINNED)"
	@$(BIN)/qbkit stacks build || echo "qbkit: continuing without the stacks named above"
	@$(BIN)/qbkit web --build all || echo "qbkit: continuing without the web programs named above"

clean:
	rm -rf $(VENV) build results docs/_generated docs/_static/gallery docs/reference/generated docs/tutorials/*.ipynb docs/tutorials/.executed.json .pytest_cache .ruff_cache .mypy_cache *.egg-info
