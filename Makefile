# Everything a fresh machine needs is made here: a virtual environment in .venv, then the job.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

# uv fetches and unpacks packages side by side; pip does it where uv cannot be had or does not find them.
define install
$(PYTHON) -m venv $(VENV)
{ $(BIN)/python -m pip install -q uv && $(BIN)/python -m uv pip install -q --python $(BIN)/python -e '.[$(1)]'; } || \
	$(BIN)/python -m pip install -q --no-compile -e '.[$(1)]'
endef

.PHONY: demo real test suite slow pixels torture lint docs dist release lowest newest all-extras clean

demo: $(VENV)/.study
	$(BIN)/python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes
	$(BIN)/python -m tools.msd --config=configs/msd.py:shapes --workdir=runs/overlap_shapes
	$(BIN)/python -m tools.report --workdir=runs/overlap_shapes

# A network of ImageNet shown your own photographs, `make real IMAGES=DIR`; docs/real.md says how DIR is laid out.
RUN ?= runs/real
real: $(VENV)/.real
	$(BIN)/python -m tools.real --images="$(IMAGES)" --workdir="$(RUN)" $(REAL)
	$(BIN)/python -m tools.confidence --workdir="$(RUN)"

test: $(VENV)/.dev
	$(MAKE) --no-print-directory -j 2 lint suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

# Slow tests, and those of pixels once more: here with the compiler's optimisations, as users run them.
slow: export JAX_DISABLE_MOST_OPTIMIZATIONS = 0
slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist load -m slow --durations=10
	$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/corruptions

# Digests of pixels, after the version of a corruption was raised; compiled as users' programs are.
pixels: $(VENV)/.dev
	$(BIN)/python -m tests.corruptions.pixels $(NAMES)

# Kills of commands at each of their changes of files; the checkout must stay as it is meanwhile.
torture: $(VENV)/.dev
	$(BIN)/python -m tests.torture $(TORTURE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

dist: $(VENV)/.dev
	rm -rf build/lib dist
	$(BIN)/python -c "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"

# Uses the wheel as a stranger does, in an empty environment outside of the checkout; fetches jax and numpy.
release: dist
	$(BIN)/python -m tests.wheel

# The core of the tests (the library, one training, one study) with the lowest and with the newest versions of the packages that
# pyproject.toml names, `make newest PYTHON=python3.13`; the versions and the outcome are a file of benchmarks/results.
CORE = tests/corruptions/core/batch_test.py tests/corruptions/core/refusals_test.py tests/corruptions/imagenet_c tests/corruptions/noc \
	tests/corruptions/core/checks_test.py tests/corruptions/core/many_sizes_test.py tests/corruptions/core/gradients_test.py tests/corruptions/adapters/grain_test.py \
	tests/training/loop_test.py tests/training/checkpoint_test.py tests/evaluation/evaluation_test.py \
	tests/models/build_test.py tests/scripts_test.py
WORKERS ?= 2
lowest: RESOLUTION = lowest-direct
newest: RESOLUTION = highest
RECORD = benchmarks/results/$(if $(RESOLUTION),core_)$@_$$(build/$@/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt
# Runs tests in the environment build/TARGET, and writes its packages and the outcome.
define record
{ build/$@/bin/python -VV; $(BIN)/python -m uv pip freeze -q --python build/$@/bin/python | grep -v '^-e '; \
build/$@/bin/python -m pytest -q -rsfE -n $(WORKERS) --dist loadfile -p no:cacheprovider $(1) >build/$@.log 2>&1 && end=0 || \
end=$$?; grep -E "^(FAILED|ERROR|SKIPPED) |^[0-9]+ (passed|failed)|^=* ?[0-9]+ (passed|failed)" build/$@.log; \
test $$end = 0 || echo "pytest ended with status $$end"; } | \
tee $(RECORD)
! grep "^pytest ended with status" $(RECORD)
endef
lowest newest: $(VENV)/.dev
	$(BIN)/python -m uv venv -q --clear --python $(PYTHON) build/$@
	$(BIN)/python -m uv pip install -q --python build/$@/bin/python --resolution $(RESOLUTION) -e '.[study,test]'
	$(call record,$(CORE))

# The tests marked `needs`, fast and slow, compiled as users' programs are: the default environment skips them. Here PyTorch, TensorFlow,
# Keras, datasets, a browser and more are installed, and what ALSO names: `ALSO=libtpu` for those that compile for a TPU, 20 minutes
# more, `ALSO='git+https://...'` for what GitHub alone has.
# By pip: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu takes PyTorch without CUDA.
all-extras: export JAX_DISABLE_MOST_OPTIMIZATIONS = 0
all-extras: $(VENV)/.dev
	.ci/browser
	$(PYTHON) -m venv --clear build/$@
	build/$@/bin/python -m pip install -q --no-compile -e '.[all-extras]' $(ALSO)
	$(call record,-m needs $$(grep -rl 'mark\.needs' tests --include='*_test.py' | sort))

$(VENV)/.study: pyproject.toml
	$(call install,study)
	touch $@

$(VENV)/.real: pyproject.toml
	$(call install,real)
	touch $@ $(VENV)/.study

$(VENV)/.docs: pyproject.toml
	$(call install,docs)
	touch $@

$(VENV)/.dev: pyproject.toml
	$(call install,dev)
	touch $@ $(VENV)/.study $(VENV)/.docs

clean:
	rm -rf $(VENV) build *.egg-info
