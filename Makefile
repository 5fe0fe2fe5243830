# Owns: the commands a person types. Each is one line onto scripts/ or cargo.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help run deb rpm dist image test check package-test soak bench lab setup clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and start the demo site
	@scripts/setup.sh build
	cargo run --release --locked --bin bolide -- demo

deb: ## a Debian package, in target/packages
	@scripts/setup.sh build
	scripts/package.sh deb

rpm: ## a package for RPM, in target/packages
	@scripts/setup.sh build test
	scripts/package.sh rpm

dist: ## a tarball with its sum and the list of what is in it, in target/packages
	@scripts/setup.sh build
	scripts/package.sh dist

image: ## an image for containers (OCI layout), made without a daemon, in target/packages
	@scripts/setup.sh build
	scripts/package.sh image

test: ## install what is needed, then run every check and test
	@scripts/setup.sh build
	scripts/test.sh

check: ## formatting and lints only
	@scripts/setup.sh build
	scripts/test.sh check

package-test: ## the packages of a release, by lintian and on a clean Debian 12, as root
	@scripts/setup.sh build test
	tests/package/release.sh

soak: ## ten minutes of mixed traffic, and whether anything grew; SOAK=60 for an hour
	@scripts/setup.sh build test
	cargo build --release --locked --bin bolide
	scripts/soak.sh --minutes $(or $(SOAK),10)

bench: ## measure beside nginx, h2o and caddy
	@scripts/setup.sh build test peers
	cargo build --release --locked --bin bolide
	scripts/lab bench

lab: ## the published tests beside nginx, h2o and caddy, ten minutes of them, and a report
	@scripts/setup.sh build test peers
	cargo build --release --locked --bin bolide
	scripts/lab run --quick --name quick --report

setup: ## install every tool the project uses
	scripts/setup.sh build test peers

clean: ## remove build output
	cargo clean

distclean: clean ## also remove the tools that setup put into its cache
	rm -rf "$${BOLIDE_TOOLS:-$$HOME/.cache/bolide-tools}"
