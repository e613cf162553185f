# librl in the official server images: BASE=redis:8 or later, or BASE=valkey/valkey:9.
# Entrypoint, command, user, volume and flags are the base image's own: docker run IMAGE --maxmemory 1gb ...
ARG BASE=redis:8

FROM rust:1-bookworm AS build
# hadolint ignore=DL3008  # any version of the release's libclang does: it only reads C headers
RUN apt-get update \
 && apt-get install -y --no-install-recommends libclang-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked && scripts/third-party.sh target/licences

FROM ${BASE}
# The Redis image's entrypoint loads every executable *.so of this directory, whatever flags the user gives. Valkey's
# appends VALKEY_EXTRA_FLAGS to the user's flags instead: whoever sets that variable has to repeat this --loadmodule.
COPY --from=build --chmod=0755 /src/target/release/librl.so /usr/local/lib/redis/modules/librl.so
COPY --from=build /src/target/licences/ /usr/local/share/doc/librl/
ENV VALKEY_EXTRA_FLAGS="--loadmodule /usr/local/lib/redis/modules/librl.so"
COPY --chmod=0755 scripts/healthcheck.sh /usr/local/bin/rl-healthcheck
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["rl-healthcheck"]
LABEL org.opencontainers.image.title="librl" \
      org.opencontainers.image.description="Exact, atomic rate limiting as native Redis and Valkey commands" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
