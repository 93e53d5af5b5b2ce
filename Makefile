# A short front for meson. `make demo` and `make check` are all that a new user needs.
BUILD  ?= build
PREFIX ?= /usr/local
# Not meson's guess, which is lib64 on a Debian without dpkg-dev, where neither ld.so nor pkg-config
# looks.
LIBDIR ?= lib

.PHONY: all demo check check-long check-arm64 bench install uninstall format clean deps

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

deps:
	@scripts/install-deps

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) --prefix="$(PREFIX)" --libdir="$(LIBDIR)" >/dev/null || \
		{ meson setup $(BUILD) --prefix="$(PREFIX)" --libdir="$(LIBDIR)"; exit 1; }

# The tool and its runtime only: whoever wants to see it need not wait for the tests to be built.
demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) tool
	@scripts/demo $(BUILD)

check:
	@echo "== looking for what the tests need"
	@scripts/install-deps --test
	@scripts/check

check-long:
	@scripts/install-deps --test --long
	@scripts/check --long

# On a kernel of arm64 with a PMU, emulated: doc/arm64.md.
check-arm64:
	@scripts/check-arm64

bench: all
	@bench/run $(BUILD)

# A PREFIX given now holds, whatever the build directory was made with.
install: $(BUILD)/build.ninja
	@$(if $(filter-out file,$(origin PREFIX)),meson configure $(BUILD) --prefix="$(PREFIX)")
	@ninja -C $(BUILD) installed
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir "$$(realpath -m "$(DESTDIR)")")

# Removes what `make install` with the same PREFIX and DESTDIR has copied, and folders of its own
# that are empty then.
uninstall: $(BUILD)/build.ninja
	@$(if $(filter-out file,$(origin PREFIX)),meson configure $(BUILD) --prefix="$(PREFIX)")
	@scripts/uninstall $(BUILD) "$(DESTDIR)"

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD) build-*
