"""One QUIC flow with aioquic; runs in the guest and imports nothing from qbkit."""
