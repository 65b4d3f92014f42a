"""Settings that hide differences between processors from programs, so that runs repeat anywhere.

They are environment variables of a stack's programs.
"""

from __future__ import annotations

NO_RANDOM_INSTRUCTIONS = {"OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}
"""Hides RDRAND and RDSEED from OpenSSL and BoringSSL, which then ask the guest's seeded kernel."""
SAME_LIBRARY_FOLDERS = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512CD"}
"""Makes the loader search for libraries in the same folders on all processors.

Otherwise it also searches folders for AVX2 and AVX-512 where the processor has them. In virtual
time each search costs a microsecond, so the flow would start later there. A stack needs this where
its programs have a search path of their own or load libraries by name.
"""
