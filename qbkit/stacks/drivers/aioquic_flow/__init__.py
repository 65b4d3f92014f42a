"""One QUIC flow with aioquic; runs in the guest, and imports nothing of qbkit."""
